"""Confidence intervals: quantiles against SciPy, and the share of simulated ledgers whose interval holds the truth."""

import numpy as np
import pytest
from scipy import stats

import pz_policymap as pm
from pz_policymap.results import pair_table
from pz_policymap.results.intervals import mean_intervals, student_t, wilson
from tests.results.ledgers import record_episodes

DEGREES = np.array([1, 2, 3, 4, 5, 8, 20, 100, 10_000], float)
LEDGERS = 10_000


class TestQuantiles:
    @pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
    def test_student_t_any_degrees_agrees_with_scipy(self, confidence):
        expected = stats.t.ppf(0.5 + confidence / 2.0, DEGREES)
        np.testing.assert_allclose(student_t(DEGREES, confidence), expected, rtol=2e-5)

    def test_student_t_without_degrees_is_nan(self):
        assert np.isnan(student_t(np.array([[0.0, -1.0]]))).all()

    @pytest.mark.parametrize(("wins", "games"), [(8, 10), (0, 5), (50, 50), (7.5, 30)])
    def test_wilson_interval_solves_the_score_equation(self, wins, games):
        # By definition (Wilson 1927): each limit p has |rate - p| = z sqrt(p (1 - p) / n).
        for limit in wilson(np.array([wins / games]), np.array([float(games)])):
            z = stats.norm.ppf(0.975)
            assert abs(wins / games - limit[0]) == pytest.approx(z * np.sqrt(limit[0] * (1.0 - limit[0]) / games))

    def test_mean_intervals_of_a_sample_agree_with_scipy(self):
        sample = np.random.default_rng(0).normal(size=7)
        found = mean_intervals(np.array([7.0]), np.array([sample.sum()]), np.array([(sample**2).sum()]), 0.9)
        expected = stats.t.interval(0.9, 6, sample.mean(), stats.sem(sample))
        np.testing.assert_allclose([found.lows[0], found.highs[0]], expected)


def pair_ledgers(fill):
    """Yields 10,000 simulated ledgers of one pair each, as the disjoint pairs of 100 large ledgers.

    `fill(rng, shape)` returns, by column of the table, the values of both policies, of shape `(2, *shape)`.
    """
    rng = np.random.default_rng(0)
    first, second = np.arange(0, 200, 2), np.arange(1, 200, 2)
    for _ in range(LEDGERS // len(first)):
        payoff = pm.Payoff(200)
        state = payoff.state_dict()
        for column, (mine, theirs) in fill(rng, first.shape).items():
            state["table"][first, second, column], state["table"][second, first, column] = mine, theirs
        payoff.load_state_dict(state)
        yield payoff, first, second


class TestCoverage:
    """With 10,000 ledgers the standard error of a coverage of 95% is 0.2%."""

    @pytest.mark.parametrize(("games", "rate"), [(30, 0.5), (100, 0.5), (100, 0.8)])
    def test_win_rate_interval_of_a_pair_covers_the_truth(self, games, rate):
        def fill(rng, shape):
            wins = rng.binomial(games, rate, shape)
            return {pair_table.WINS: (wins, games - wins), pair_table.EPISODES: (games, games)}

        covered = []
        for payoff, first, _ in pair_ledgers(fill):
            rates = payoff.overall_win_rates()
            covered.extend((rates.lows[first] <= rate) & (rates.highs[first] >= rate))
        assert len(covered) == LEDGERS
        assert 0.93 < np.mean(covered) < 0.97

    @pytest.mark.parametrize("episodes", [2, 5, 50])
    def test_mean_return_interval_of_a_pair_covers_the_truth(self, episodes):
        def fill(rng, shape):
            returns = rng.normal(5.0, 2.0, (episodes, 2, *shape))
            sums, squares = returns.sum(axis=0), (returns**2).sum(axis=0)
            return {pair_table.EPISODES: (episodes,) * 2, pair_table.RETURN: sums, pair_table.SQUARE: squares}

        covered = []
        for payoff, first, second in pair_ledgers(fill):
            means = payoff.mean_return_intervals()
            covered.extend((means.lows[first, second] <= 5.0) & (means.highs[first, second] >= 5.0))
        assert len(covered) == LEDGERS
        assert 0.93 < np.mean(covered) < 0.97

    @pytest.mark.parametrize(("seats", "team_size"), [(4, 1), (8, 1), (4, 2), (6, 3)])
    def test_win_rate_interval_of_episodes_with_several_games_covers_one_half(self, seats, team_size):
        rng = np.random.default_rng(seats)
        covered = []
        for _ in range(200):
            payoff = pm.Payoff(8)
            record_episodes(payoff, rng, 60, seats, team_size, np.zeros(8))
            rates = payoff.overall_win_rates()
            covered.append((rates.lows <= 0.5) & (rates.highs >= 0.5))
        assert 0.93 < np.mean(covered) < 0.97
