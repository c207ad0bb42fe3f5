"""Runs of very many episodes: nothing grows, the cadence is exact to the end, and no counter is too small.

With --long a run has 10**6 episodes, and the memory of the process is watched too; else it has 10,000.
"""

import gc
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import pz_policymap as pm
from tests.stub_envs import StubAEC, StubParallel
from tests.vector_envs import BOX, TWO, needs_modes

AGENTS = ("a", "b")
EVERY, WARMUP = 7, 3
NUM_POLICIES = 5
SEED = 11
NUM_ENVS = 4  # of the drivers with many
WARM, TRACED, SHORT, LONG = 500, 4_000, 10_000, 10**6  # episodes: before memory is looked at, then in all
SLACK = 24_000  # bytes; one object or pointer per episode would exceed it
PAGES = 8 * 2**20  # bytes by which a process may still grow
MEMORY = Path("/proc/self/statm")


@dataclass
class Counted(pm.PolicyMapping):
    """Draws uniformly, and counts the draws."""

    asked: list = field(default_factory=lambda: [0], repr=False)

    def assign(self, draw):
        self.asked[0] += draw.num_envs
        return draw.integers(NUM_POLICIES)

    def __repr__(self):
        return "Counted()"


class Metronome(gymnasium.vector.VectorEnv):
    """Row i ends every i + 1 steps, and is reset in the same step."""

    single_observation_space = BOX
    single_action_space = TWO
    num_envs = NUM_ENVS

    def __init__(self):
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros((NUM_ENVS, 1), np.float32), {}

    def step(self, actions):
        self.time += 1
        ended = self.time % np.arange(1, NUM_ENVS + 1) == 0
        observations = np.zeros((NUM_ENVS, 1), np.float32)
        return observations, np.ones(NUM_ENVS), ended, np.zeros(NUM_ENVS, np.bool_), {}


def settings(rule):
    return {"mapping": rule, "resample_every": EVERY, "warmup_episodes": WARMUP, "seed": SEED}


class Alone:
    """An assigner of one environment; the others drive it through a wrapper. `play` begins that many episodes."""

    def __init__(self, rule):
        self.assigner = pm.PolicyAssigner(agents=AGENTS, **settings(rule))

    def play(self, episodes):
        for _ in range(episodes):
            self.assigner.begin_episodes()


class Many(Alone):
    """An assigner of several environments, whose episodes are over at different times."""

    def __init__(self, rule):
        self.assigner = pm.PolicyAssigner(agents=AGENTS, num_envs=NUM_ENVS, **settings(rule))
        self.time = 0

    def play(self, episodes):
        left = episodes
        while left > 0:
            self.time += 1
            over = [row for row in range(NUM_ENVS) if self.time % (row + 1) == 0]
            self.assigner.begin_episodes(over)
            left -= len(over)


class Parallel(Alone):
    def __init__(self, rule):
        self.env = pm.wrap(self.bare(), **settings(rule))
        self.assigner = self.env.assigner

    def bare(self):
        return StubParallel([AGENTS, ()])

    def play(self, episodes):
        for _ in range(episodes):
            self.env.reset()
            self.env.step({"a": 0, "b": 0})


class Recorded(Parallel):
    """The same with ledgers."""

    def __init__(self, rule):
        super().__init__(rule)
        self.payoff, self.statistics = pm.Payoff(NUM_POLICIES), pm.PolicyStatistics(NUM_POLICIES)
        self.env = pm.record_results(self.env, self.payoff, self.statistics)


class TurnBased(Parallel):
    def bare(self):
        return StubAEC({"a": 1, "b": 1})

    def play(self, episodes):
        for _ in range(episodes):
            self.env.reset()
            while self.env.agents:
                _, _, terminated, _, _ = self.env.last()
                self.env.step(None if terminated else 0)


class Vector(Parallel):
    """Every row is an environment of one agent."""

    def bare(self):
        return Metronome()

    def play(self, episodes):
        if self.assigner.episode[0] < 0:
            self.env.reset()
        first = self.assigner.episode
        while (self.assigner.episode - first).sum() < episodes:
            self.env.step(np.zeros(NUM_ENVS, np.int64))


DRIVERS = [Alone, Many, Parallel, Recorded, TurnBased, pytest.param(Vector, marks=needs_modes)]


def draws_up_to(episode):
    """Counts the draws of an environment from its first episode to this one, one by one."""
    return sum(e % EVERY == 0 or e < WARMUP for e in range(episode + 1))


