"""Balanced: the seats of all environments shared out among the policies, block by block."""

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import pz_policymap as pm
from pz_policymap import Balanced, Draw, PolicyAssigner, Roles, Shared, Teams, Uniform
from tests.stub_envs import StubParallel

MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all

getcontext().prec = 60
GOLDEN_RATIO = (1 + Decimal(5).sqrt()) / 2


def shares_due(num_seats, weights, block):
    """Systematic rounding in exact numbers: floor(C_p + t) - floor(C_{p-1} + t) with t = frac(block * golden ratio)."""
    fractions = [Fraction(str(weight)) for weight in weights]
    t = Fraction(block * GOLDEN_RATIO % 1)
    total = [num_seats * part / sum(fractions) for part in itertools.accumulate(fractions)]
    ends = [math.floor(c + t) for c in total]
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def agents_of(num_seats):
    return [f"agent_{i}" for i in range(num_seats)]


def shares(rule, num_seats, block, seed=0):
    draw = Draw.at(seed, agents_of(num_seats), range(rule.num_envs), [block * 10] * rule.num_envs)
    return np.bincount(rule.assign(draw).ravel(), minlength=rule.size).tolist()


@pytest.mark.parametrize(("num_envs", "num_seats"), [(10, 1), (5, 2), (2, 5), (1, 10)])
@pytest.mark.parametrize("block", [0, 1, 2, 3, 1000, 10**9])
def test_shares_with_weights_8_1_1_of_ten_seats_are_8_1_1(num_envs, num_seats, block):
    # int(n * share) would lose seats: the figures of the defect in other codes.
    assert shares(Balanced(3, num_envs, [0.8, 0.1, 0.1]), num_seats, block) == [8, 1, 1]


@pytest.mark.parametrize(
    ("num_envs", "num_seats", "weights"),
    [
        (5, 2, [1, 1, 1]),
        (4, 1, [0.7, 0.2, 0.1]),
        (10, 1, [0.7, 0.2, 0.1]),
        (10, 1, [0.2, 0.4, 0.3, 0.1]),  # their sums in binary fall short of 0.9
        (7, 3, [0.35, 0.35, 0.2, 0.1]),
        (64, 4, [5, 0, 1, 1, 1]),
        (100, 10, [0.001, 0.999]),
        (3, 1, [1] * 8),
    ],
)
def test_shares_are_those_of_systematic_rounding(num_envs, num_seats, weights):
    rule = Balanced(len(weights), num_envs, weights)
    for block in [*range(60), 10**6, 10**9 + 7]:
        assert shares(rule, num_seats, block) == shares_due(num_envs * num_seats, weights, block)


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any),
    num_envs=st.integers(1, 30),
    num_seats=st.integers(1, 6),
    block=st.integers(0, 2**32),
)
def test_shares_are_quotas_rounded_up_or_down(weights, num_envs, num_seats, block):
    got = shares(Balanced(len(weights), num_envs, weights), num_seats, block)
    assert sum(got) == num_envs * num_seats
    for share, weight in zip(got, weights, strict=True):
        due = Fraction(num_envs * num_seats * weight, sum(weights))
        assert share in {math.floor(due), math.ceil(due)}


def test_ten_seats_of_three_policies_even_out_over_blocks():
    # Largest remainder would say [4, 3, 3] for ever.
    played = np.cumsum([shares(Balanced(3, 10), 1, block) for block in range(300)], axis=0)
    due = np.arange(1, 301)[:, None] * 10 / 3
    assert abs(played - due).max() < 3
    assert abs(played[-1] - 1000).max() <= 2


def test_rare_policy_gets_seats_over_blocks():
    played = np.sum([shares(Balanced(3, 2, [0.7, 0.2, 0.1]), 2, block) for block in range(100)], axis=0)
    assert abs(played - [280, 80, 40]).max() <= 2


