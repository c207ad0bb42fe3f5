"""Games and mean returns of each policy."""

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.evaluation.standings import mean_returns, standings

stats = pytest.importorskip("scipy.stats")


def test_standings_sum_over_opponents():
    payoff = pm.Payoff(3)
    for policies, returns in (([0, 1], [1, 0]), ([0, 1], [0, 0]), ([0, 2], [0, 1]), ([0, 0], [1, 0])):
        payoff.record(pm.Episode(policies, returns))
    assert standings(payoff)[0] == (3, 1, 1, 1, 0.5)


def test_mean_returns_of_independent_episodes_equal_scipy():
    values = np.random.default_rng(0).normal(1e6, 1.0, 500)
    episodes = [pm.Episode([1, 1], [value - 1.0, value + 1.0]) for value in values] + [pm.Episode([2], [5.0])]
    result = mean_returns(episodes, range(501), num_policies=4)
    assert result.units.tolist() == [0, 500, 1, 0]
    np.testing.assert_allclose(result.values, [np.nan, values.mean(), 5.0, np.nan], rtol=1e-14)
    np.testing.assert_allclose(result.errors, [np.nan, stats.sem(values), np.nan, np.nan], rtol=1e-6)


def test_mean_returns_of_clusters_have_the_error_of_their_means():
    values = np.random.default_rng(1).normal(size=50)
    episodes = [pm.Episode([0], [value]) for value in values for _ in range(7)]  # equal within a cluster
    result = mean_returns(episodes, [number // 7 for number in range(350)], num_policies=1)
    assert result.units.tolist() == [50]
    np.testing.assert_allclose(result.errors, stats.sem(values))
