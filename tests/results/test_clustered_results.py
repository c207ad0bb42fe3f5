"""`policy_results` and `seat_results`: estimates whose intervals count clusters of episodes."""

import numpy as np
import pytest
from scipy import stats

import pz_policymap as pm


def first_wins(policies=(0, 1), agents=("black", "white")):
    return pm.Episode(policies, [1.0, -1.0], agents=agents)


class TestSeats:
    def test_seat_results_first_seat_always_wins_whatever_the_policy(self):
        found = pm.seat_results([first_wins(), first_wins((1, 0)), first_wins((0, 0))] * 4)
        assert found.labels == ("black", "white")
        assert found.win_rates.values.tolist() == [1.0, 0.0]
        assert found.win_rates.units.tolist() == [12.0, 12.0]
        assert found.mean_returns.values.tolist() == [1.0, -1.0]

    def test_seat_results_independent_games_have_wilson_and_student_intervals(self):
        rng = np.random.default_rng(0)
        returns = rng.normal(size=40)
        found = pm.seat_results([pm.Episode([0, 1], [value, -value]) for value in returns])
        expected = stats.binomtest(int((returns > 0).sum()), 40).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose([found.win_rates.lows[0], found.win_rates.highs[0]], expected, atol=0.005)
        expected = stats.t.interval(0.95, 39, returns.mean(), stats.sem(returns))
        np.testing.assert_allclose([found.mean_returns.lows[0], found.mean_returns.highs[0]], expected)

    def test_seat_results_of_a_policy_are_its_seats_only(self):
        played = [first_wins((0, 1)), first_wins((1, 0)), first_wins((1, 0))]
        found = pm.seat_results(played, policy=1)
        assert (found.labels, found.win_rates.units.tolist()) == (("white", "black"), [1.0, 2.0])
        assert found.win_rates.values.tolist() == [0.0, 1.0]

    def test_seat_results_roles_are_compared_across_roles_and_sides(self):
        # By hand: the prey beats two of three adversaries, of which two score alike.
        episode = pm.Episode([0, 1, 2, 3], [1.0, 1.0, 5.0, 3.0], agents=["adv_0", "adv_1", "adv_2", "prey_0"])
        found = pm.seat_results([episode], label_of=lambda agent: agent.split("_")[0])
        assert found.labels == ("adv", "prey")
        np.testing.assert_allclose(found.win_rates.values, [1 / 3, 2 / 3])
        np.testing.assert_allclose(found.mean_returns.values, [7 / 3, 3.0])

    def test_seat_results_teammates_have_no_game(self):
        found = pm.seat_results([pm.Episode([0, 1], [2.0, 4.0], sides=["team", "team"])] * 3)
        assert np.isnan(found.win_rates.values).all()
        assert found.mean_returns.values.tolist() == [2.0, 4.0]

    def test_seat_results_without_episodes_is_empty(self):
        assert pm.seat_results([]).labels == ()

    def test_seat_results_repr_is_a_table_that_marks_too_few_units(self):
        text = repr(pm.seat_results([first_wins()]))
        assert text.splitlines()[0] == "ClusteredResults"
        assert text.splitlines()[2].split() == ["black", "1", "1.00", "0.21", "to", "1.00", "1.00", "too", "few"]
        assert " -  " in repr(pm.seat_results([pm.Episode([0], [1.0])]))


class TestClusters:
    def test_seat_results_identical_policies_in_held_draws_cover_the_truth(self):
        # Four identical policies, roles of unequal strength, and draws held for ten episodes. In each draw the deal
        # is the same too. Episodes counted as independent would hold the truth far less often.
        rng = np.random.default_rng(1)
        covered, naive = [], []
        for _ in range(300):
            played, draws = [], []
            for draw in range(25):
                chance = rng.beta(1.0, 1.0)  # true mean: 0.5
                policies = rng.integers(0, 4, 2)
                for _ in range(10):
                    won = 1.0 if rng.random() < chance else -1.0
                    played.append(pm.Episode(policies, [won, -won]))
                    draws.append(draw)
            for hits, clusters in ((covered, draws), (naive, None)):
                rates = pm.seat_results(played, clusters=clusters).win_rates
                hits.append(bool(rates.lows[0] <= 0.5 <= rates.highs[0]))
        assert 0.92 < np.mean(covered) < 0.98  # 300 ledgers: a standard error of 0.013
        assert np.mean(naive) < 0.8

    @pytest.mark.parametrize("clusters", [[0], [0, 1, 2]])
    def test_seat_results_wrong_number_of_clusters_raises(self, clusters):
        with pytest.raises(ValueError, match="zip"):
            pm.seat_results([first_wins()] * 2, clusters=clusters)

    def test_seat_results_invalid_confidence_raises(self):
        with pytest.raises(ValueError, match="^confidence must be above 0 and below 1, got 1"):
            pm.seat_results([], confidence=1)


