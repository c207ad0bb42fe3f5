"""Published self-play schedules, each written on the pool in at most 25 lines."""

import inspect

import numpy as np
import pytest

import pz_policymap as pm


def ml_agents_schedule(payoff, steps, save_steps=20_000, swap_steps=10_000, window=10, latest_ratio=0.5):
    """Unity ML-Agents: its self-play documentation."""

    def latest_or_window(win_rates):
        return pm.latest(len(win_rates), window=window, latest_ratio=latest_ratio)

    learner = pm.PoolLearner("main", {"snapshots": (1.0, latest_or_window)}, every=save_steps)
    pool = pm.SnapshotPool([learner])
    swapped = []
    for step in range(0, steps, 5_000):
        if pool.snapshot_due("main", step, payoff):
            pool.snapshot("main", step, payoff)
            for policy_id in pool.active()[:-window]:
                pool.retire(policy_id)
        if step % swap_steps == 0:
            swapped.append(pool.mapping(payoff))
        pool.release()
    return pool, swapped


def test_ml_agents_schedule_prefers_latest_within_window():
    payoff = pm.Payoff(1)
    pool, swapped = ml_agents_schedule(payoff, 500_000)
    active = pool.active()
    assert [pool.members[policy_id].step for policy_id in active] == list(range(300_000, 490_000, 20_000))
    assert list(pool.slots) == active  # the others are released
    weights = pool.opponent_weights("main", payoff)
    assert weights[active].tolist() == pytest.approx([0.05] * 9 + [0.55])
    assert len(swapped) == 50


def puffer_lib_schedule(payoff, play, steps):
    """PufferLib 4: a snapshot by win rate after a minimum of games or at a timeout, a bounded bank."""
    learner = pm.PoolLearner("main", win_rate=0.7, min_games=64, max_steps=1_000)
    pool = pm.SnapshotPool([learner], fixed=["random"], capacity=4, evict="spread")
    taken = []
    for step in range(0, steps, 100):
        if pool.snapshot_due("main", step, payoff):
            taken.append(pool.snapshot("main", step, payoff).step)
        pool.mapping(payoff)
        pool.release()
        play(pool.active())
    return pool, taken


def test_puffer_lib_schedule_keeps_a_bank_that_reaches_far_back():
    payoff = pm.Payoff(2)

    def play(opponents):
        for opponent in opponents:
            for _ in range(32):
                payoff.record(pm.Episode(policies=[0, opponent], returns=[1.0, 0.0]))

    pool, taken = puffer_lib_schedule(payoff, play, 10_000)
    assert taken[0] == 1_000  # without an opponent only the timeout counts
    assert len(pool.active()) <= 4
    assert len(taken) > 10
    steps = [pool.members[policy_id].step for policy_id in pool.active()]
    assert steps[0] < 0.35 * steps[-1]


def alphastar_league(payoff, initial, train, steps):
    """Vinyals et al. 2019, "Grandmaster level in StarCraft II", methods, "League training"."""
    main = {"self": 0.35, "all snapshots": (0.5, "pfsp"), "exploiter:snapshots": (0.15, "pfsp")}
    exploiter = {"main": 0.5, "main:snapshots": (0.5, lambda rates: pm.pfsp(rates, weighting="variance"))}
    pool = pm.SnapshotPool(
        [
            pm.PoolLearner("main", main, every=2_000),
            pm.PoolLearner("exploiter", exploiter, win_rate=0.7, max_steps=4_000),
            pm.PoolLearner("league exploiter", {"all snapshots": (1.0, "pfsp")}, win_rate=0.7, max_steps=2_000),
        ]
    )
    networks = [initial, initial, initial]
    for step in range(500, steps + 1, 500):
        train(networks, pool.mapping(payoff))
        for policy_id, learner in enumerate(["main", "exploiter", "league exploiter"]):
            if pool.snapshot_due(learner, step, payoff):
                exploits = learner != "main"  # an exploiter restarts from its initial parameters when it is frozen
                pool.snapshot(learner, step, payoff, reset=exploits)
                networks.append(networks[policy_id])
                networks[policy_id] = initial if exploits else networks[policy_id]
    return pool, networks


@pytest.mark.parametrize("schedule", [ml_agents_schedule, puffer_lib_schedule, alphastar_league])
def test_published_schedule_takes_at_most_25_lines(schedule):
    assert len(inspect.getsource(schedule).splitlines()) <= 25


def test_alphastar_league_resets_exploiters_when_they_are_frozen():
    payoff, at_step = pm.Payoff(3), []

    def train(networks, mapping):
        """Adds 1 to the parameters of each learner; the exploiter wins all its games, the others draw theirs."""
        networks[:3] = [network + 1 for network in networks[:3]]
        seats = pm.assignments(mapping, ["a", "b"], seed=len(at_step), episode=range(300), resample_every=1)
        for ids in seats.tolist():
            payoff.record(pm.Episode(policies=ids, returns=[float(policy == 1) for policy in ids]))
        at_step.append(list(networks))

    pool, networks = alphastar_league(payoff, 0, train, 12_000)
    taken = {learner: [m for m in pool.members[3:] if m.learner == learner] for learner in pool.names[:3]}
    assert [member.step for member in taken["main"]] == list(range(2_000, 12_001, 2_000))
    assert [member.step for member in taken["exploiter"]] == list(range(500, 12_001, 500))  # it always wins
    assert [member.step for member in taken["league exploiter"]] == list(range(2_000, 12_001, 2_000))
    assert networks[:3] == [24, 0, 0]  # main was never reset; the exploiters were at the last step
    assert [networks[member.policy_id] for member in taken["main"]] == [4, 8, 12, 16, 20, 24]
    assert {networks[member.policy_id] for member in taken["exploiter"]} == {1}  # each began at the initial parameters
    assert {networks[member.policy_id] for member in taken["league exploiter"]} == {4}
    # No result of an earlier exploiter counts for the one that has just begun.
    assert payoff.games[1].sum() == 0
    assert payoff.games[0].sum() > 0
    mapping = pool.mapping(payoff)
    seats = pm.assignments(mapping, ["a", "b"], seed=0, episode=np.arange(3_000), resample_every=1)
    met = np.bincount(np.sort(seats, axis=1)[:, 1], minlength=pool.num_policies)
    assert (met[[member.policy_id for member in taken["main"]]] > 0).all()
