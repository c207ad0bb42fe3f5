"""Nash mixtures and alpha-rank, against values solved by hand, published or computed independently."""

import builtins

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
    def test_it_finds_the_equilibrium(self, payoffs, expected):
        np.testing.assert_allclose(pm.nash(payoffs), expected, atol=1e-9)

    def test_win_rates_serve_as_they_are(self):
        payoff = pm.Payoff(3)
        for winner, loser in [(1, 0), (2, 1), (0, 2)]:  # paper, rock; scissors, paper; rock, scissors
            payoff.record(pm.Episode([winner, loser], [1.0, -1.0]))
        np.testing.assert_allclose(pm.nash(payoff.win_rates), [1 / 3] * 3, atol=1e-9)

    @pytest.mark.parametrize(
        ("payoffs", "expected"), [([], []), (np.zeros((0, 0)), []), (np.zeros((2, 0)), [0.5, 0.5])]
    )
    def test_an_empty_game_has_the_empty_or_the_uniform_answer(self, payoffs, expected):
        assert pm.nash(payoffs).tolist() == expected
        assert pm.nash(payoffs, two_sided=True)[1].tolist() == []

    @pytest.mark.parametrize("value", [0.0, 0.5, -7.0])
    def test_a_game_without_differences_is_uniform(self, value):
        np.testing.assert_allclose(pm.nash(np.full((4, 4), value)), [0.25] * 4)

    def test_policies_that_are_alike_have_equal_shares(self):
        rock, paper, scissors = range(3)
        moves = [rock, paper, rock, scissors, rock]
        beats = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
        np.testing.assert_allclose(pm.nash(beats[np.ix_(moves, moves)]), [1 / 9, 1 / 3, 1 / 9, 1 / 3, 1 / 9], atol=1e-9)

    def test_two_sides_with_different_policies(self):
        # Row 0 secures 1/2 with (1/2, 1/2) over its two useful rows; by hand, the column mixture is (1/4, 3/4).
        payoffs = [[2, 0], [-1, 1], [-5, -5]]
        rows, columns = pm.nash(payoffs, two_sided=True)
        np.testing.assert_allclose(rows, [1 / 2, 1 / 2, 0.0], atol=1e-9)
        np.testing.assert_allclose(columns, [1 / 4, 3 / 4], atol=1e-9)

    @given(games, st.sampled_from([1e-12, 1.0, 1e15, 1e300]))
    def test_equilibrium_has_no_profitable_deviation(self, payoffs, unit):
        rows, columns = pm.nash(payoffs * unit, two_sided=True)
        assert is_probabilities(rows)
        assert is_probabilities(columns)
        assert (payoffs @ columns).max() - (rows @ payoffs).min() < 1e-6

    @given(games, st.randoms(use_true_random=False))
    def test_the_order_of_policies_does_not_matter(self, payoffs, random):
        order = list(range(len(payoffs)))
        random.shuffle(order)
        np.testing.assert_allclose(pm.nash(payoffs[order]), pm.nash(payoffs)[order], atol=1e-6)

    def test_payoffs_many_orders_of_magnitude_apart_still_secure_the_value(self):
        rng = np.random.default_rng(1)
        for _ in range(100):
            payoffs = rng.choice([0.0, 1e-9, 1.0], rng.integers(1, 14, 2))
            rows, columns = pm.nash(payoffs, two_sided=True)
            assert (payoffs @ columns).max() - (rows @ payoffs).min() < 1e-6

    def test_a_failure_of_the_solver_is_not_silent(self, monkeypatch):
        def fails(**problem):
            return linprog([1.0], A_ub=[[1.0]], b_ub=[-1.0])  # which has no solution

        monkeypatch.setattr("scipy.optimize.linprog", fails)
        with pytest.raises(ArithmeticError, match="nash"):
            pm.nash([[0, 1], [1, 0]])

    def test_without_scipy_the_error_names_the_install_command(self, monkeypatch):
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
    def test_bad_input_names_the_argument(self, payoffs, error, message):
        with pytest.raises(error, match=message):
            pm.nash(payoffs)
