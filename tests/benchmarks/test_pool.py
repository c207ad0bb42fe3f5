"""Cost of a `SnapshotPool`: once per rollout, and none per step."""

import itertools

import pytest
from pettingzoo.classic import rps_v2

import pz_policymap as pm

ACTIVE = 32


def make_pool(rule="pfsp", **when):
    """Returns a pool with many active snapshots, and its ledger."""
    opponents = {"snapshots": (0.8, rule), "random": 0.2}
    pool = pm.SnapshotPool([pm.PoolLearner("main", opponents, **when)], fixed=["random"], capacity=ACTIVE + 1)
    payoff = pm.Payoff(2)
    for step in range(ACTIVE):
        pool.snapshot("main", step, payoff)
    return pool, payoff


@pytest.mark.parametrize("when", [{"every": 10**9}, {"win_rate": 1.0, "min_games": 10**6}])
def test_asking_whether_a_snapshot_is_due(side_by_side, report, when):
    pool, payoff = make_pool(**when)
    (seconds,) = side_by_side(lambda: pool.snapshot_due("main", ACTIVE, payoff))
    report(f"snapshot_due by {next(iter(when))}, {ACTIVE} active", "20 microseconds", seconds / 20e-6, 1, 3)


@pytest.mark.parametrize(("rule", "changes"), [("uniform", "same"), ("pfsp", "new")])
def test_rollout_with_a_mapping(side_by_side, report, rule, changes):
    pool, payoff = make_pool(rule, every=10**9)
    env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), resample_every=1, seed=0)
    plain, other = rps_v2.parallel_env(), pm.Payoff(pool.num_policies)
    other.record(pm.Episode([0, 5], [1.0, 0.0]))
    ledgers = itertools.cycle([payoff, other])  # PFSP then has other weights in every rollout

    def ask():
        ledger = next(ledgers)
        pool.snapshot_due("main", ACTIVE, ledger)
        env.set_mapping(pool.mapping(ledger))
        pool.release([env])

    def episode():
        plain.reset()
        while plain.agents:
            plain.step({"player_0": 0, "player_1": 0})

    ours, theirs = side_by_side(ask, episode)
    what = f"due, mapping, set_mapping and release, {ACTIVE} active, {rule}, {changes} mapping"
    report(what, "an episode of rps_v2", ours / theirs, 0.25, 1)


def test_steps_between_rollouts(side_by_side, report):
    pool, payoff = make_pool(every=10**9)
    envs = [
        pm.wrap(rps_v2.parallel_env(max_cycles=10**9), mapping, resample_every=1, seed=0)
        for mapping in (pool.mapping(payoff), 2)
    ]
    for env in envs:
        env.reset()
    ours, theirs = side_by_side(*(lambda env=env: env.step({"player_0": 0, "player_1": 0}) for env in envs))
    report("a step under the mapping of a pool", "a step under Uniform(2)", ours / theirs, 1.05, 1.5)
