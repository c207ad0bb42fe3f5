"""`SeatPolicies`: the arguments of each kind of policy, alone and in a batch, and states of policies."""

import functools

import numpy as np
import pytest
from gymnasium import spaces

import pz_policymap as pm
from pz_policymap.policies.seat_policies import Predictor, SeatPolicies
from tests.learner_envs import Survival
from tests.stub_envs import StubParallel


class Recorder:
    """A policy with `predict` that keeps its arguments."""

    def __init__(self):
        self.calls = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.calls.append((observation, state, episode_start))
        return np.zeros(len(observation), int), None


class Counts(Recorder):
    """Its state counts the actions of each seat, in an array whose rows are the second axis."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        count = np.zeros((1, len(observation), 1)) if state is None else state[0]
        self.calls.append((np.array(observation), state, episode_start))
        return count[0, :, 0].astype(int), (count + 1,)


class Masks(Recorder):
    def predict(self, observation, action_masks=None):
        self.calls.append((observation, action_masks))
        return np.argmax(action_masks, axis=1), None


class Everything(Recorder):
    def predict(self, observation, **kwargs):
        self.calls.append((observation, kwargs))
        return np.zeros(len(observation), int), None


class Steady(StubParallel):
    """Four agents stay for some steps; each observes its index and the time, beside a mask that allows its index."""

    names = ("a", "b", "c", "d")

    def __init__(self, steps=3, masked=False):
        super().__init__(live=[self.names] * steps + [()], possible_agents=self.names)
        self.masked = masked
        self.actions = []

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        return self._seen(observations), infos

    def step(self, actions):
        self.actions.append(actions)
        observations, *rest = super().step(actions)
        return self._seen(observations), *rest

    def _seen(self, observations):
        return {agent: self._look(self.names.index(agent)) for agent in observations}

    def _look(self, index):
        seen = np.array([index, self.time])
        return {"observation": seen, "action_mask": np.eye(4, dtype=np.int8)[index]} if self.masked else seen


def against(policies, mapping=None, env=None, **settings):
    inner = Steady(**settings) if env is None else env
    mapping = mapping or pm.Fixed({"a": 1, "b": 0, "c": 1, "d": 1})
    return pm.LearnerEnv(pm.wrap(inner, mapping), policies), inner


def play(env, episodes=1):
    for _ in range(episodes):
        env.reset()
        while not any(env.step(0)[2:4]):
            pass


def test_function_gets_observation_agent_and_info_of_each_seat():
    calls = []
    env, _ = against({1: lambda *given: calls.append(given) or 2}, steps=1, masked=True)
    play(env)
    assert [agent for _, agent, _ in calls] == ["a", "c", "d"]
    assert [observation["observation"].tolist() for observation, _, _ in calls] == [[0, 0], [2, 0], [3, 0]]
    assert all(set(observation) == {"observation", "action_mask"} for observation, _, _ in calls)
    assert all(info == {"policy_id": 1} for _, _, info in calls)


def test_predict_without_state_gets_one_batch_for_all_its_seats():
    policy = Recorder()
    env, _ = against({1: policy}, steps=3)
    play(env, episodes=2)
    sizes = [len(observation) for observation, _, _ in policy.calls]
    assert sizes == [1, 1, 1, 3, 3, 3, 3, 3]
    assert policy.calls[3][0].tolist() == [[0, 1], [2, 1], [3, 1]]
    starts = [start.tolist() for _, _, start in policy.calls]
    assert starts == [[True]] * 3 + [[False] * 3] * 2 + [[True] * 3] + [[False] * 3] * 2
    assert all(state is None for _, state, _ in policy.calls)


def test_predict_state_is_kept_per_seat_and_episode():
    policy = Counts()
    env, inner = against({1: policy}, steps=3)
    play(env, episodes=2)
    acted = [[int(actions[agent]) for agent in ("a", "c", "d")] for actions in inner.actions]
    assert acted == [[0] * 3, [1] * 3, [2] * 3] * 2
    assert [start.tolist() for _, _, start in policy.calls] == ([[True]] * 3 + [[False]] * 6) * 2


def test_predict_state_of_a_seat_that_acts_less_often_is_its_own():
    # In Survival agents end one by one; a state kept by place in the batch would reach another agent.
    policy = Counts()
    inner = Survival(4, late=[3])
    env = pm.LearnerEnv(pm.wrap(inner, pm.Focal(pm.Fixed(0), pm.Fixed(1)), resample_every=1), {1: policy})
    for seed in range(10):
        inner.seen_actions.clear()
        env.reset(seed=seed)
        while not any(env.step(0)[2:4]):
            pass
        for agent in set(inner.possible_agents) - {env.agent}:
            acted = [int(actions[agent]) for actions in inner.seen_actions if agent in actions]
            assert acted == list(range(len(acted)))


def test_predict_gets_masks_apart_from_observations():
    policy = Masks()
    env, inner = against({1: policy}, steps=1, masked=True)
    play(env)
    observation, masks = policy.calls[0]
    assert observation.tolist() == [[0, 0], [2, 0], [3, 0]]
    assert masks.tolist() == np.eye(4, dtype=int)[[0, 2, 3]].tolist()
    assert inner.actions[0] == {"a": 0, "b": 0, "c": 2, "d": 3}
    assert list(inner.actions[0]) == ["a", "b", "c", "d"]


def test_predict_gets_tuple_masks_flat():
    parts = np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8)
    policy = Masks()
    inner = StubParallel(infos=lambda time, agents: {agent: {"action_mask": parts} for agent in agents})
    env, _ = against({1: policy}, pm.Fixed({"a": 1, "b": 0}), inner)
    play(env)
    assert policy.calls[0][1].tolist() == [[1, 0, 0, 1, 1]]


@pytest.mark.parametrize("masked", [True, False])
def test_predict_with_kwargs_gets_every_available_argument(masked):
    policy = Everything()
    env, _ = against({1: policy}, steps=2, masked=masked)
    play(env)
    assert {name for _, kwargs in policy.calls for name in kwargs} == (
        {"episode_start", "action_masks"} if masked else {"episode_start"}
    )


def test_functions_and_predictors_act_together():
    mapping = pm.Fixed({"a": 1, "b": 0, "c": 2, "d": 3})
    env, inner = against([None, Recorder(), lambda *given: 5, Counts()], mapping)
    play(env)
    assert [[int(actions[agent]) for agent in "acd"] for actions in inner.actions] == [[0, 5, 0], [0, 5, 1], [0, 5, 2]]


def test_replaced_policies_are_not_called():
    first, second = Recorder(), Counts()
    env, inner = against({1: first}, steps=2)
    play(env)
    env.set_policies({1: second})
    play(env)
    assert [int(actions["d"]) for actions in inner.actions] == [0, 0, 0, 1]


class Alone:
    def predict(self, observation):
        return np.zeros(len(observation), int)


class Short:
    def predict(self, observation):
        return np.zeros((), int), None


@pytest.mark.parametrize(
    ("policy", "error", "match"),
    [
        (Alone(), TypeError, "predict must return actions and a state, got array"),
        (Short(), ValueError, "policy 1 must return one row per row of its batch"),
    ],
)
def test_predict_with_a_bad_result_raises(policy, error, match):
    env, _ = against({1: policy})
    env.reset()
    with pytest.raises(error, match=match):
        env.step(0)


def test_missing_policy_raises_at_reset():
    calls = []
    mapping = pm.Fixed({"a": 1, "b": 0, "c": 1, "d": 7})
    env, _ = against([None, lambda *given: calls.append(given)], mapping)
    with pytest.raises(KeyError, match=r"got none for policy 7 in \[0, 1\]"):
        env.reset()
    assert not calls


def test_predict_without_a_signature_gets_observations_only():
    class Compiled:
        predict = staticmethod(max)  # of a sequence: the highest action, and no state

    predictor = Predictor(Compiled())
    assert not any(predictor.takes(name) for name in ("state", "episode_start", "action_masks"))


class Stateful:
    """A callable policy that counts its episodes."""

    resets = 0

    def reset(self):
        self.resets += 1

    def __call__(self, observation, agent, info):
        return self.resets


def draws(observation, agent, info, rng):
    return int(rng.integers(2**40))


def test_function_with_reset_is_reset_once_per_seat_and_episode():
    policy = Stateful()
    seats = SeatPolicies({4: policy, 5: Stateful()}, None)
    for _ in range(3):
        seats.begin({"a": 4, "b": 5, "c": 4}, seed=0)
    assert seats.act("a", None, {}) == 6
    assert seats.act_together({"b": None}, {"b": {}}) == {"b": 3}


def test_predict_with_reset_is_reset_once_per_seat_and_episode():
    class Resets(Recorder, Stateful):
        pass

    policy = Resets()
    seats = SeatPolicies({1: policy}, None)
    for _ in range(3):
        seats.begin({"a": 1, "b": 1}, seed=0)
    assert policy.resets == 6


def test_predict_shared_by_two_policy_ids_is_one_batch_whose_states_are_apart():
    policy = Recorder()
    seats = SeatPolicies([policy, policy], None)
    for size in ([1, 1], [2]):  # its first call shows whether it has a state
        policy.calls.clear()
        seats.begin({"a": 0, "b": 1}, seed=0)
        seats.act_together({"a": np.zeros(2), "b": np.ones(2)}, {"a": {}, "b": {}})
        assert [len(observation) for observation, *_ in policy.calls] == size


def test_predict_with_observations_of_unequal_shapes_gets_one_at_a_time():
    policy = Recorder()
    seats = SeatPolicies([policy], None)
    seats.begin({"a": 0, "b": 0}, seed=0)
    for _ in range(2):
        seats.act_together({"a": np.zeros(2), "b": np.zeros(3)}, {"a": {}, "b": {}})
    assert [observation.shape for observation, *_ in policy.calls] == [(1, 2), (1, 3)] * 2


def test_predict_gets_nested_observations_stacked_and_returns_nested_actions():
    class Nested:
        def predict(self, observation):
            return {"x": observation["x"] + 1, "y": observation["y"]}, None

    seats = SeatPolicies([Nested()], None)
    seats.begin({"a": 0, "b": 0}, seed=0)
    seen = {agent: {"x": np.array(number), "y": np.array([number])} for number, agent in enumerate("ab")}
    actions = seats.act_together(seen, {"a": {}, "b": {}})
    assert {agent: (int(a["x"]), a["y"].tolist()) for agent, a in actions.items()} == {"a": (1, [0]), "b": (2, [1])}


def test_policy_with_rng_gets_one_generator_per_seat_and_episode():
    seats = SeatPolicies([draws, functools.partial(draws)], None)

    def numbers(seed):
        seats.begin({"a": 0, "b": 0, "c": 1}, seed)
        return [seats.act(agent, None, {}) for agent in "abcabc"]

    assert len(set(numbers(3))) == 6
    assert numbers(3) == numbers((3,)) != numbers((3, 1))


def test_predict_for_one_agent_gets_a_batch_of_one():
    policy = Recorder()
    seats = SeatPolicies([policy], None)
    seats.begin({"a": 0}, 0)
    assert seats.act("a", np.ones(3), {}) == 0
    assert policy.calls[0][0].shape == (1, 3)


def test_torch_module_raises_with_the_line_that_adapts_it():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"policies\[0\] is a torch module.*lambda observation, agent, info"):
        SeatPolicies([torch.nn.Linear(2, 2)], None)


@pytest.mark.parametrize("policy", [5, dict, "rock", lambda observation: 0])
def test_object_that_is_not_a_policy_raises_with_the_expected_forms(policy):
    with pytest.raises(TypeError, match=r"policies\[0\] must be a callable \(observation, agent, info\) -> action"):
        SeatPolicies([policy], None)


def test_callable_without_a_signature_is_accepted():
    seats = SeatPolicies([max], None)  # written in C: inspect finds no signature
    seats.begin({3: 0}, 0)
    assert seats.act(3, 1, 2) == 3


def test_random_samples_the_action_space():
    seats = SeatPolicies(["random"], lambda agent: spaces.Discrete(1, start=7))
    seats.begin({"a": 0}, 0)
    assert seats.act("a", None, {}) == 7
