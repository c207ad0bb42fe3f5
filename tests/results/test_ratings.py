"""Bradley-Terry ratings, against published analyses and simulations."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import pz_policymap as pm
from pz_policymap.results.ratings import ELO, bradley_terry, clustered_ratings
from tests.results.ledgers import DRAW, LOSS, WIN, ledger, record_episodes

# Wins of the row's team against the column's, Eastern Division of the American League 1987 (Agresti, Categorical Data
# Analysis, 2002, table 10.10): Milwaukee, Detroit, Toronto, New York, Boston, Cleveland, Baltimore.
BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ],
    float,
)


class TestRatings:
    def test_ratings_of_baseball_teams_agree_with_a_published_analysis(self):
        ratings = bradley_terry(BASEBALL, prior=1e-9)
        # The vignette of R's BradleyTerry2, model baseballModel1: log-odds against Baltimore.
        published = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]
        np.testing.assert_allclose((ratings.values - ratings.values[-1]) / ELO, published, atol=5e-5)

    @pytest.mark.parametrize("prior", [1e-7, 1e-9, 1e-13])
    def test_ratings_errors_are_those_of_the_information_matrix(self, prior):
        ratings = bradley_terry(BASEBALL, prior)
        chance = 1.0 / (1.0 + np.exp(-(ratings.values[:, None] - ratings.values) / ELO))
        information = (BASEBALL + BASEBALL.T) * chance * (1.0 - chance)
        laplacian = np.diag(information.sum(axis=1)) - information
        # The pseudo-inverse of a Laplacian is the covariance of distances to the mean.
        np.testing.assert_allclose(ratings.errors / ELO, np.sqrt(np.diag(np.linalg.pinv(laplacian))), rtol=1e-8)

    @pytest.mark.parametrize(("won", "lost"), [(30, 10), (500, 500), (1, 9)])
    def test_ratings_of_two_policies_are_log_odds(self, won, lost):
        ratings = bradley_terry(np.array([[0.0, won], [lost, 0.0]]), prior=1e-6)
        np.testing.assert_allclose(ratings.values / ELO, np.array([0.5, -0.5]) * math.log(won / lost), atol=1e-5)
        np.testing.assert_allclose(ratings.errors / ELO, 0.5 * math.sqrt(1.0 / won + 1.0 / lost), rtol=1e-5)

    def test_ratings_scale_is_that_of_elo(self):
        # TLeague's Elo, k=32: 1200 beats 1000 and gains 7.6880983472654, so it was expected to win 1 - 7.688.../32.
        expected = 1.0 - 7.6880983472654 / 32.0
        ratings = bradley_terry(np.array([[0.0, expected], [1.0 - expected, 0.0]]) * 1000.0, prior=1e-9)
        assert ratings.values[0] - ratings.values[1] == pytest.approx(200.0, abs=1e-3)

    @pytest.mark.parametrize("prior", [0.1, 1.0, 5.0])
    def test_ratings_maximise_the_posterior(self, prior):
        rng = np.random.default_rng(0)
        wins = rng.integers(0, 10, (6, 6)).astype(float)
        np.fill_diagonal(wins, 0.0)

        def loss(ratings):
            gap = ratings[:, None] - ratings
            return (wins * np.logaddexp(0.0, -gap)).sum() + prior * np.logaddexp(0.0, [ratings, -ratings]).sum()

        found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(bradley_terry(wins, prior).values / ELO, found - found.mean(), atol=1e-5)

    def test_ratings_are_finite_if_a_policy_won_everything(self):
        ratings = ledger([WIN] * 10_000, num_policies=3).ratings()
        assert np.isfinite(ratings).all()
        assert ratings.values[0] > ratings.values[2] > ratings.values[1]
        assert (ratings.errors > 0.0).all()

    def test_ratings_are_precise_for_huge_counts(self):
        # By hand: 1e15 / (1 + odds**2) = prior for odds = sqrt(1e15), which is 400 * 15 points between the two.
        ratings = bradley_terry(np.array([[0.0, 1e15], [0.0, 0.0]]), prior=1.0)
        np.testing.assert_allclose(ratings.values, [3000.0, -3000.0], rtol=1e-6)

    def test_ratings_with_a_maximum_hidden_by_rounding_are_finite_and_ordered(self):
        ratings = bradley_terry(np.triu(np.full((30, 30), 1e6), 1), prior=1e-3)
        assert np.isfinite(ratings).all()
        assert (np.diff(ratings.values) < 0.0).all()

    def test_ratings_of_a_policy_without_games_are_average_with_the_largest_error(self):
        ratings = ledger([WIN] * 30 + [LOSS] * 10, num_policies=3).ratings()
        assert ratings.values[2] == pytest.approx(0.0, abs=1e-9)
        assert ratings.errors.argmax() == 2

    def test_ratings_count_a_draw_as_half_a_win(self):
        drawn, halves = ledger([DRAW] * 10 + [WIN] * 10), ledger([WIN] * 15 + [LOSS] * 5)
        np.testing.assert_allclose(drawn.ratings().values, halves.ratings().values)

    def test_ratings_without_games_are_average(self):
        np.testing.assert_allclose(pm.Payoff(3).ratings().values, 0.0, atol=1e-9)
        assert [values.tolist() for values in pm.Payoff(1).ratings()] == [[0.0], [0.0]]

    def test_ratings_with_decay_prefer_recent_games(self):
        results = [WIN] * 100 + [LOSS] * 100
        assert ledger(results).ratings().values[0] == pytest.approx(0.0, abs=1e-6)
        assert ledger(results, decay=0.97).ratings().values[0] < -100.0

    @pytest.mark.parametrize("prior", [0.01, 0.3])
    def test_ratings_converge_where_full_newton_steps_diverge(self, prior):
        wins = np.array([[0, 1e3, 0, 0], [0, 0, 0, 0], [0, 1e4, 0, 1e4], [1, 0, 0, 0]])
        log_odds = bradley_terry(wins, prior).values / ELO
        # At the maximum what the virtual games pull by sums to zero ...
        log_odds -= brentq(lambda mean: np.tanh((log_odds - mean) / 2.0).sum(), -50.0, 50.0)
        chance = 1.0 / (1.0 + np.exp(log_odds - log_odds[:, None]))
        # ... and each policy has won as much as expected.
        expected = ((wins + wins.T) * chance).sum(axis=1) + prior * np.tanh(log_odds / 2.0)
        np.testing.assert_allclose(wins.sum(axis=1), expected, atol=1e-6)

    @pytest.mark.parametrize("prior", [0.5, 1.0, 8.0])
    def test_ratings_errors_include_the_prior(self, prior):
        # By hand, five games each: the distance has the precision n/2 + prior/2, and half its deviation is a policy's.
        ratings = bradley_terry(np.array([[0.0, 5.0], [5.0, 0.0]]), prior)
        np.testing.assert_allclose(ratings.errors / ELO, math.sqrt(1.0 / (10.0 + prior)))

    def test_ratings_with_a_prior_lost_by_rounding_raise(self):
        with pytest.raises(ValueError, match=r"^prior must not vanish beside 1e\+15 games of a pair, got 1e-06"):
            bradley_terry(np.array([[0.0, 1e15], [0.0, 0.0]]), prior=1e-6)

    @pytest.mark.parametrize("prior", [0.0, -1.0, float("nan")])
    def test_ratings_without_a_prior_raise(self, prior):
        with pytest.raises(ValueError, match="prior must be above 0"):
            bradley_terry(BASEBALL, prior)
        with pytest.raises(ValueError, match="prior must be above 0"):
            pm.Payoff(2, prior=0.0).ratings()

    def test_ratings_errors_of_unequal_policies_cover_the_truth(self):
        rng = np.random.default_rng(7)
        truth = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
        chance = 1.0 / (1.0 + np.exp(-(truth[:, None] - truth)))
        inside = []
        for _ in range(300):
            wins = np.triu(rng.binomial(30, chance), 1).astype(float)
            wins += np.triu(30.0 - wins, 1).T
            ratings = bradley_terry(wins, prior=0.01)
            inside.extend(abs(ratings.values / ELO - truth) < 1.96 * ratings.errors / ELO)
        assert 0.93 < np.mean(inside) < 0.97  # 0.95, and 1500 of them: a standard error of 0.006


class TestClusteredErrors:
    """Errors of ratings where an episode holds several games, which are not independent."""

    @pytest.mark.parametrize(
        ("seats", "team_size", "episodes", "ledgers", "published"),
        [  # `published`: deviations measured over many ledgers with a program of their own, for these numbers
            (2, 1, 400, 60, None),
            (4, 1, 250, 60, 19.4),
            (8, 1, 54, 100, 26.5),
            (4, 2, 400, 60, 21.4),
            (6, 3, 178, 60, 26.0),
        ],
    )
    def test_ratings_errors_of_equal_policies_cover_the_truth(self, seats, team_size, episodes, ledgers, published):
        rng = np.random.default_rng(seats)
        values, errors = [], []
        for _ in range(ledgers):
            payoff = pm.Payoff(8)
            record_episodes(payoff, rng, episodes, seats, team_size, np.zeros(8))
            for found, part in zip((values, errors), payoff.ratings(), strict=True):
                found.append(part)
        assert 0.93 < np.mean(np.abs(values) < 1.96 * np.array(errors)) < 0.97
        if published is not None:
            assert np.mean(errors) == pytest.approx(published, rel=0.06)
            assert np.std(values) == pytest.approx(published, rel=0.12)

    @pytest.mark.parametrize(("seats", "ledgers"), [(2, 200), (3, 80)])
    def test_ratings_errors_of_games_under_one_seed_cover_the_truth(self, seats, ledgers):
        # Six equal policies. In all seatings under one environment seed, the same ones are lucky.
        rng = np.random.default_rng(seats)
        clustered, independent = [], []
        for _ in range(ledgers):
            episodes, seeds, payoff = [], [], pm.Payoff(6)
            for number, lineup in enumerate(list(combinations(range(6), seats)) * 5):
                luck = 2.0 * rng.normal(size=6)
                for policies in permutations(lineup):
                    episodes.append(pm.Episode(policies, luck[list(policies)] + rng.normal(size=seats)))
                    seeds.append(number)
                    payoff.record(episodes[-1])
            shuffled = rng.permutation(len(episodes)).tolist()
            found = clustered_ratings([episodes[i] for i in shuffled], 6, [seeds[i] for i in shuffled])
            np.testing.assert_allclose(found.values, payoff.ratings().values)
            clustered.append(np.abs(found.values) < 1.96 * found.errors)
            independent.append(np.abs(found.values) < 1.96 * payoff.ratings().errors)
        assert 0.93 < np.mean(clustered) < 0.97
        assert np.mean(independent) < 0.92

    def test_ratings_errors_of_single_episodes_as_clusters_are_those_of_the_ledger(self):
        payoff, rng = pm.Payoff(6), np.random.default_rng(0)
        episodes = [pm.Episode(rng.permutation(6)[:3], rng.normal(size=3)) for _ in range(100)]
        for episode in episodes:
            payoff.record(episode)
        np.testing.assert_allclose(clustered_ratings(episodes, 6, range(100)), payoff.ratings())

    def test_ratings_errors_of_a_single_cluster_count_it_as_one_game(self):
        one, many = ([pm.Episode([0, 1], [1.0, 0.0])] * count for count in (1, 50))
        by_hand = bradley_terry(np.array([[0.0, 50.0], [0.0, 0.0]]), prior=1.0)
        found = clustered_ratings(many, 2, ["seed"] * 50)
        np.testing.assert_allclose(clustered_ratings(one, 2, ["seed"]), ledger([WIN]).ratings())
        np.testing.assert_allclose(found.values, by_hand.values)
        assert (found.errors > 3.0 * by_hand.errors).all()

    def test_ratings_errors_with_decay_are_scaled_by_the_ratio_of_clustered_to_independent(self):
        whole, decayed, single = pm.Payoff(4), pm.Payoff(4, decay=0.999), pm.Payoff(4, decay=0.999)
        rng = np.random.default_rng(0)
        for _ in range(100):
            scores = np.repeat(rng.random(2), 2).tolist()
            policies = rng.permutation(4).tolist()
            for payoff in (whole, decayed):
                payoff.record(pm.Episode(policies, scores, sides=list("aabb")))
            for i, j in ((0, 2), (0, 3), (1, 2), (1, 3)):  # the same games, each as an episode
                single.record(pm.Episode([policies[i], policies[j]], [scores[i], scores[j]]))
        np.testing.assert_allclose(decayed.ratings().values, single.ratings().values, rtol=1e-9)
        assert (decayed.ratings().errors > 1.2 * single.ratings().errors).all()
        assert (decayed.ratings().errors > whole.ratings().errors).all()

    def test_ratings_errors_of_one_episode_count_its_games_as_independent(self):
        payoff = pm.Payoff(3)
        payoff.record(pm.Episode([0, 1, 2], [2.0, 1.0, 0.0]))
        expected = bradley_terry(payoff.wins.astype(float), prior=1.0)
        np.testing.assert_allclose(payoff.ratings().errors, expected.errors)
