"""Uniformity and independence, by chi-square tests of 10**6 draws each.

The seeds are fixed, so the tests cannot flicker. The threshold is p > 1e-4 for each of some three hundred p-values: a
sound generator would fail for three choices of seeds in a hundred.
"""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from pz_policymap import Draw, Uniform, Weighted

THRESHOLD = 1e-4
DRAWS = 10**6
POLICIES = 7
POWERS = [2**exponent for exponent in range(41)]


def ids(seed=0, env_index=0, episode=0, seats=1, stream=0, num_envs=DRAWS):
    """Policies drawn uniformly by many environments in a row."""
    agents = [f"agent_{i}" for i in range(seats)]
    draw = Draw.at(seed, list(agents), np.arange(env_index, env_index + num_envs), np.full(num_envs, episode))
    return draw.integers(POLICIES, stream)


def assert_independent(first, second, size=POLICIES):
    table = np.bincount(first.ravel() * size + second.ravel(), minlength=size * size).reshape(size, size)
    assert chisquare(table.ravel()).pvalue > THRESHOLD
    assert chi2_contingency(table).pvalue > THRESHOLD


@pytest.mark.parametrize("size", [2, 3, 10, 1000])
def test_every_policy_is_equally_likely(size):
    draw = Draw.at(11, ["a"], np.arange(DRAWS), np.zeros(DRAWS, np.int64))
    counts = np.bincount(Uniform(size).assign(draw).ravel(), minlength=size)
    assert chisquare(counts).pvalue > THRESHOLD


def test_weighted_policies_come_with_their_probabilities_and_zero_weights_never():
    weights = np.array([0.5, 0.0, 0.3, 0.15, 0.05, 0.0])
    draw = Draw.at(12, ["a"], np.arange(DRAWS), np.zeros(DRAWS, np.int64))
    counts = np.bincount(Weighted(weights * 17).assign(draw).ravel(), minlength=6)
    assert counts[weights == 0].tolist() == [0, 0]
    assert chisquare(counts[weights > 0], DRAWS * weights[weights > 0]).pvalue > THRESHOLD


@pytest.mark.parametrize("apart", [3, 5, *POWERS, 2**62])
def test_environments_are_independent_whether_neighbours_or_a_power_of_two_apart(apart):
    assert_independent(ids(), ids(env_index=apart))


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (3, 4), (0, 4), (0, 8)])
def test_seats_are_independent_within_a_group_of_four_and_across(one, other):
    seats = ids(seed=1, seats=9)
    assert_independent(seats[:, one], seats[:, other])


@pytest.mark.parametrize("episode", [10, *POWERS[::4], 2**31, 2**62])
def test_episodes_are_independent(episode):
    assert_independent(ids(seed=2), ids(seed=2, episode=episode))


@pytest.mark.parametrize("seed", [*POWERS[:4], 2**31, 2**32, 2**63, 2**64, (0, 0), (0, 1)])
def test_seeds_are_independent_of_seed_0(seed):
    assert_independent(ids(seed=0), ids(seed=seed))


@pytest.mark.parametrize("stream", [*POWERS[:16], 65534])
def test_streams_are_independent(stream):
    assert_independent(ids(seed=3), ids(seed=3, stream=stream))


def test_episodes_in_a_row_of_one_environment_are_uniform_and_independent():
    draw = Draw.at(4, ["a"], np.zeros(DRAWS, np.int64), np.arange(DRAWS))
    policies = draw.integers(POLICIES).ravel()
    assert chisquare(np.bincount(policies, minlength=POLICIES)).pvalue > THRESHOLD
    assert_independent(policies[0::2], policies[1::2])


def test_children_are_independent_of_their_parent_and_of_each_other():
    draw = Draw.at(5, ["a"], np.arange(DRAWS), np.zeros(DRAWS, np.int64))
    parent, red, blue = (d.integers(POLICIES) for d in (draw, draw.child("red"), draw.child("blue")))
    assert_independent(parent, red)
    assert_independent(red, blue)


def test_every_order_without_replacement_is_equally_likely():
    draw = Draw.at(6, ["a", "b", "c"], np.arange(DRAWS), np.zeros(DRAWS, np.int64))
    policies = Uniform(4, replace=False).assign(draw).astype(np.int64)
    orders = np.bincount(policies @ [16, 4, 1], minlength=64)
    assert chisquare(orders[orders > 0]).pvalue > THRESHOLD
    assert (orders > 0).sum() == 24  # 4 * 3 * 2
