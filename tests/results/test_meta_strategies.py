"""Nash mixtures and alpha-rank, against values solved by hand, published or computed independently."""

import builtins
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

import pz_policymap as pm
from tests.results.test_weights import is_probabilities

games = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-1.0, 1.0).map(lambda x: round(x, 3))),
)


class TestNash:
    @pytest.mark.parametrize(
        ("payoffs", "expected"),
        [  # solved by hand: make the payoffs of all columns equal
            ([[0, -1, 2], [1, 0, -1], [-2, 1, 0]], [1 / 4, 1 / 2, 1 / 4]),
            ([[2, -1], [-1, 1]], [2 / 5, 3 / 5]),
            ([[0, 0.2, -0.5], [-0.2, 0, 0.4], [0.5, -0.4, 0]], [4 / 11, 5 / 11, 2 / 11]),
            ([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], [1 / 3] * 3),
            ([[0, 1], [-1, 0]], [1.0, 0.0]),  # one beats the other
            ([[1e6, 1e6 - 1, 1e6 + 2], [1e6 + 1, 1e6, 1e6 - 1], [1e6 - 2, 1e6 + 1, 1e6]], [1 / 4, 1 / 2, 1 / 4]),
            ([[3]], [1.0]),
        ],
    )
    def test_nash_of_games_solved_by_hand_is_the_equilibrium(self, payoffs, expected):
        np.testing.assert_allclose(pm.nash(payoffs), expected, atol=1e-9)

    def test_nash_of_win_rates_needs_no_conversion(self):
        payoff = pm.Payoff(3)
        for winner, loser in [(1, 0), (2, 1), (0, 2)]:  # paper, rock; scissors, paper; rock, scissors
            payoff.record(pm.Episode([winner, loser], [1.0, -1.0]))
        np.testing.assert_allclose(pm.nash(payoff.win_rates), [1 / 3] * 3, atol=1e-9)

    @pytest.mark.parametrize(
        ("payoffs", "expected"), [([], []), (np.zeros((0, 0)), []), (np.zeros((2, 0)), [0.5, 0.5])]
    )
    def test_nash_of_an_empty_game_is_empty_or_uniform(self, payoffs, expected):
        assert pm.nash(payoffs).tolist() == expected
        assert pm.nash(payoffs, two_sided=True)[1].tolist() == []

    @pytest.mark.parametrize("value", [0.0, 0.5, -7.0])
    def test_nash_of_a_constant_game_is_uniform(self, value):
        np.testing.assert_allclose(pm.nash(np.full((4, 4), value)), [0.25] * 4)

    def test_nash_of_identical_policies_has_equal_shares(self):
        rock, paper, scissors = range(3)
        moves = [rock, paper, rock, scissors, rock]
        beats = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
        np.testing.assert_allclose(pm.nash(beats[np.ix_(moves, moves)]), [1 / 9, 1 / 3, 1 / 9, 1 / 3, 1 / 9], atol=1e-9)

    def test_nash_two_sided_returns_both_mixtures(self):
        # Row 0 secures 1/2 with (1/2, 1/2) over its two useful rows; by hand, the column mixture is (1/4, 3/4).
        payoffs = [[2, 0], [-1, 1], [-5, -5]]
        rows, columns = pm.nash(payoffs, two_sided=True)
        np.testing.assert_allclose(rows, [1 / 2, 1 / 2, 0.0], atol=1e-9)
        np.testing.assert_allclose(columns, [1 / 4, 3 / 4], atol=1e-9)

    @given(games, st.sampled_from([1e-12, 1.0, 1e15, 1e300]))
    def test_nash_of_any_game_has_no_profitable_deviation(self, payoffs, unit):
        rows, columns = pm.nash(payoffs * unit, two_sided=True)
        assert is_probabilities(rows)
        assert is_probabilities(columns)
        assert (payoffs @ columns).max() - (rows @ payoffs).min() < 1e-6

    @given(games, st.randoms(use_true_random=False))
    def test_nash_of_shuffled_policies_is_shuffled(self, payoffs, random):
        order = list(range(len(payoffs)))
        random.shuffle(order)
        np.testing.assert_allclose(pm.nash(payoffs[order]), pm.nash(payoffs)[order], atol=1e-6)

    def test_nash_of_payoffs_of_many_magnitudes_secures_the_value(self):
        rng = np.random.default_rng(1)
        for _ in range(100):
            payoffs = rng.choice([0.0, 1e-9, 1.0], rng.integers(1, 14, 2))
            rows, columns = pm.nash(payoffs, two_sided=True)
            assert (payoffs @ columns).max() - (rows @ payoffs).min() < 1e-6

    def test_nash_failed_solver_raises(self, monkeypatch):
        def fails(**problem):
            return linprog([1.0], A_ub=[[1.0]], b_ub=[-1.0])  # which has no solution

        monkeypatch.setattr("scipy.optimize.linprog", fails)
        with pytest.raises(ArithmeticError, match="nash"):
            pm.nash([[0, 1], [1, 0]])

    def test_nash_without_scipy_names_the_install_command(self, monkeypatch):
        real = builtins.__import__

        def no_scipy(name, *rest):
            if name.startswith("scipy"):
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", no_scipy)
        with pytest.raises(ImportError, match=r"^nash needs SciPy: pip install scipy$"):
            pm.nash([[0, 1], [1, 0]])

    @pytest.mark.parametrize(
        ("payoffs", "error", "message"),
        [
            ([[0.0, float("nan")], [0.0, 0.0]], ValueError, "payoffs must be finite"),
            ([[0.0, float("inf")], [0.0, 0.0]], ValueError, "payoffs must be finite"),
            ([0.0, 1.0], ValueError, "payoffs must be a matrix"),
            (np.zeros((2, 2, 2)), ValueError, "payoffs must be a matrix"),
            ([["a"]], TypeError, "payoffs must be numbers"),
        ],
    )
    def test_nash_invalid_payoffs_raise(self, payoffs, error, message):
        with pytest.raises(error, match=message):
            pm.nash(payoffs)

    def test_nash_excluded_policy_has_no_share_and_does_not_affect_others(self):
        payoffs = np.array([[0, 9, 9, 9], [-9, 0, -1, 2], [-9, 1, 0, -1], [-9, -2, 1, 0]])
        np.testing.assert_allclose(pm.nash(payoffs, exclude=0), [0.0, 1 / 4, 1 / 2, 1 / 4], atol=1e-9)
        rows, columns = pm.nash(payoffs, two_sided=True, exclude=[0])
        np.testing.assert_allclose(rows, columns, atol=1e-9)

    @pytest.mark.parametrize(
        ("payoffs", "exclude", "message"),
        [
            (np.zeros((2, 3)), 0, "exclude needs payoffs that are a square matrix"),
            (np.zeros((2, 2)), [0, 1], "exclude must leave at least one policy"),
            (np.zeros((2, 2)), 2, "exclude must be from 0 to 1, got 2"),
        ],
    )
    def test_nash_invalid_exclude_raises(self, payoffs, exclude, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            pm.nash(payoffs, exclude=exclude)


# Computed by OpenSpiel 2.0.2, `open_spiel.python.egt.alpharank.compute`: 20 random games of one population, 4 of two
# populations and 2 with infinite alpha.
OPENSPIEL = json.loads((Path(__file__).parent / "alpha_rank_openspiel.json").read_text())


class TestAlphaRank:
    def test_alpha_rank_openspiels_test_game_has_its_shares(self):
        # OpenSpiel's alpharank_test.py, test_stationary_distribution: a game of Han et al. 2013.
        payoffs = [
            [0.875, 0.75, 0.0, 2.75, 0.75],
            [1.0, 1.0, -1.0, -1.0, -1.0],
            [0.0, 2.0, 0.0, 0.0, 0.0],
            [-2.0, 2.0, 0.0, 0.0, 0.0],
            [1.0, 2.0, 0.0, 0.0, 0.0],
        ]
        shares = pm.alpha_rank(payoffs, alpha=0.1, population_size=20, local_selection=False)
        np.testing.assert_allclose(shares, [0.40966787, 0.07959841, 0.20506998, 0.08505983, 0.2206039], atol=1e-8)

    @pytest.mark.parametrize("case", OPENSPIEL, ids=range(len(OPENSPIEL)))
    def test_alpha_rank_random_games_have_openspiels_shares(self, case):
        settings = {**case, "alpha": float(case["alpha"])}
        expected = settings.pop("shares")
        np.testing.assert_allclose(pm.alpha_rank(**settings), expected, atol=1e-9)

    @pytest.mark.parametrize("settings", [{}, {"alpha": 0.1}, {"alpha": math.inf}, {"local_selection": False}])
    def test_alpha_rank_rock_paper_scissors_gives_thirds(self, settings):
        shares = pm.alpha_rank([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], **settings)
        np.testing.assert_allclose(shares, [1 / 3] * 3, rtol=1e-12)

    def test_alpha_rank_large_alpha_does_not_overflow(self):
        np.testing.assert_allclose(pm.alpha_rank([[0, 1e6], [-1e6, 0]], alpha=1e9), [1.0, 0.0], atol=1e-12)

    def test_alpha_rank_empty_game_is_empty(self):
        assert pm.alpha_rank([]).tolist() == []

    def test_alpha_rank_excluded_policy_is_not_in_the_game(self):
        payoffs = np.array([[0, 9, 9, 9], [-9, 0, -1, 1], [-9, 1, 0, -1], [-9, -1, 1, 0]])
        for settings in ({}, {"local_selection": False}):
            shares = pm.alpha_rank(payoffs, exclude=0, **settings)
            np.testing.assert_allclose(shares, [0.0, 1 / 3, 1 / 3, 1 / 3], rtol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"payoffs": np.zeros((2, 3))}, "payoffs must be a square matrix"),
            ({"payoffs": [[np.nan]]}, "payoffs must be finite"),
            ({"alpha": 0.0}, "alpha must be a number above 0, or math.inf, got 0.0"),
            ({"alpha": "1"}, "alpha must be a number above 0, or math.inf, got '1'"),
            ({"population_size": 1}, "population_size must be at least 2, got 1"),
            ({"epsilon": 0.5}, "epsilon must be above 0 and below 1/2, got 0.5"),
            ({"alpha": math.inf, "local_selection": False}, "alpha must be finite where local_selection is False"),
            ({"column_payoffs": np.zeros((2, 3))}, r"column_payoffs must have the shape \(2, 2\) of payoffs"),
            ({"column_payoffs": np.zeros((2, 2)), "exclude": 0}, "column_payoffs must be None where exclude"),
            ({"column_payoffs": np.zeros((2, 2)), "local_selection": False}, "column_payoffs must be None where"),
        ],
    )
    def test_alpha_rank_invalid_arguments_raise(self, arguments, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            pm.alpha_rank(**{"payoffs": np.zeros((2, 2)), **arguments})