def test_shares_without_weights_are_equal():
    draw = Draw.at(0, agents_of(3), range(8), [0] * 8)
    np.testing.assert_array_equal(Balanced(5, 8).assign(draw), Balanced(5, 8, [2] * 5).assign(draw))


def test_policies_may_be_a_list():
    policies = Balanced([4, 7], num_envs=2, weights=[3, 1]).assign(Draw.at(0, list("ab"), [0, 1], [0, 0]))
    assert sorted(policies.ravel().tolist()) == [4, 4, 4, 7]


def test_orders_of_seats_are_equally_likely():
    # Two policies over two environments of two seats: six ways to choose the seats of the first.
    rule, blocks = Balanced(2, num_envs=2), np.arange(12_000)
    both = [rule.assign(Draw.at(0, list("ab"), np.full(12_000, env), blocks * 10)) for env in (0, 1)]
    dealt = np.concatenate(both, axis=1) @ [8, 4, 2, 1]
    counts = np.bincount(dealt, minlength=16)
    ways = [sum(2**i for i in chosen) for chosen in itertools.combinations(range(4), 2)]
    assert counts.sum() == counts[ways].sum()
    assert chisquare(counts[ways]).pvalue > MIN_P


def test_policies_mix_inside_an_environment():
    num_envs = 20_000
    policies = Balanced(4, num_envs).assign(Draw.at(0, list("ab"), range(num_envs), [0] * num_envs))
    assert chisquare(np.bincount(policies[:, 0] * 4 + policies[:, 1], minlength=16)).pvalue > MIN_P


def test_deals_of_different_blocks_and_seeds_differ():
    rule = Balanced(4, 100)
    draws = [
        rule.assign(Draw.at(seed, list("ab"), range(100), [block * 10] * 100)) for seed in (0, 1) for block in (0, 1, 2)
    ]
    for first, second in itertools.combinations(draws, 2):
        assert 0.1 < (first == second).mean() < 0.4


def test_separate_workers_give_exact_shares_together():
    rule, num_envs = Balanced(3, 12, [0.5, 0.25, 0.25]), 12
    fns = pm.env_fns(StubParallel, num_envs, rule, resample_every=2, seed=4)
    order = np.random.default_rng(0).permutation(num_envs)
    together = PolicyAssigner(rule, ["a", "b"], num_envs=num_envs, resample_every=2, seed=4, env_index=0)
    envs = {i: fns[i]() for i in order.tolist()}
    for _ in range(9):
        expected = together.begin_episodes()
        for i, env in envs.items():
            env.reset()
            assert list(env.policy_ids.values()) == expected[i].tolist()
        assert np.bincount(expected.ravel()).tolist() == [12, 6, 6]


@pytest.mark.parametrize("warmup_episodes", [0, 3])
def test_draw_in_the_middle_of_a_block_gives_exact_shares(warmup_episodes):
    assigner = PolicyAssigner(
        Uniform(9), ["a", "b", "c"], 10, resample_every=4, warmup_episodes=warmup_episodes, seed=0
    )
    for _ in range(6):
        assigner.begin_episodes()
    assigner.set_mapping(Balanced(3, 10, [1, 1, 1]), now=True)
    for _ in range(8):
        assert np.bincount(assigner.begin_episodes().ravel()).tolist() == [10, 10, 10]


def test_episodes_of_a_block_have_equal_assignments():
    rule = Balanced(3, 6)
    episodes = np.array([20, 29, 23, 20, 25, 21])  # as after set_mapping(now=True)
    scattered = rule.assign(Draw.at(0, list("ab"), range(6), episodes))
    np.testing.assert_array_equal(scattered, rule.assign(Draw.at(0, list("ab"), range(6), [20] * 6)))


