"""`EpisodeLoop`: agents that join, die or are not observed, and errors that name their cause."""

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import EpisodeLoop, Outcome, PlayError, error_text
from pz_policymap.policies.seat_policies import SeatPolicies
from tests.stub_envs import StubAEC, StubParallel

APIS = [StubAEC, StubParallel]


def zero(observation, agent, info):
    return 0


def fails(observation, agent, info):
    raise ValueError("no idea")


def loop_of(env, *policies):
    return EpisodeLoop(env, SeatPolicies(list(policies), env.action_space), "#{}".format)


class LateAEC(StubAEC):
    """Agent "c" joins with the first step."""

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.agents = ["a"]

    def step(self, action):
        if len(self.left) == 2 and "c" not in self.agents and self.left["c"]:
            self.agents.append("c")
        super().step(action)


LATE = [
    LateAEC(turns={"a": 2, "c": 1}),
    StubParallel(live=[("a",), ("a", "c"), ("a", "c"), ()], possible_agents=["a"]),
]


@pytest.mark.parametrize("env", LATE)
def test_episode_loop_joining_agent_is_controlled_by_the_policy_of_its_tag(env):
    outcome = loop_of(pm.wrap(env, pm.Fixed(0), seed=0), zero).play(0, 0, {})
    assert set(outcome.returns) == {"a", "c"}
    assert outcome.lengths["a"] > outcome.lengths["c"] > 0
    assert outcome.complete


def test_episode_loop_agent_without_an_assignment_or_tag_raises_and_names_the_key():
    with pytest.raises(PlayError, match="agent 'a' is not among possible_agents, and its info has no p"):
        EpisodeLoop(StubParallel(), SeatPolicies([zero], None), str, info_key="p").play(0, 0, {})


class Flagged(StubParallel):
    """Keeps "a" and "b" in `agents`; `ends` holds the agents that each step reports as terminated."""

    def __init__(self, *ends):
        super().__init__(live=[("a", "b")] * (len(ends) + 1))
        self.ends = ends

    def step(self, actions):
        observations, rewards, _, truncations, infos = super().step(actions)
        return observations, rewards, {agent: agent in self.ends[self.time - 1] for agent in "ab"}, truncations, infos


@pytest.mark.parametrize(
    ("ends", "lengths"),
    [
        (("a", "a", "ab"), {"a": 1, "b": 3}),  # an ended agent stays
        (("a", "", "ab"), {"a": 2, "b": 3}),  # it returns
        (("ab", "ab"), {"a": 1, "b": 1}),  # all have ended and stay
    ],
)
def test_episode_loop_returns_and_lengths_are_those_of_the_recorder(ends, lengths):
    recorded = []
    env = pm.record_results(pm.wrap(Flagged(*ends), pm.Fixed(0)), recorded.append)
    outcome = loop_of(env, zero).play(0, 0, {})
    assert outcome.lengths == lengths == dict(zip("ab", recorded[0].lengths, strict=True))
    assert tuple(outcome.returns.values()) == recorded[0].returns
    assert outcome.complete


def paying(make, reward):
    """Returns an environment that pays agent "a" this reward in every step."""

    class Paying(make):
        def step(self, actions):
            result = super().step(actions)
            (self.rewards if result is None else result[1])["a"] = reward
            return result

    return Paying()


@pytest.mark.parametrize(
    ("reward", "per_step"), [(np.array([0.5]), 0.5), (np.float32(2.0), 2.0), (True, 1.0), (None, 0.0)]
)
def test_episode_loop_reward_with_a_single_element_is_a_number(reward, per_step):
    outcome = loop_of(paying(StubParallel, reward), zero).play(0, 0, {"a": 0, "b": 0})
    assert outcome.returns == {"a": 2 * per_step, "b": 2.0}


@pytest.mark.parametrize("make", APIS)
def test_episode_loop_vector_reward_raises_and_names_agent_and_reward(make):
    with pytest.raises(PlayError, match=r"one number per agent, got array\(\[1., 2.\]\) for agent 'a'") as e:
        loop_of(paying(make, np.array([1.0, 2.0])), zero).play(0, 0, {"a": 0, "b": 0})
    assert e.value.policy is None


