"""PerWorker: a window of policies that slides over a worker's own order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import pz_policymap as pm
from pz_policymap import Draw, PerWorker, PolicyAssigner, Roles, Shared, Teams
from tests.stub_envs import StubParallel

MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all
AGENTS = ["a", "b", "c"]


def window(rule, worker, block, seed=0):
    """The policies of a worker's environments in a block, drawn for many seats."""
    envs = range(worker * rule.envs_per_worker, (worker + 1) * rule.envs_per_worker)
    draw = Draw.at(seed, list(range(200)), envs, [block * 10] * rule.envs_per_worker)
    return set(rule.assign(draw).ravel().tolist())


@settings(max_examples=80, deadline=None)
@given(
    policies=st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True),
    envs_per_worker=st.integers(1, 4),
    worker=st.integers(0, 10**6),
    block=st.integers(0, 10**6),
    data=st.data(),
)
def test_worker_uses_the_policies_that_needed_returns(policies, envs_per_worker, worker, block, data):
    size = data.draw(st.integers(1, len(policies)))
    rule = PerWorker(policies, size, envs_per_worker)
    needed = rule.needed(0, worker, block)
    assert len(needed) == len(set(needed)) == size
    assert window(rule, worker, block) == set(needed)


def test_one_policy_leaves_and_one_joins_at_every_block():
    rule = PerWorker(7, 3, 2)
    for worker in range(5):
        for block in range(20):
            now, following = rule.needed(0, worker, block), rule.needed(0, worker, block + 1)
            assert following[:-1] == now[1:]
            assert following[-1] not in now
            assert rule.needed(0, worker, block, block + 1) == [*now, following[-1]]


@pytest.mark.parametrize("drift", range(8))
def test_environments_d_blocks_apart_need_d_more_policies(drift):
    rule = PerWorker(9, 4, 6)
    blocks = np.array([5, 5, 5, 5 + drift, 5, 5 + drift // 2])
    draw = Draw.at(3, list(range(200)), np.arange(6) + 12, blocks * 10)
    needed = rule.needed(3, worker=2, block=5, last_block=5 + drift)
    assert len(needed) == min(4 + drift, 9)
    assert set(rule.assign(draw).ravel().tolist()) <= set(needed)


def test_policies_are_in_the_window_equally_often_over_a_full_circle():
    rule = PerWorker(6, 2, 3)
    for worker in range(10):
        played = [policy for block in range(6) for policy in window(rule, worker, block)]
        assert np.bincount(played).tolist() == [2] * 6


def test_policies_in_the_window_are_equally_likely_in_every_seat_and_independent():
    rule = PerWorker(6, 3, 10_000)
    draw = Draw.at(0, AGENTS, range(10_000), [0] * 10_000)
    place = {policy: i for i, policy in enumerate(rule.needed(0, 0, 0))}
    places = np.vectorize(place.get)(rule.assign(draw))
    assert chisquare(np.bincount(places @ [9, 3, 1], minlength=27)).pvalue > MIN_P


def test_workers_have_different_orders():
    rule = PerWorker(4, 1, 1)
    orders = [rule.assign(Draw.at(0, ["a"], range(6000), [block * 10] * 6000))[:, 0] for block in range(4)]
    _, counts = np.unique(np.transpose(orders) @ [64, 16, 4, 1], return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts).pvalue > MIN_P


def test_seeds_give_different_orders():
    rule = PerWorker(50, 50, 1)
    orders = [rule.needed(seed, 0, 0) for seed in (0, 1, (0, 1))]
    for i in range(3):
        assert sum(a == b for a, b in zip(orders[i], orders[i - 1], strict=True)) < 10


def test_window_of_all_policies_never_changes():
    rule = PerWorker(3, 3, 1)
    assert set(rule.needed(0, 0, 7)) == {0, 1, 2}
    assert sorted(rule.needed(0, 0, 7, 1000)) == [0, 1, 2]


def test_workers_need_exactly_the_announced_policies():
    rule = PerWorker(8, 2, 3)
    for worker in range(3):
        fns = pm.env_fns(StubParallel, 3, rule, resample_every=2, seed=5, env_index=3 * worker)
        envs = [fn() for fn in fns]
        for episode in range(12):
            needed = rule.needed(5, worker, episode // 2)
            for env in envs:
                env.reset()
                assert set(env.policy_ids.values()) <= set(needed)


def test_needed_holds_inside_shared():
    rule = PerWorker(8, 2, 1)
    played = Shared(rule).assign(Draw.at(0, AGENTS, [4] * 50, np.arange(50) * 10))
    assert (played == played[:, :1]).all()
    assert all(row[0] in rule.needed(0, 4, block) for block, row in enumerate(played.tolist()))


def test_roles_have_different_windows():
    rule = Roles({"x": PerWorker(8, 1, 1), "y": PerWorker(8, 1, 1)})
    both = rule.assign(Draw.at(0, ["x_0", "y_0"], np.arange(4000), [0] * 4000))
    assert chisquare(np.bincount(both[:, 0] * 8 + both[:, 1], minlength=64)).pvalue > MIN_P


def test_late_agent_gets_a_policy_of_the_window():
    script = [("a",), ("a", "b", "c"), ()]
    rule = PerWorker(9, 2, 1)
    env = pm.wrap(StubParallel(script, possible_agents=None), rule, seed=0, env_index=3)
    env.reset()
    before = env.policy_ids
    env.step({})
    assert env.policy_ids.items() >= before.items()
    assert set(env.policy_ids.values()) <= set(rule.needed(0, 3, 0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PerWorker(0, 1, 1), ValueError, "policies must be from 1"),
        (lambda: PerWorker(4, 0, 1), ValueError, "policies_per_worker must be from 1 to 4, got 0"),
        (lambda: PerWorker(4, 5, 1), ValueError, "policies_per_worker must be from 1 to 4, got 5"),
        (lambda: PerWorker([7, 9], 3, 1), ValueError, "policies_per_worker must be from 1 to 2, got 3"),
        (lambda: PerWorker(4, 2, 0), ValueError, "envs_per_worker must be at least 1, got 0"),
        (lambda: PerWorker(4, 2, 1.5), TypeError, "envs_per_worker must be an integer, got 1.5"),
        (lambda: PerWorker(4, 2, 1).needed(0, -1, 0), ValueError, "worker must be at least 0, got -1"),
        (lambda: PerWorker(4, 2, 1).needed(0, 0, -1), ValueError, "block must be at least 0, got -1"),
        (lambda: PerWorker(4, 2, 1).needed(0, 0, 3, 2), ValueError, "last_block must be at least 3, got 2"),
        (lambda: PerWorker(4, 2, 1).needed(None, 0, 3), TypeError, "seed must be an integer, got None"),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"seed": 0}, "env_index must be the index of this environment"), ({"env_index": 0}, "seed must be given")],
)
@pytest.mark.parametrize("rule", [PerWorker(4, 2, 2), Teams(PerWorker(4, 2, 2))])
def test_missing_env_index_or_seed_raises(rule, given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        PolicyAssigner(rule, AGENTS, **given)
