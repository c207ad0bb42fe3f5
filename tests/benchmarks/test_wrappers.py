"""Cost of the tag in PettingZoo environments, alone and within whole steps."""

import time
from typing import Any, ClassVar

import numpy as np
import pytest

import pz_policymap as pm

pettingzoo = pytest.importorskip("pettingzoo")

NUM_POLICIES = 8


class Still(pettingzoo.ParallelEnv):
    """Does nothing, at no cost."""

    metadata: ClassVar[dict[str, Any]] = {"name": "still_v0"}

    def __init__(self, num_agents, infos):
        self.possible_agents = self.agents = [f"agent_{i}" for i in range(num_agents)]
        self.nothing = dict.fromkeys(self.agents, 0)
        self.infos = {agent: {f"key_{i}": i for i in range(infos)} for agent in self.agents}
        self.outcome = (self.nothing, self.nothing, self.nothing, self.nothing, self.infos)

    def reset(self, seed=None, options=None):
        return self.nothing, self.infos

    def step(self, actions):
        return self.outcome


class StillTurns(pettingzoo.AECEnv):
    """The same, turn-based."""

    metadata: ClassVar[dict[str, Any]] = {"name": "still_turns_v0"}

    def __init__(self, num_agents):
        super().__init__()
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}

    def observe(self, agent):
        return 0

    def step(self, action):
        pass


class HandwrittenDraw(pettingzoo.utils.BaseParallelWrapper):
    """Draws a policy per agent from NumPy's generator at each reset."""

    rng = np.random.default_rng(0)

    def reset(self, seed=None, options=None):
        observations, infos = self.env.reset(seed, options)
        policies = self.rng.integers(0, NUM_POLICIES, len(self.env.agents)).tolist()
        tags = zip(infos.items(), policies, strict=True)
        return observations, {agent: info | {"policy_id": policy} for (agent, info), policy in tags}


@pytest.mark.parametrize(
    ("mapping", "target"),
    [(pm.Uniform(NUM_POLICIES), 4), (pm.Focal(pm.Fixed(0), pm.Weighted(range(NUM_POLICIES))), 10)],
    ids=["uniform", "focal"],
)
def test_reset_of_a_single_environment_with_a_draw(side_by_side, report, mapping, target):
    ours, theirs = side_by_side(
        pm.wrap(Still(2, 0), mapping, resample_every=1, seed=0).reset, HandwrittenDraw(Still(2, 0)).reset
    )
    report(f"reset with a draw, {mapping!r}", "a handwritten wrapper", ours / theirs, target, 2 * target)


@pytest.mark.parametrize("num_keys", [0, 3])
@pytest.mark.parametrize("num_agents", [2, 10, 64, 256])
def test_tag_costs_about_a_dict_comprehension(side_by_side, report, num_agents, num_keys):
    bare = Still(num_agents, num_keys)
    wrapped = pm.PolicyMapParallel(bare, NUM_POLICIES)
    wrapped.reset(seed=0)
    policy_ids = wrapped.policy_ids
    actions = bare.nothing

    def by_hand():
        observations, rewards, terminations, truncations, infos = bare.step(actions)
        infos = {agent: {**info, "policy_id": policy_ids[agent]} for agent, info in infos.items()}
        return observations, rewards, terminations, truncations, infos

    assert by_hand() == wrapped.step(actions)
    ours, persons = side_by_side(lambda: wrapped.step(actions), by_hand, rounds=101)
    what = f"PolicyMapParallel.step, tag alone, {num_agents} agents, infos of {num_keys} keys"
    report(what, "a dict comprehension", ours / persons, 1.1, 2)


def simple_spread():
    return pytest.importorskip("mpe2.simple_spread_v3").parallel_env(N=10, max_cycles=10**9)


def pistonball():
    butterfly = pytest.importorskip("pettingzoo.butterfly.pistonball_v6")
    return butterfly.parallel_env(max_cycles=10**9)


def whole_and_inner(make, rounds=300):
    """Returns the times of each wrapped step and of the bare step inside it.

    Both are measured in the same steps, so that differences between steps cancel.
    """
    bare = make()
    inner_step, inner, whole = bare.step, [], []

    def timed(actions):
        start = time.process_time()
        outcome = inner_step(actions)
        inner.append(time.process_time() - start)
        return outcome

    bare.step = timed
    env = pm.wrap(bare, NUM_POLICIES)
    env.reset(seed=0)
    actions = nothing_done(env)
    for _ in range(rounds):
        start = time.process_time()
        env.step(actions)
        whole.append(time.process_time() - start)
    return np.array(whole), np.array(inner)


def nothing_done(env):
    space = env.action_space(env.possible_agents[0])
    return {agent: np.zeros_like(space.sample()) for agent in env.possible_agents}


@pytest.mark.parametrize("make", [simple_spread, pistonball])
def test_wrapped_step_costs_about_a_bare_one(report, make):
    whole, inner = whole_and_inner(make)
    report(f"a step of {make.__name__}, wrapped", "the bare environment", np.median(whole / inner), 1.02, 1.2)


def test_last_costs_the_same_at_any_number_of_agents(side_by_side, report):
    few, many = (pm.PolicyMapAEC(StillTurns(num_agents), NUM_POLICIES) for num_agents in (2, 256))
    few.reset(seed=0)
    many.reset(seed=0)
    times = side_by_side(many.last, few.last, rounds=101)
    report("PolicyMapAEC.last(), 256 agents", "the same, 2 agents", times[0] / times[1], 1.2, 2)


def test_a_turn_costs_little_more_than_that_of_a_wrapper_that_does_nothing(side_by_side, report):
    from pettingzoo.utils import BaseWrapper

    environments = [pm.PolicyMapAEC(StillTurns(2), NUM_POLICIES), BaseWrapper(StillTurns(2))]
    for env in environments:
        env.reset(seed=0)

    def turn(env):
        env.last()
        env.step(0)

    ours, theirs = side_by_side(*[lambda env=env: turn(env) for env in environments], rounds=101)
    report("a turn of PolicyMapAEC: last and step", "PettingZoo's BaseWrapper", ours / theirs, 1.5, 3)


def test_a_reset_with_a_draw_is_faster_than_an_agent_indicator(side_by_side, report):
    supersuit = pytest.importorskip("supersuit")
    ours, theirs = (
        pm.wrap(simple_spread(), NUM_POLICIES, resample_every=1),
        supersuit.agent_indicator_v0(simple_spread()),
    )
    ours.reset(seed=0), theirs.reset(seed=0)
    times = side_by_side(ours.reset, theirs.reset, rounds=101)
    report("reset with a draw, 10 agents", "SuperSuit's agent_indicator_v0", times[0] / times[1], 1, 1.5)


def test_a_step_adds_less_time_than_an_agent_indicator(side_by_side, report):
    supersuit = pytest.importorskip("supersuit")
    environments = [simple_spread(), supersuit.agent_indicator_v0(simple_spread())]
    for env in environments:
        env.reset(seed=0)
    actions = nothing_done(environments[0])
    bare, theirs = side_by_side(*[lambda env=env: env.step(actions) for env in environments], rounds=101)
    whole, inner = whole_and_inner(simple_spread)
    ratio = (theirs - bare) / np.median(whole - inner)
    what = "time that wrap adds to a step of simple_spread, how much less"
    report(what, "SuperSuit's agent_indicator_v0", ratio, 10, 3, more_is_better=True)