def test_episode_loop_step_without_observations_is_the_fault_of_the_environment():
    class Blind(StubParallel):
        def step(self, actions):
            return ({}, *super().step(actions)[1:])

    message = r"RuntimeError: env must return an observation of at least one of \['a', 'b'\], got none from"
    with pytest.raises(PlayError, match=message) as e:
        loop_of(Blind(), zero).play(0, 0, {"a": 0, "b": 0})
    assert e.value.policy is None


@pytest.mark.parametrize("make", APIS)
def test_episode_loop_error_of_a_policy_names_it_and_its_agent(make):
    env = make()
    with pytest.raises(
        PlayError, match=r"policy #1, which controls agent 'b', raised ValueError: no idea \(.*:\d+\)"
    ) as e:
        loop_of(env, zero, fails).play(0, 0, {"a": 0, "b": 1})
    assert (e.value.policy, e.value.agent) == (1, "b")
    assert "no idea" in e.value.details
    assert str(e.value.within("game 3")).startswith("game 3: policy #1")


class FailsOnce:
    """Raises an error at its first call only."""

    calls = 0

    def __call__(self, observation, agent, info):
        self.calls += 1
        if self.calls == 1:
            raise ValueError("once")
        return 0


def test_episode_loop_error_that_does_not_recur_names_the_policy_that_raised_it():
    policy = FailsOnce()
    with pytest.raises(PlayError, match="policy #1, which controls agent 'b', raised ValueError: once") as e:
        loop_of(StubParallel(), zero, policy).play(0, 0, {"a": 0, "b": 1})
    assert (e.value.policy, e.value.agent, policy.calls) == (1, "b", 1)


def test_episode_loop_error_of_a_batch_names_its_policy_and_first_agent():
    class Batch:
        def predict(self, observation):
            raise ValueError("no model")

    env = StubParallel(live=[("a", "b", "c"), ()], possible_agents=("a", "b", "c"))
    with pytest.raises(PlayError, match="policy #1, which controls agent 'b', raised ValueError: no model"):
        loop_of(env, zero, Batch()).play(0, 0, {"a": 0, "b": 1, "c": 1})


@pytest.mark.parametrize("make", APIS)
def test_episode_loop_action_outside_its_space_is_the_fault_of_the_policy(make):
    class Strict(make):
        def step(self, actions):
            raise IndexError("illegal")

    with pytest.raises(
        PlayError, match=r"policy #0, which controls agent 'a', returned the action 9, which is not in"
    ) as e:
        loop_of(Strict(), lambda *seen: 9).play(0, 0, {"a": 0, "b": 0})
    assert e.value.policy == 0
    with pytest.raises(
        PlayError, match=r"the environment raised IndexError: illegal .* at the action 0 of policy #0"
    ) as e:
        loop_of(Strict(), zero).play(0, 0, {"a": 0, "b": 0})
    assert e.value.policy is None


def test_episode_loop_error_of_reset_is_the_fault_of_the_environment():
    with pytest.raises(PlayError, match="RuntimeError: reset 0 fails"):
        loop_of(StubParallel(fail_at=[0]), zero).play(0, 0, {"a": 0, "b": 0})


@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError("a\nb"), "ValueError: a b"), (KeyError(), "KeyError"), (SystemExit(2), "sys.exit(2)")],
)
def test_error_text_of_any_error_is_one_line(error, text):
    assert error_text(error) == text


def test_episode_loop_agents_removed_with_the_last_step_have_ended():
    class Empties(StubAEC):
        def step(self, action):
            super().step(action)
            if all(self.terminations.values()):
                self.agents = []

    outcome = loop_of(Empties(), zero).play(0, 0, {"a": 0, "b": 0})
    assert outcome.complete
    assert outcome.returns == {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize(
    ("action", "equal", "other"),
    [
        (3, np.int64(3), 4),
        (np.array([0.5, 1.0]), np.array([0.5, 1.0]), np.array([0.5, 1.5])),
        ((1, 2), (1, 2), (2, 1)),
        (0.25, 0.25, 0.5),
    ],
)
def test_outcome_moves_of_different_actions_differ(action, equal, other):
    def moves(*actions):
        outcome = Outcome()
        for each in actions:
            outcome.note(each)
        return outcome.moves

    assert moves(action) == moves(equal) != moves(other)
    assert moves(action, other) != moves(other, action)
