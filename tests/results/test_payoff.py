"""`Payoff`: counts, win rates, mean returns, growing, forgetting and merging."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import pz_policymap as pm
from tests.results.ledgers import DRAW, LOSS, WIN, coarse, contract, episodes, ledger


class TestCounts:
    def test_counts_of_a_pair_are_wins_draws_losses_and_games(self):
        payoff = ledger([WIN] * 3 + [LOSS] * 2 + [DRAW], num_policies=3)
        assert payoff.wins.tolist() == [[0, 3, 0], [2, 0, 0], [0, 0, 0]]
        assert payoff.losses.tolist() == [[0, 2, 0], [3, 0, 0], [0, 0, 0]]
        assert payoff.draws.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        assert payoff.games.tolist() == [[0, 6, 0], [6, 0, 0], [0, 0, 0]]
        assert payoff.wins.dtype == np.int64

    def test_decayed_counts_without_decay_equal_the_raw_ones(self):
        payoff = ledger([WIN, WIN, LOSS, DRAW])
        for name, counts in payoff.decayed._asdict().items():
            np.testing.assert_array_equal(counts, getattr(payoff, name))

    def test_decayed_win_rate_agrees_with_published_code(self):
        # DI-engine's and TLeague's payoffs agree on this sequence at decay 0.99.
        payoff = ledger([WIN] * 6 + [LOSS] * 3 + [DRAW], decay=0.99, prior=0.0)
        assert payoff.win_rates[0, 1] == pytest.approx(0.6401930913772922, rel=1e-12)

    def test_raw_counts_with_decay_are_kept(self):
        payoff = ledger([WIN] * 100 + [LOSS] * 100, decay=0.99)
        assert payoff.wins.tolist() == [[0, 100], [100, 0]]
        # A geometric series: the losses came last, the wins had a hundred games more to fade.
        losses = (1.0 - 0.99**100) / 0.01
        assert payoff.decayed.losses[0, 1] == pytest.approx(losses)
        assert payoff.decayed.wins[0, 1] == pytest.approx(losses * 0.99**100)
        assert payoff.decayed.games[0, 1] == pytest.approx((1.0 - 0.99**200) / 0.01)

    def test_decayed_counts_decay_with_games_of_their_pair_only(self):
        payoff = ledger([WIN], num_policies=3, decay=0.5)
        payoff.record(pm.Episode([0, 2], WIN))
        payoff.record(pm.Episode([0, 1], WIN, sides=["r", "r"]))  # no game: they were on one side
        payoff.record(pm.Episode([0, 0], WIN))
        assert payoff.decayed.wins[0].tolist() == [0.0, 1.0, 1.0]
        payoff.record(pm.Episode([1, 0], LOSS))
        assert payoff.decayed.wins[0].tolist() == [0.0, 1.5, 1.0]

    def test_decayed_draws_add_up_as_wins_do(self):
        # By hand: of wins and draws in turn, each is multiplied by 1/2 once for every game that came after it.
        payoff = ledger([WIN, DRAW, WIN, DRAW, DRAW], decay=0.5)
        assert payoff.decayed.wins[0, 1] == 1 / 16 + 1 / 4
        assert payoff.decayed.draws[0, 1] == 1 / 8 + 1 / 2 + 1

    def test_self_play_changes_neither_counts_nor_ratings(self):
        payoff = ledger([WIN, WIN, LOSS])
        before = payoff.win_rates, payoff.ratings().values
        payoff.record(pm.Episode([0, 0], [5.0, -5.0]))
        assert payoff.games[0, 0] == 0
        np.testing.assert_array_equal(payoff.win_rates, before[0])
        np.testing.assert_array_equal(payoff.ratings().values, before[1])

    def test_returned_arrays_are_copies(self):
        payoff = ledger([WIN])
        for value in (payoff.wins, payoff.losses, payoff.decayed.wins, payoff.win_rates, payoff.mean_returns):
            value[:] = 7
        payoff.state_dict()["table"][:] = 7.0
        assert payoff.wins.tolist() == [[0, 1], [0, 0]]
        assert payoff.win_rates[0, 1] == 2 / 3

    @given(st.lists(episodes(), max_size=10))
    def test_counts_of_any_episodes_follow_the_contract(self, played):
        payoff = pm.Payoff(4)
        wins, draws = np.zeros((4, 4), int), np.zeros((4, 4), int)
        for episode in played:
            payoff.record(episode)
            for (i, j), sign in contract(episode).items():
                wins[i, j] += sign == 1
                draws[i, j] += sign == 0
        np.testing.assert_array_equal(payoff.wins, wins)
        np.testing.assert_array_equal(payoff.draws, draws)

    @pytest.mark.parametrize("decay", [1.0, 0.9])
    def test_unknown_policy_raises_and_changes_nothing(self, decay):
        payoff = ledger([WIN], decay=decay)
        before = payoff.state_dict()
        with pytest.raises(ValueError, match=r"num_policies=2, got \[0, 2\]; grow\(3\)"):
            payoff.record(pm.Episode([0, 2], WIN))
        np.testing.assert_array_equal(payoff.state_dict()["table"], before["table"])

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"num_policies": 0}, ValueError, "num_policies"),
            ({"num_policies": 2.0}, TypeError, "num_policies"),
            ({"decay": 1.1}, ValueError, "decay"),
            ({"decay": -0.1}, ValueError, "decay"),
            ({"decay": float("nan")}, ValueError, "decay"),
            ({"prior": -1.0}, ValueError, "prior"),
            ({"prior": None}, TypeError, "prior"),
        ],
    )
    def test_payoff_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.Payoff(**{"num_policies": 2, **arguments})

    @pytest.mark.parametrize("ledger_of", [pm.Payoff, pm.PolicyStatistics])
    def test_recording_a_non_episode_raises(self, ledger_of):
        with pytest.raises(TypeError, match="episode must be an Episode"):
            ledger_of(2).record([0, 1])


class TestWinRates:
    @pytest.mark.parametrize(
        ("results", "prior", "expected"),
        [
            ([], 1.0, 1 / 2),
            ([], 0.0, 1 / 2),
            ([WIN], 1.0, 2 / 3),
            ([WIN] * 8, 1.0, 9 / 10),
            ([LOSS] * 8, 1.0, 1 / 10),
            ([DRAW] * 5, 1.0, 1 / 2),
            ([WIN, DRAW], 1.0, 5 / 8),  # (1.5 + 1) / (2 + 2)
            ([WIN] * 3 + [LOSS], 4.0, 7 / 12),
            ([WIN] * 8, 0.0, 1.0),
            ([WIN], 0.0, 1.0),
        ],
    )
    def test_win_rates_are_means_of_a_beta_distribution(self, results, prior, expected):
        assert ledger(results, prior=prior).win_rates[0, 1] == pytest.approx(expected, rel=1e-15)

    def test_win_rates_of_a_pair_sum_to_one_despite_rounding(self):
        payoff = ledger([WIN, WIN], decay=0.9, prior=0.3)
        counts, total = payoff.decayed, payoff.decayed.games[0, 1] + 0.6
        assert (counts.wins[0, 1] + 0.3) / total + (counts.wins[1, 0] + 0.3) / total != 1.0
        assert payoff.win_rates[0, 1] + payoff.win_rates[1, 0] == 1.0

    @given(st.lists(episodes(), max_size=12), st.sampled_from([1.0, 0.9]), st.floats(0.0, 10.0))
    def test_win_rates_of_any_episodes_are_antisymmetric_and_from_0_to_1(self, played, decay, prior):
        payoff = pm.Payoff(4, decay, prior)
        for episode in played:
            payoff.record(episode)
        rates = payoff.win_rates
        assert (rates + rates.T == 1.0).all()
        assert ((rates >= 0.0) & (rates <= 1.0)).all()
        assert (np.diag(rates) == 0.5).all()


class TestMeanReturns:
    def test_mean_returns_of_a_cooperative_game_are_the_cross_play_matrix(self):
        payoff = pm.Payoff(3)
        for policies, value in [([0, 0], 4.0), ([0, 1], 1.0), ([1, 0], 3.0), ([1, 1], 6.0)]:
            payoff.record(pm.Episode(policies, [value, value]))
        assert payoff.mean_returns[:2, :2].tolist() == [[4.0, 2.0], [2.0, 6.0]]
        assert np.isnan(payoff.mean_returns[2]).all()
        assert payoff.episodes.tolist() == [[1, 2, 0], [2, 1, 0], [0, 0, 0]]

    def test_mean_returns_count_an_episode_once_with_the_mean_over_seats(self):
        payoff = pm.Payoff(2)
        payoff.record(pm.Episode([0, 0, 1], [1.0, 2.0, 9.0]))
        assert payoff.mean_returns[0].tolist() == [1.5, 1.5]
        assert payoff.mean_returns[1, 0] == 9.0
        assert np.isnan(payoff.mean_returns[1, 1])  # its only seat had no company of its own

    def test_mean_returns_of_teammates_need_no_game(self):
        payoff = pm.Payoff(2)
        payoff.record(pm.Episode([0, 1], [3.0, 5.0], sides=["r", "r"]))
        assert payoff.games.sum() == 0
        assert payoff.mean_returns[0, 1] == 3.0

    @pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [5.0, 5.0], [-1.0, 0.0, 3.5, 9.0]])
    def test_mean_return_errors_agree_with_scipy(self, values):
        payoff = pm.Payoff(2)
        for value in values:
            payoff.record(pm.Episode([0, 1], [value, 2.0 * value]))
        errors = payoff.mean_return_errors
        np.testing.assert_allclose([errors[0, 1], errors[1, 0]], [stats.sem(values), 2.0 * stats.sem(values)])
        found = payoff.mean_return_intervals(confidence=0.9)
        half = stats.t.ppf(0.95, len(values) - 1) * errors[0, 1]
        assert found.highs[0, 1] == pytest.approx(np.mean(values) + half, rel=1e-4)
        assert found.lows[0, 1] == pytest.approx(np.mean(values) - half, rel=1e-4)
        assert found.units[0, 1] == len(values)

    def test_mean_return_errors_of_one_episode_or_huge_returns_are_nan(self):
        payoff = ledger([WIN])
        assert np.isnan(payoff.mean_return_errors).all()
        assert np.isnan(payoff.mean_return_intervals().lows).all()
        huge = ledger([[1e300, 0.0]] * 3)
        assert np.isnan(huge.mean_return_errors[0, 1])
        assert huge.mean_return_errors[1, 0] == 0.0

    @pytest.mark.parametrize("confidence", [0.0, 1.0])
    def test_invalid_confidence_raises(self, confidence):
        for method in (pm.Payoff(2).mean_return_intervals, pm.Payoff(2).overall_win_rates):
            with pytest.raises(ValueError, match=f"^confidence must be above 0 and below 1, got {confidence}"):
                method(confidence)


class TestOverallWinRates:
    def test_overall_win_rates_of_single_games_have_scipys_wilson_interval(self):
        found = ledger([WIN] * 8 + [LOSS] * 2).overall_win_rates(confidence=0.9)
        expected = stats.binomtest(8, 10).proportion_ci(0.9, "wilson")
        np.testing.assert_allclose([found.lows[0], found.highs[0]], expected)
        assert found.units.tolist() == [10.0, 10.0]

    def test_overall_win_rates_count_an_episode_with_many_opponents_once(self):
        payoff = pm.Payoff(8)
        for _ in range(10):
            payoff.record(pm.Episode(list(range(8)), [1.0, *[0.0] * 7]))  # policy 0 beats seven others
        found = payoff.overall_win_rates()
        assert found.units.tolist() == [10.0] * 8
        assert found.values[0] == 1.0
        assert found.lows[0] < stats.binomtest(10, 10).proportion_ci(0.95, "wilson").low

    def test_overall_win_rates_of_few_episodes_are_wide(self):
        payoff = pm.Payoff(4)
        for _ in range(2):
            payoff.record(pm.Episode([0, 1, 2, 3], [3.0, 2.0, 1.0, 0.0]))
        found = payoff.overall_win_rates()
        assert (found.highs - found.lows > 0.8).all()

    def test_overall_win_rates_without_games_are_nan(self):
        found = ledger([WIN], num_policies=3).overall_win_rates()
        assert np.isnan([found.values[2], found.lows[2], found.highs[2]]).all()
        assert found.units[2] == 0.0


class TestScalars:
    def test_scalars_are_flat_and_leave_out_what_is_unknown(self):
        scalars = ledger([WIN] * 3 + [DRAW], num_policies=3).scalars()
        assert all(type(value) is float for value in scalars.values())
        assert scalars["policy_0/games"] == 4.0
        assert scalars["policy_0/win_rate"] == 3.5 / 4
        assert scalars["policy_0/rating"] == -scalars["policy_1/rating"] > 0.0
        assert scalars["policy_1/rating_error"] > 0.0
        assert "policy_2/win_rate" not in scalars
        assert scalars["policy_2/games"] == 0.0

    def test_scalars_without_a_prior_have_no_ratings(self):
        assert list(ledger([WIN], prior=0.0).scalars(prefix="p")) == [
            "p0/games",
            "p0/win_rate",
            "p1/games",
            "p1/win_rate",
        ]


class TestForgetting:
    @pytest.mark.parametrize("settings", [{}, {"decay": 0.9}])
    def test_forget_clears_one_policy_and_keeps_the_others(self, settings):
        payoff = ledger([WIN, DRAW], num_policies=4, **settings)
        payoff.record(pm.Episode([0, 2], LOSS))
        payoff.record(pm.Episode([1, 2, 3], [2.0, 1.0, 0.0]))
        payoff.forget(1)
        assert payoff.games[1].sum() == payoff.games[:, 1].sum() == payoff.episodes[1].sum() == 0
        assert payoff.games[0].tolist() == [0, 0, 1, 0]
        assert payoff.games[2].tolist() == [1, 0, 0, 1]
        assert payoff.win_rates[1].tolist() == [0.5] * 4
        assert np.isfinite(payoff.ratings().errors).all()
        assert np.isfinite(payoff.overall_win_rates().lows[[0, 2, 3]]).all()

    @pytest.mark.parametrize("ledger_of", [pm.Payoff, pm.PolicyStatistics])
    @pytest.mark.parametrize(("policy", "error"), [(2, ValueError), (-1, ValueError), ("1", TypeError)])
    def test_forgetting_an_unknown_policy_raises(self, ledger_of, policy, error):
        with pytest.raises(error, match="^policy must be"):
            ledger_of(2).forget(policy)


class TestRepr:
    def test_repr_of_a_large_ledger_is_cut_and_names_settings(self):
        lines = repr(ledger([WIN] * 8, num_policies=20, decay=0.5)).splitlines()
        assert lines[0] == "Payoff(num_policies=20, decay=0.5)"
        assert lines[1].split() == [*map(str, range(8)), "..."]
        assert lines[2].split()[:3] == ["0", "-", "0.75"]
        assert set(lines[-1].split()) == {"..."}
        assert len(lines) == 11


class TestGrowing:
    @pytest.mark.parametrize("decay", [1.0, 0.9])
    def test_growing_a_ledger_keeps_results(self, decay):
        payoff = ledger([WIN, WIN, DRAW], decay=decay)
        before = payoff.state_dict()["table"]
        payoff.grow(4)
        assert payoff.num_policies == 4
        np.testing.assert_array_equal(payoff.state_dict()["table"][:2, :2], before)
        assert payoff.games.sum() == 6
        payoff.record(pm.Episode([0, 3], WIN))
        assert payoff.wins[0].tolist() == [0, 2, 0, 1]

    @pytest.mark.parametrize("ledger_of", [pm.Payoff, pm.PolicyStatistics])
    def test_growing_to_a_smaller_size_raises(self, ledger_of):
        one = ledger_of(3)
        one.grow(3)
        with pytest.raises(ValueError, match="num_policies must be at least 3, got 2"):
            one.grow(2)


class TestMerging:
    @given(st.lists(episodes(returns=coarse), max_size=24), st.randoms(use_true_random=False))
    def test_merging_in_any_order_equals_one_ledger_to_the_last_bit(self, played, shuffler):
        whole = pm.Payoff(4)
        workers = [pm.Payoff(4) for _ in range(3)]
        for number, episode in enumerate(played):
            whole.record(episode)
            workers[number % 3].record(episode)
        shuffler.shuffle(workers)
        merged = pm.Payoff(4)
        for worker in workers:
            merged.merge(worker)
        np.testing.assert_array_equal(merged.state_dict()["table"], whole.state_dict()["table"])

    def test_merging_different_sizes_has_the_larger_size(self):
        small, large = ledger([WIN]), ledger([LOSS, LOSS], num_policies=4)
        small.merge(large)
        assert small.wins.tolist() == ledger([WIN, LOSS, LOSS], num_policies=4).wins.tolist()
        large.merge(ledger([WIN]))
        assert large.wins[:2, :2].tolist() == [[0, 1], [2, 0]]

    @pytest.mark.parametrize("decays", [(0.99, 1.0), (1.0, 0.99), (0.99, 0.99)])
    def test_merging_decayed_ledgers_raises(self, decays):
        mine, other = (ledger([WIN], decay=decay) for decay in decays)
        with pytest.raises(ValueError, match="episodes, which one ledger records"):
            mine.merge(other)
        assert mine.wins[0, 1] == 1

    def test_decayed_ledger_of_episodes_in_sequence_prefers_recent_ones(self):
        # 100 wins and then 100 losses: 0.27 in sequence, where merged halves would be 0.50.
        sent = [pm.Episode([0, 1], result) for result in [WIN] * 100 + [LOSS] * 100]
        payoff = pm.Payoff(2, decay=0.99, prior=0.0)
        for episode in sent:
            payoff.record(episode)
        assert payoff.win_rates[0, 1] == pytest.approx(0.268, abs=0.001)

    def test_merging_a_non_ledger_raises(self):
        with pytest.raises(TypeError, match="other must be a Payoff"):
            pm.Payoff(2).merge({})


@pytest.mark.parametrize("settings", [{}, {"decay": 0.9}, {"prior": 0.0}, {"prior": 0.3}])
def test_win_rates_of_a_policy_are_its_row_to_the_last_bit(settings):
    rng, payoff = np.random.default_rng(0), pm.Payoff(7, **settings)
    for _ in range(200):
        payoff.record(pm.Episode(rng.integers(0, 6, 3), rng.integers(0, 3, 3).astype(float)))
    for policy in range(7):
        assert payoff.win_rates_of(policy).tolist() == payoff.win_rates[policy].tolist()


def test_results_of_a_policy_equal_its_rows_of_the_matrices():
    payoff = pm.Payoff(3, decay=0.9)
    for returns in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]):
        payoff.record(pm.Episode(policies=[2, 0], returns=returns))
    for policy in range(3):
        won, games = payoff.results_of(policy)
        assert won.tolist() == (payoff.wins[policy] + payoff.draws[policy] / 2).tolist()
        assert games.tolist() == payoff.games[policy].tolist()
    assert payoff.results_of(2)[0].tolist() == [2.5, 0.0, 0.0]
