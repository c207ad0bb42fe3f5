"""Games and mean returns of each policy."""

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.evaluation.standings import RunningMeans, standings

stats = pytest.importorskip("scipy.stats")


def test_standings_sum_over_opponents():
    payoff = pm.Payoff(3)
    for policies, returns in (([0, 1], [1, 0]), ([0, 1], [0, 0]), ([0, 2], [0, 1]), ([0, 0], [1, 0])):
        payoff.record(pm.Episode(policies, returns))
    assert standings(payoff)[0] == (3, 1, 1, 1, 0.5)


def test_running_means_equal_scipy():
    values = np.random.default_rng(0).normal(1e6, 1.0, 500)
    means = RunningMeans(3)
    for value in values:
        means.add(1, float(value))
    means.add(2, 5.0)
    result = means.result()
    np.testing.assert_allclose(result.values, [np.nan, values.mean(), 5.0], rtol=1e-14)
    assert result.episodes.tolist() == [0, 500, 1]
    np.testing.assert_allclose(result.errors, [np.nan, stats.sem(values), np.nan], rtol=1e-9)
