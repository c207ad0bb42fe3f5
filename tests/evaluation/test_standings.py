"""Win rates and their intervals."""

import math

import pytest

import pz_policymap as pm
from pz_policymap.evaluation.standings import interval_text, standings, wilson

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize(("wins", "games"), [(0, 1), (1, 1), (3, 7), (0, 20), (20, 20), (499, 1000), (1, 10**6)])
def test_wilson_equals_scipy(wins, games):
    low, high = stats.binomtest(wins, games).proportion_ci(method="wilson")
    assert wilson(wins, games) == pytest.approx((low, high), abs=1e-12)


def test_wilson_half_wins_lie_between_whole_wins():
    assert wilson(3, 7) < wilson(3.5, 7) < wilson(4, 7)


def test_wilson_without_games_is_nan():
    assert all(map(math.isnan, wilson(0, 0)))
    assert interval_text(wilson(0, 0)) == "-"
    assert interval_text((0.494, 0.943)) == "0.49 to 0.94"


def test_standings_sum_over_opponents():
    payoff = pm.Payoff(3)
    for policies, returns in (([0, 1], [1, 0]), ([0, 1], [0, 0]), ([0, 2], [0, 1]), ([0, 0], [1, 0])):
        payoff.record(pm.Episode(policies, returns))
    first = standings(payoff)[0]
    assert first[:5] == (3, 1, 1, 1, 0.5)