def expected_at(assigner, row=0):
    """Returns the assignment of a row's current episode, computed from the contract."""
    episode = int(assigner.episode[row])
    drawn = episode if episode < WARMUP else max(WARMUP - 1, episode // EVERY * EVERY)
    draw = pm.Draw.at(SEED, assigner.agents, [row], [drawn])
    return drawn, draw.integers(NUM_POLICIES)[0].tolist()


def assert_exact(assigner):
    for row in range(assigner.num_envs):
        drawn, policies = expected_at(assigner, row)
        assert assigner.draw_episode[row] == drawn
        assert assigner.policy_ids[row].tolist() == policies


def resident():
    """Returns the memory that this process holds, in bytes; 0 if the system does not report it."""
    return int(MEMORY.read_text(encoding="ascii").split()[1]) * 4096 if MEMORY.exists() else 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_long_run_keeps_memory_constant_and_cadence_exact(driver, long_run):
    run = driver(Counted())
    asked = run.assigner.mapping.asked
    run.play(WARM)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    run.play(TRACED)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < SLACK
    before = resident()
    run.play((LONG if long_run else SHORT) - TRACED - WARM)
    print(f"{driver.__name__}: {grown} bytes, then {resident() - before} of the process")  # noqa: T201  # for -s
    assert not long_run or resident() - before < PAGES

    episodes = (run.assigner.episode + 1).tolist()
    assert sum(episodes) >= (LONG if long_run else SHORT)
    assert asked == [sum(draws_up_to(count - 1) for count in episodes)]
    assert_exact(run.assigner)
    if isinstance(run, Recorded):
        shared = run.payoff.episodes  # on the diagonal, one policy in both seats
        assert np.triu(shared).sum() == sum(episodes)
        assert run.statistics.episodes.tolist() == shared.sum(axis=1).tolist()
        assert (run.payoff.games + np.diag(shared.diagonal())).tolist() == shared.tolist()


def at(driver, episode):
    """Returns a run that is about to begin this episode, from a state such as its predecessor would have saved."""
    run = driver(Counted())
    if isinstance(run, Vector):
        run.env.reset()
    else:
        run.play(1)
    if isinstance(run, Many):
        run.assigner.begin_episodes(range(1, NUM_ENVS))
    state = run.assigner.state_dict()
    drawn = (episode - 1) // EVERY * EVERY
    rows = np.arange(run.assigner.num_envs)
    policies = pm.Draw.at(SEED, run.assigner.agents, rows, np.full(len(rows), drawn)).integers(NUM_POLICIES)
    alone = len(rows) == 1
    state["episode"] = episode - 1 if alone else np.full(len(rows), episode - 1)
    state["draw"]["episode"] = drawn if alone else np.full(len(rows), drawn)
    state["draw"]["policies"] = policies[0].tolist() if alone else policies
    fresh = driver(Counted())
    fresh.assigner.load_state_dict(state)
    return fresh


@pytest.mark.parametrize("border", [2**31, 2**32, 2**53, 2**61], ids=["2**31", "2**32", "2**53", "2**61"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_episode_counters_at_machine_word_limits_are_exact(driver, border):
    run = at(driver, border - 10)
    if isinstance(run, Vector):
        run.env.reset()
        assert run.assigner.episode.tolist() == [border - 10] * NUM_ENVS
    while int(run.assigner.episode.min()) < border + 2 * EVERY:
        run.play(1)
        for row, episode in enumerate(run.assigner.episode.tolist()):
            drawn = episode // EVERY * EVERY
            assert run.assigner.draw_episode[row] == drawn
            assert run.assigner.block[row] == WARMUP - 1 + drawn // EVERY
            expected = pm.Draw.at(SEED, run.assigner.agents, [row], [drawn]).integers(NUM_POLICIES)[0]
            assert run.assigner.policy_ids[row].tolist() == expected.tolist()
    assert int(run.assigner.episode.max()) >= border + 2 * EVERY


@pytest.mark.parametrize("doublings", [31, 32, 52])
def test_game_counters_at_machine_word_limits_are_exact(doublings):
    """Up to 2**53, from where on not every integer is a float."""
    payoff, won = pm.Payoff(3), pm.Episode(policies=[0, 1], returns=[1.0, 0.25])
    payoff.record(won)
    for _ in range(doublings):
        other = pm.Payoff(3)
        other.load_state_dict(payoff.state_dict())
        payoff.merge(other)
    for _ in range(3):
        payoff.record(won)
    payoff.record(pm.Episode(policies=[0, 1], returns=[0.5, 0.5]))
    assert payoff.wins[0, 1] == payoff.losses[1, 0] == 2**doublings + 3
    assert payoff.games[0, 1] == payoff.episodes[1, 0] == 2**doublings + 4
    assert payoff.mean_returns[1, 0] == pytest.approx(0.25)


@pytest.mark.parametrize("border", [2**31, 2**32])
def test_statistics_counters_at_machine_word_limits_are_exact(border):
    statistics = pm.PolicyStatistics(2, window=3)
    state = statistics.state_dict()
    state["episodes"] += border - 2
    statistics.load_state_dict(state)
    for value in range(5):
        statistics.record(pm.Episode(policies=[0, 1], returns=[value, -value], lengths=[border, 1]))
    assert statistics.episodes.tolist() == [border + 3] * 2
    assert statistics.steps.tolist() == [5 * border, 5]
    assert statistics.mean_return.tolist() == [3.0, -3.0]
