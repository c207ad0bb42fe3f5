"""Environments that break conventions: what the wrappers tolerate, and what they refuse with a clear error."""

from collections import defaultdict

import gymnasium
import numpy as np
import pytest
from pettingzoo.utils import BaseWrapper, parallel_to_aec

import pz_policymap as pm
from tests.stub_envs import StubAEC, StubParallel
from tests.vector_envs import Countdown


@pytest.mark.parametrize("around", [lambda env: env, BaseWrapper], ids=["outermost", "inside a wrapper"])
def test_aec_infos_in_a_defaultdict_survive_dead_steps(around):
    bare = StubParallel(infos=lambda time, agents: defaultdict(dict) if time else {agent: {} for agent in agents})
    env = around(pm.wrap(parallel_to_aec(bare), 1000, seed=0))
    env.reset()
    for agent in env.agent_iter():
        _, _, termination, truncation, info = env.last()
        assert info["policy_id"] == env.policy_ids[agent]
        env.step(None if termination or truncation else 0)


@pytest.mark.parametrize("possible_agents", [("a", "b"), None])
def test_all_key_in_any_dict_is_never_an_agent(possible_agents):
    class WithAll(StubParallel):
        def step(self, actions):
            return tuple({**part, "__all__": {}} for part in super().step(actions))

    env = pm.wrap(WithAll((("a", "b"), ("a", "b"), ()), possible_agents=possible_agents), 1000, seed=0)
    env.reset()
    infos = env.step({"a": 0, "b": 0})[4]
    assert {agent: infos[agent]["policy_id"] for agent in "ab"} == env.policy_ids
    assert infos["__all__"] == {}


def test_aec_infos_in_a_defaultdict_gain_no_removed_agent():
    infos = defaultdict(dict, a={}, b={})
    env = pm.wrap(StubAEC(infos=lambda agents: infos), 4, seed=0)
    env.reset()
    while env.agents:
        _, _, termination, _, _ = env.last()
        env.step(None if termination else 0)
    assert env.infos == infos == {}


NOT_A_DICT = [None, [], [{}], "x"]


@pytest.mark.parametrize("infos", NOT_A_DICT)
@pytest.mark.parametrize("read", [lambda env: env.last(), lambda env: env.infos], ids=["last", "infos"])
def test_aec_infos_that_are_not_a_dict_are_refused(infos, read):
    env = pm.wrap(StubAEC(), 4, seed=0)
    env.reset()
    env.env.infos = infos
    with pytest.raises(TypeError, match="infos must be a dict with one info per agent, got .* from StubAEC"):
        read(env)


@pytest.mark.parametrize("info", NOT_A_DICT)
def test_single_info_that_is_not_a_dict_is_refused(info):
    class Bad(Countdown):
        def step(self, action):
            return (*super().step(action)[:4], info)

    env = pm.wrap(Bad(), 4, seed=0)
    env.reset()
    with pytest.raises(TypeError, match="an info must be a dict, got .* from the environment"):
        env.step(0)


class Batch(gymnasium.vector.VectorEnv):
    """Returns what it is given."""

    num_envs = 2
    single_action_space = single_observation_space = gymnasium.spaces.Discrete(2)
    action_space = observation_space = gymnasium.spaces.MultiDiscrete([2, 2])

    def __init__(self, outcome):
        self.outcome = outcome

    def reset(self, *, seed=None, options=None):
        return self.outcome

    def step(self, actions):
        return np.zeros(2), self.rewards, np.ones(2, bool), np.zeros(2, bool), {}


def test_vector_rewards_with_two_columns_are_refused_and_with_one_accepted():
    episodes = []
    env = pm.record_results(pm.wrap(Batch((np.zeros(2), {})), 4, seed=0, autoreset_mode="SameStep"), episodes.append)
    env.reset()
    env.unwrapped.rewards = np.array([[1.0], [2.0]])
    env.step(None)
    assert [episode.returns for episode in episodes] == [(1.0,), (2.0,)]
    env.unwrapped.rewards = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"rewards must have shape \(2,\), got \(2, 2\); combine vectors"):
        env.step(None)


@pytest.mark.parametrize("sink", [pm.Payoff(4), pm.Payoff(4).record])
def test_payoff_for_rows_without_agents_is_refused(sink):
    with pytest.raises(ValueError, match="agents must be given for a Payoff"):
        pm.record_results(pm.wrap(Batch(None), 4, seed=0, autoreset_mode="SameStep"), sink)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (None, r"reset must return \(observations, infos\), got None from Batch"),
        (np.zeros(2), r"reset must return \(observations, infos\), got array"),
        ((np.zeros(2), None), "infos must be a dict of arrays, or a list of one dict per row, got None"),
        ((np.zeros(2), "xy"), "infos must be a dict of arrays, or a list of one dict per row, got 'xy'"),
        ((np.zeros(2), [{}, None]), "an info must be a dict, got None"),
    ],
)
def test_vector_reset_that_returns_no_infos_is_refused(outcome, message):
    env = pm.wrap(Batch(outcome), 4, seed=0, autoreset_mode="NextStep")
    with pytest.raises(TypeError, match=message):
        env.reset()
    assert env.assigner.episode.tolist() == [-1, -1]


