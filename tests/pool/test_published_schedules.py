"""Published self-play schedules, each written on the pool in at most 25 lines."""

import numpy as np
import pytest

import pz_policymap as pm


def test_ml_agents_schedule():
    """Unity ML-Agents: save_steps, window and play_against_latest_model_ratio (its self-play documentation)."""
    save_steps, window, latest_ratio = 20_000, 10, 0.5

    def latest_or_window(win_rates):
        return pm.latest(len(win_rates), window=window, latest_ratio=latest_ratio)

    learner = pm.PoolLearner("main", {"snapshots": (1.0, latest_or_window)}, every=save_steps)
    pool = pm.SnapshotPool([learner], capacity=window)
    payoff = pm.Payoff(1)
    for step in range(0, 500_000, 5_000):
        if pool.snapshot_due("main", step, payoff):
            pool.snapshot("main", step)
            payoff.grow(pool.num_policies)
        pool.mapping(payoff)
        pool.release()
    active = pool.active()
    assert len(active) == window - 1  # a slot is free: the next snapshot is due with the next rollout
    weights = pool.opponent_weights("main", payoff)
    assert weights[active[-1]] == pytest.approx(0.5 + 0.5 / len(active))
    assert weights[active[:-1]].tolist() == pytest.approx([0.5 / len(active)] * (len(active) - 1))


def test_puffer_lib_schedule():
    """PufferLib 4: a snapshot by win rate after a minimum of games or at a timeout, a bounded bank."""
    learner = pm.PoolLearner("main", win_rate=0.7, min_games=64, max_steps=1_000)
    pool = pm.SnapshotPool([learner], fixed=["random"], capacity=4, evict="spread")
    payoff, taken = pm.Payoff(2), []
    for step in range(0, 10_000, 100):
        if pool.snapshot_due("main", step, payoff):
            taken.append(step)
            pool.snapshot("main", step, payoff)
            payoff.grow(pool.num_policies)
        pool.mapping(payoff)
        pool.release()
        for opponent in pool.active():
            for _ in range(32):
                payoff.record(pm.Episode(policies=[0, opponent], returns=[1.0, 0.0]))
    assert taken[0] == 1_000  # without an opponent only the timeout counts
    assert len(pool.active()) <= 4
    assert len(taken) > 10
    steps = [pool.members[policy_id].step for policy_id in pool.active()]
    assert steps[0] < 0.35 * steps[-1]  # the bank reaches far back


def alphastar_league():
    """Vinyals et al. 2019, "Grandmaster level in StarCraft II", methods, "League training"."""
    main = {"self": 0.35, "all snapshots": (0.5, "pfsp"), "exploiter:snapshots": (0.15, "pfsp")}

    def variance(win_rates):
        return pm.pfsp(win_rates, weighting="variance")

    exploiter = {"main": 0.5, "main:snapshots": (0.5, variance)}
    return pm.SnapshotPool(
        [
            pm.PoolLearner("main", main, every=2_000),
            pm.PoolLearner("exploiter", exploiter, win_rate=0.7, max_steps=4_000),
            pm.PoolLearner("league exploiter", {"all snapshots": (1.0, "pfsp")}, win_rate=0.7, max_steps=2_000),
        ]
    )


def train(pool, steps, initial):
    """Trains every learner; returns the parameters by policy id and the ledger."""
    payoff, networks = pm.Payoff(pool.num_policies), {0: initial, 1: initial, 2: initial}
    for step in range(0, steps, 500):
        for policy_id, learner in enumerate(["main", "exploiter", "league exploiter"]):
            networks[policy_id] += 1
            if pool.snapshot_due(learner, step, payoff):
                member = pool.snapshot(learner, step, payoff)
                payoff.grow(pool.num_policies)
                networks[member.policy_id] = networks[policy_id]
                if learner != "main":  # an exploiter restarts from its initial parameters when it is frozen
                    networks[policy_id] = initial
                    payoff.forget(policy_id) if hasattr(payoff, "forget") else None
    return networks, payoff


def test_alphastar_league():
    pool = alphastar_league()
    networks, payoff = train(pool, 12_000, initial=0)
    owners = [member.learner for member in pool.members[3:]]
    assert owners.count("main") == 5
    assert owners.count("exploiter") == 2
    assert owners.count("league exploiter") == 5
    assert networks[0] == 24  # main was never reset
    assert networks[2] < 6
    mapping = pool.mapping(payoff)
    seats = pm.assignments(mapping, ["a", "b"], seed=0, episode=np.arange(3_000), resample_every=1)
    met = np.bincount(np.sort(seats, axis=1)[:, 1], minlength=pool.num_policies)
    assert (met[3:] > 0).all()
