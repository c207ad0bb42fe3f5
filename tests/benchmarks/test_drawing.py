"""Cost of draws: many environments in one call, scattered episodes, single resets, memory, and import."""

import random
import statistics
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.assigner import PolicyAssigner

NUM_POLICIES = 8
SEATS = ["a", "b", "c", "d"]
MANY = 10**6


def test_many_environments_in_one_draw(side_by_side, report):
    assigner = PolicyAssigner(NUM_POLICIES, SEATS, MANY, resample_every=1, seed=0)
    rng, words = np.random.default_rng(0), np.random.Philox(0)

    def bare():
        """Draws and scales the same bits and nothing else: the lower bound of the draw."""
        policy_ids = np.empty((MANY, len(SEATS)), np.int32)
        for start in range(0, MANY, 16_384):
            part = policy_ids[start : start + 16_384]
            part[:] = (words.random_raw(part.shape) >> 11).view(np.int64) * (NUM_POLICIES * 2.0**-53)
        return policy_ids

    ours, numpys, least = side_by_side(
        assigner.begin_episodes, lambda: rng.integers(0, NUM_POLICIES, (MANY, len(SEATS))), bare, rounds=25
    )
    report("10^6 x 4 seats in one draw", "Generator.integers of that shape", ours / numpys, 2, 6)
    report("10^6 x 4 seats in one draw", "the same bits, drawn and scaled by bare lines", ours / least, 1.5, 3)


@pytest.mark.parametrize(("resample_every", "target", "tolerance"), [(10, 60, 30), (1, 60, 15)])
def test_an_assignment_in_bulk_against_sample_factory(side_by_side, report, resample_every, target, tolerance):
    published = pytest.importorskip(
        "sample_factory.algo.utils.agent_policy_mapping", reason="sample-factory pins old versions of everything"
    )
    cfg = SimpleNamespace(
        num_policies=NUM_POLICIES, pbt_mix_policies_in_one_env=True, async_rl=True, num_workers=1, num_envs_per_worker=1
    )
    mapping = published.AgentPolicyMapping(cfg, SimpleNamespace(num_agents=len(SEATS)))
    mapping.resample_env_policy_every = resample_every

    def ask(environments=100):
        for env_index in range(environments):
            for _ in range(resample_every):
                for seat in range(len(SEATS)):
                    mapping.get_policy_for_agent(seat, env_index, env_index)
        return environments * resample_every * len(SEATS)

    assigner = PolicyAssigner(NUM_POLICIES, SEATS, MANY, resample_every=resample_every, seed=0)

    def draw():
        for _ in range(resample_every):
            assigner.begin_episodes()
        return MANY * resample_every * len(SEATS)

    for _ in range(3):
        ask()  # its first five requests always draw
    ours, theirs = side_by_side(draw, ask, rounds=11)
    ratio = (theirs / ask()) / (ours / draw())
    what = f"an assignment in bulk, drawn every {resample_every} episodes"
    report(what, "Sample Factory's mapping", ratio, target, tolerance, more_is_better=True)


def test_an_assignment_in_bulk_against_rllib(side_by_side, report):
    rllib = pytest.importorskip("ray.rllib.env.multi_agent_episode", reason="ray is large")
    modules = [f"policy_{i}" for i in range(NUM_POLICIES)]
    episodes = []

    def begin_episodes():
        episodes[:] = [
            rllib.MultiAgentEpisode(agent_to_module_mapping_fn=lambda agent, episode: random.choice(modules))
            for _ in range(200)
        ]

    def ask():
        for episode in episodes:
            for agent in SEATS:
                episode.module_for(agent)

    assigner = PolicyAssigner(NUM_POLICIES, SEATS, MANY, resample_every=1, seed=0)
    assigner.begin_episodes()
    ours, theirs = side_by_side(assigner.begin_episodes, ask, rounds=15, before=begin_episodes)
    what = "an assignment in bulk, drawn every episode"
    report(what, "RLlib's module_for, a random mapping", theirs / 200 / (ours / MANY), 20, 8, more_is_better=True)


def test_scattered_environments(side_by_side, report):
    rows = 16_384
    assigner = PolicyAssigner(NUM_POLICIES, SEATS, rows, resample_every=1, seed=0)
    assigner.begin_episodes()
    rng = np.random.default_rng(0)
    for _ in range(20):
        assigner.begin_episodes(rng.random(rows) < 0.5)
    episodes = assigner.episode.tolist()

    native = np.random.Philox(0)
    state = native.state

    def one_counter_set_a_row():
        words = np.empty((rows, 4), np.uint64)
        for row, episode in enumerate(episodes):
            state["state"]["counter"][:] = row, 0, episode, 0
            native.state = state
            words[row] = native.random_raw(4)
        return words

    ours, theirs = side_by_side(assigner.begin_episodes, one_counter_set_a_row, rounds=15)
    report("16,384 rows at scattered episodes redraw", "one counter set per row", ours / theirs, 0.1, 0.25)


def test_weights_callable_that_returns_a_matrix(side_by_side, report):
    payoff = pm.Payoff(500)

    def weights():
        return pm.pfsp(payoff.win_rates, floor=0.1)

    rule = pm.Focal(pm.Fixed(0), pm.Weighted(weights), rotate=False)
    assigner = PolicyAssigner(rule, ["a", "b"], resample_every=1, seed=0)
    ours, callable_alone = side_by_side(assigner.begin_episodes, weights, rounds=15)
    report("a draw by a matrix of 500 x 500 weights", "its weights callable", ours / callable_alone, 1.3, 2)


def test_agents_that_join_one_by_one(side_by_side, report):
    def join(count):
        assigner = PolicyAssigner(NUM_POLICIES, None, seed=0)
        assigner.begin_episodes(agents=["first"])
        for number in range(count):
            assigner.add_agents([number])

    many, few = side_by_side(lambda: join(8000), lambda: join(500), rounds=11)
    report("an agent that joins, one of 8,000", "one of 500", many / few / 16, 1.2, 2.5)


def test_draw_memory_against_the_result(report):
    tracemalloc.start()
    try:
        assigner = PolicyAssigner(NUM_POLICIES, SEATS, MANY, seed=0)
        assigner.begin_episodes()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    report("memory of an assigner for 10^6 x 4", "its policy ids", held / assigner.policy_ids.nbytes, 3, 3)


def test_import_time_against_its_dependencies(report):
    code = (
        "import time\n"
        "start = time.process_time()\n"
        "import numpy, gymnasium, pettingzoo\n"
        "between = time.process_time()\n"
        "import pz_policymap\n"
        "end = time.process_time()\n"
        "pz_policymap.wrap\n"
        "print((end - start) / (between - start), (time.process_time() - start) / (between - start))"
    )
    pytest.importorskip("pettingzoo")
    runs = [
        [
            float(word)
            for word in subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
        ]
        for _ in range(11)
    ]
    alone, in_use = map(statistics.median, zip(*runs, strict=True))
    theirs = "importing numpy, gymnasium and pettingzoo"
    report("import pz_policymap", theirs, alone, 1.05, 1.2)
    report("import pz_policymap, and what wrap needs", theirs, in_use, 1.2, 1.6)