def test_focal_without_a_seat_for_its_background_is_refused():
    rule = pm.Focal(pm.Fixed(0), pm.Uniform([1, 2]))
    env = Batch(None)
    with pytest.raises(ValueError, match=r"agents must be given for Focal\(.*, whose background has no seat"):
        pm.wrap(env, rule, seed=0, autoreset_mode="NextStep")
    for agents in (1, 2):
        assert len(pm.wrap(env, rule, seed=0, agents=agents, autoreset_mode="NextStep").agents) == agents


@pytest.mark.parametrize("around", [lambda env: pm.wrap(env, 4), lambda env: pm.record_results(env, print)])
def test_supersuit_processes_without_agents_are_refused(around):
    env = Batch(None)
    env.idx_starts = [0, 1, 2]  # as in SuperSuit's process pool, which hides the agents
    with pytest.raises(ValueError, match="agents must be given for environments in processes"):
        around(env)


class Returns(StubParallel):
    def __init__(self, outcome):
        super().__init__()
        self.outcome = outcome

    def reset(self, seed=None, options=None):
        super().reset()
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"a": 0, "b": 0, "c": 0}, r"reset must return \(observations, infos\)"),
        ({"a": 0, "b": 0}, r"reset must return \(observations, infos\)"),
        (
            (None, {}),
            r"reset must return \(observations, infos\), both dicts by agent, got \(None, \{\}\) from Returns",
        ),
        (None, r"reset must return \(observations, infos\)"),
        (({"a": 0}, None), "infos must be a dict with one info per agent, got None"),
        (({"a": 0}, [{}]), r"infos must be a dict with one info per agent, got \[{}\]"),
        (({"a": 0}, {"a": "x"}), "the info of 'a' must be a dict, got 'x'"),
    ],
)
def test_parallel_reset_that_returns_no_infos_is_refused(outcome, message):
    env = pm.wrap(Returns(outcome), 4, seed=0)
    with pytest.raises(TypeError, match=message):
        env.reset()
    assert env.assigner.episode[0] == -1


@pytest.mark.parametrize("possible_agents", [(), []])
def test_empty_possible_agents_are_refused(possible_agents):
    with pytest.raises(ValueError, match="possible_agents of the environment must name at least one agent"):
        pm.wrap(StubParallel(possible_agents=possible_agents), 4)


def test_set_of_possible_agents_is_refused():
    env = StubParallel()
    env.possible_agents = {"a", "b"}
    with pytest.raises(TypeError, match="possible_agents of the environment must be a sequence"):
        pm.wrap(env, 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [("possible_agents", ["a", "b"]), ("n_agents", 2), ("num_envs", 8), ("observation_spaces", {"a": 0, "b": 0})],
)
def test_plain_environment_of_several_agents_is_refused(name, value):
    env = Countdown()
    setattr(env, name, value)
    with pytest.raises(TypeError, match=f"env must have a single agent, got {name}=.*ParallelEnv"):
        pm.wrap(env, 4)


@pytest.mark.parametrize(
    ("reward", "ok"), [(1.0, True), (np.ones(1), True), (None, True), ([1.0, 2.0], False), ({"a": 1.0}, False)]
)
def test_reward_that_is_not_a_number_is_refused(reward, ok):
    class Pays(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)] * 2)

        def reset(self, *, seed=None, options=None):
            return (0, 0), {}

        def step(self, action):
            return (0, 0), reward, False, False, {}

    env = pm.wrap(Pays(), 4, seed=0)
    env.reset()
    if ok:
        assert env.step((0, 0))[1] is reward
    else:
        with pytest.raises(TypeError, match="reward must be a number, got"):
            env.step((0, 0))


@pytest.mark.parametrize("make", [StubParallel, StubAEC, Countdown])
def test_unknown_option_is_refused(make):
    with pytest.raises(TypeError, match="resample"):
        pm.wrap(make(), 4, resample=1)


def test_repr_of_wrappers_shows_environment_and_mapping():
    assert repr(pm.wrap(StubParallel(), pm.Fixed(0))).startswith("<PolicyMapParallel<")
    assert "Fixed(" in repr(pm.wrap(Countdown(), pm.Fixed(0)))


def test_infos_of_a_parallel_environment_are_its_own():
    env = pm.wrap(StubParallel(), 4, seed=0)
    with pytest.raises(AttributeError, match="infos"):
        _ = env.infos


def test_forced_policy_for_all_needs_possible_agents():
    env = pm.wrap(StubParallel(possible_agents=None), 4, seed=0)
    with pytest.raises(
        TypeError, match="must be a dict from agent to policy for an environment without possible_agents"
    ):
        env.reset(options={"policy_ids": 1})


def test_unknown_keyword_argument_is_refused():
    with pytest.raises(TypeError, match=r"unexpected keyword arguments \['sed'\], expected \['resample_every'"):
        pm.PolicyMapParallel(StubParallel(), 4, sed=3)


def test_wrapper_that_makes_several_agents_one_is_accepted():
    class Several(Countdown):
        n_agents = 2

    class Joined(gymnasium.ObservationWrapper):
        n_agents = 1

        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gymnasium.spaces.Box(0.0, 9.0, (2,))

        def observation(self, observation):
            return np.zeros(2, np.float32)

    with pytest.raises(TypeError, match="env must have a single agent, got n_agents=2"):
        pm.wrap(Several(), 4)
    assert pm.wrap(Joined(Several()), 4, seed=0).reset()[1]["policy_id"] in range(4)