def test_environments_in_different_blocks_get_the_shares_of_their_block():
    rule = Balanced(3, 6)
    blocks = np.array([0, 5, 5, 2, 9, 0])
    drifted = rule.assign(Draw.at(0, list("ab"), range(6), blocks * 10))
    for row, block in enumerate(blocks):
        whole = rule.assign(Draw.at(0, list("ab"), range(6), [block * 10] * 6))
        assert drifted[row].tolist() == whole[row].tolist()


def test_teams_and_roles_get_exact_shares():
    agents = ["red_0", "red_1", "blue_0", "blue_1", "blue_2"]
    draw = Draw.at(0, agents, range(9), [0] * 9)
    teams = Teams(Balanced(3, 9)).assign(draw)
    assert np.bincount(teams[:, [0, 2]].ravel()).tolist() == [6, 6, 6]
    roles = Roles({"red": Balanced([0, 1], 9), "blue": Balanced([2, 3, 4], 9)}).assign(draw)
    assert np.bincount(roles.ravel()).tolist() == [9, 9, 9, 9, 9]
    assert np.bincount(Shared(Balanced(3, 9)).assign(draw)[:, 0]).tolist() == [3, 3, 3]


def test_million_seats_get_exact_shares():
    num_envs = 250_000
    policies = Balanced(3, num_envs, [0.8, 0.1, 0.1]).assign(Draw.at(0, list("abcd"), range(num_envs), [0] * num_envs))
    assert np.bincount(policies.ravel()).tolist() == [800_000, 100_000, 100_000]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Balanced(0, 4), ValueError, "policies must be from 1"),
        (lambda: Balanced(2, 0), ValueError, "num_envs must be at least 1, got 0"),
        (lambda: Balanced(2, 2.5), TypeError, "num_envs must be an integer, got 2.5"),
        (lambda: Balanced(2, 4, [1, 2, 3]), ValueError, "weights must be 2 numbers, one per policy, got 3"),
        (lambda: Balanced(2, 4, [1, -2]), ValueError, "weights must be finite and not negative"),
        (lambda: Balanced(2, 4, [0, 0]), ValueError, "weights must not all be zero"),
        (lambda: Balanced(2, 4, [[1, 2], [3, 4]]), ValueError, r"weights must be a vector, .* got shape \(2, 2\)"),
        (lambda: Balanced(2, 4, "ab"), TypeError, "weights must be a vector"),
        (
            lambda: Balanced(2, 4, lambda: [1, 1]),
            TypeError,
            "weights must be numbers, because all environments share them, got the callable",
        ),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 0}, "env_index must be the index of this environment for Balanced"),
        ({"env_index": 0}, "seed must be given for Balanced"),
        ({"seed": 0, "env_index": 4}, "env_index must be below num_envs=4 of Balanced.*, got 4"),
    ],
)
def test_missing_env_index_or_seed_raises(settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        PolicyAssigner(Balanced(2, 4), ["a", "b"], **settings)
    with pytest.raises(ValueError, match=message.replace("Balanced", "Teams")):
        PolicyAssigner(Teams(Balanced(2, 4)), ["a", "b"], **settings)


def test_unknown_seats_raise():
    env = pm.wrap(StubParallel(possible_agents=None), Balanced(2, 4), seed=0, env_index=1)
    with pytest.raises(ValueError, match="Balanced.* needs to know all seats, but the environment has no"):
        env.reset()


def test_more_than_2_to_the_38_seats_raise():
    with pytest.raises(ValueError, match=r"num_envs must be at most 2\*\*38 / 2 seats, got 274877906944"):
        PolicyAssigner(Balanced(2, 2**38), ["a", "b"], seed=0, env_index=0)
    whole = Balanced(3, 2**37)
    PolicyAssigner(whole, ["a", "b"], seed=0, env_index=0).begin_episodes()


def test_env_index_beyond_num_envs_raises():
    with pytest.raises(ValueError, match="positions must be from 0 to 7"):
        Balanced(2, 4).assign(Draw.at(0, list("ab"), [4], [0]))