class TestPolicies:
    def test_policy_results_of_independent_episodes_are_those_of_the_ledger(self):
        rng = np.random.default_rng(0)
        played = [pm.Episode(rng.permutation(5)[:4], rng.normal(size=4)) for _ in range(50)]
        payoff = pm.Payoff(6)
        for episode in played:
            payoff.record(episode)
        found = pm.policy_results(played, 6)
        assert found.labels == tuple(range(6))
        for mine, ledgers in zip(found.win_rates, payoff.overall_win_rates(), strict=True):
            np.testing.assert_allclose(mine, ledgers)

    def test_policy_results_of_several_seats_have_the_mean_return_over_them(self):
        found = pm.policy_results([pm.Episode([0, 0, 1], [1.0, 2.0, 7.0])], 3)
        np.testing.assert_array_equal(found.mean_returns.values, [1.5, 7.0, np.nan])
        assert found.mean_returns.units.tolist() == [1.0, 1.0, 0.0]
        assert np.isnan(found.mean_returns.lows).all()

    def test_policy_results_errors_of_independent_episodes_equal_scipy(self):
        values = np.random.default_rng(0).normal(1e6, 1.0, 500)
        episodes = [pm.Episode([1, 1], [value - 1.0, value + 1.0]) for value in values] + [pm.Episode([2], [5.0])]
        result = pm.policy_results(episodes, 4).mean_returns
        assert result.units.tolist() == [0, 500, 1, 0]
        np.testing.assert_allclose(result.values, [np.nan, values.mean(), 5.0, np.nan], rtol=1e-14)
        np.testing.assert_allclose(result.errors, [np.nan, stats.sem(values), np.nan, np.nan], rtol=1e-6)

    def test_policy_results_errors_of_equal_episodes_in_a_cluster_are_those_of_their_means(self):
        values = np.random.default_rng(1).normal(size=50)
        episodes = [pm.Episode([0, 1], [value, 0.0]) for value in values for _ in range(7)]
        found = pm.policy_results(episodes, 2, clusters=[number // 7 for number in range(350)])
        assert found.mean_returns.units.tolist() == [50, 50]
        np.testing.assert_allclose(found.mean_returns.errors[0], stats.sem(values))
        np.testing.assert_allclose(found.win_rates.errors, stats.sem(values > 0.0))

    def test_policy_results_of_identical_policies_in_held_draws_cover_one_half(self):
        # Three adversaries win nine of ten episodes against one agent, and each draw is held for ten episodes, as in
        # 25 draws of `pz-policymap run mpe2.simple_tag_v3 --policies 4 --teams`.
        agents, covered, naive = ["adversary_0", "adversary_1", "adversary_2", "agent_0"], [], []
        for seed in range(120):
            rng = np.random.default_rng(seed)
            drawn = pm.assignments(4, agents, seed=seed, episode=range(250), resample_every=10).tolist()
            played = [
                pm.Episode(
                    row, [1.0, 1.0, 1.0, -1.0] if rng.random() < 0.9 else [0.0, 0.0, 0.0, 1.0], sides=list("rrrb")
                )
                for row in drawn
            ]
            draws = [episode // 10 for episode in range(250)]
            for hits, clusters in ((covered, draws), (naive, None)):
                rates = pm.policy_results(played, 4, clusters=clusters).win_rates
                hits.extend((rates.lows <= 0.5) & (rates.highs >= 0.5))
        assert 0.93 < np.mean(covered) < 0.97
        assert np.mean(naive) < 0.7
