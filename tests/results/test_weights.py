"""Weights over a population: each formula against independent numbers, and total for every input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pettingzoo.classic import rps_v2

import pz_policymap as pm

WEIGHTINGS = ["hard", "variance", "linear", "linear_capped", lambda x: np.exp(-x)]
win_rates = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=6),
    elements=st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0])),
)


def is_probabilities(weights):
    return (weights >= 0.0).all() and np.allclose(weights.sum(axis=-1), 1.0, atol=1e-12)


class TestPFSP:
    @pytest.mark.parametrize(
        ("rates", "weighting", "expected"),
        [  # DI-engine's pfsp, its "squared" and "variance"
            ([0.1, 0.5, 0.9], "hard", [0.7570093457943925, 0.2336448598130841, 0.009345794392523359]),
            ([0.1, 0.5, 0.9], "variance", [0.2093023255813954, 0.5813953488372093, 0.2093023255813953]),
            ([0.2, 0.4, 0.6, 0.8], "hard", [0.5333333333333333, 0.3, 0.13333333333333333, 0.03333333333333331]),
            ([0.0, 0.3, 1.0], "variance", [0.0, 1.0, 0.0]),
            (
                [0.5, 0.5, 0.7, 0.25],
                "hard",
                [0.21691973969631234, 0.21691973969631234, 0.07809110629067247, 0.4880694143167028],
            ),
            # TLeague's pfsp, its "linear" and "linear_capped"
            (
                [0.05, 0.3, 0.5, 0.9],
                "linear",
                [0.4222222222222222, 0.3111111111111111, 0.2222222222222222, 0.04444444444444443],
            ),
            ([0.05, 0.3, 0.5, 0.9], "linear_capped", [0.3125, 0.3125, 0.3125, 0.062499999999999986]),
        ],
    )
    def test_pfsp_agrees_with_published_code(self, rates, weighting, expected):
        np.testing.assert_allclose(pm.pfsp(rates, weighting), expected, rtol=1e-12, atol=1e-15)

    @given(win_rates, st.sampled_from(WEIGHTINGS), st.floats(0.0, 1e6), st.floats(0.0, 1.0))
    def test_pfsp_of_any_win_rates_is_probabilities(self, rates, weighting, power, floor):
        weights = pm.pfsp(rates, weighting, power, floor)
        assert weights.shape == rates.shape
        assert rates.shape[-1] == 0 or is_probabilities(weights)

    @pytest.mark.parametrize("weighting", WEIGHTINGS[:4])
    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_pfsp_with_all_opponents_beaten_is_uniform(self, weighting, count):
        assert pm.pfsp([1.0] * count, weighting).tolist() == [1.0 / count] * count

    @pytest.mark.parametrize("weighting", WEIGHTINGS)
    def test_pfsp_without_games_is_uniform(self, weighting):
        np.testing.assert_allclose(pm.pfsp(pm.Payoff(4).win_rates, weighting), np.full((4, 4), 0.25))

    @pytest.mark.parametrize("weighting", [*WEIGHTINGS[:4], lambda x: 1.0 - x**2])
    def test_pfsp_of_a_matrix_weights_each_row(self, weighting):
        rates = np.array([[0.1, 0.5, 0.9], [1.0, 1.0, 1.0], [0.5, 0.2, 0.0]])
        np.testing.assert_array_equal(pm.pfsp(rates, weighting), [pm.pfsp(row, weighting) for row in rates])

    def test_pfsp_of_win_rates_includes_the_learner_by_default(self):
        rates = pm.Payoff(3).win_rates
        assert (np.diag(pm.pfsp(rates)) > 0.0).all()
        np.fill_diagonal(rates, 1.0)
        np.testing.assert_allclose(pm.pfsp(rates), (1.0 - np.eye(3)) / 2.0)

    def test_pfsp_power_moves_from_uniform_to_the_hardest_opponent(self):
        assert pm.pfsp([0.9, 0.99, 0.999], power=1e5).tolist() == [1.0, 0.0, 0.0]
        np.testing.assert_allclose(pm.pfsp([0.1, 0.5, 1.0], power=0.0), [1 / 3] * 3)

    def test_pfsp_floor_is_spread_equally(self):
        bare = pm.pfsp([0.0, 1.0])
        assert bare.tolist() == [1.0, 0.0]
        np.testing.assert_allclose(pm.pfsp([0.0, 1.0], floor=0.2), [0.9, 0.1])

    def test_pfsp_weighting_function_gets_a_copy_of_win_rates(self):
        rates = np.array([0.25, 0.5])

        def spoil(x):
            x *= 0.0
            return x + np.array([1.0, 3.0])

        assert pm.pfsp(rates, spoil).tolist() == [0.25, 0.75]
        assert rates.tolist() == [0.25, 0.5]

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("rates", [[1.0, 1.0], [[1.0, 1.0], [0.5, 1.0]]])
    def test_pfsp_rows_of_zero_weights_are_uniform(self, rates):
        np.testing.assert_array_equal(np.ravel(pm.pfsp(rates))[:2], 0.5)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"win_rates": [0.5, float("nan")]}, ValueError, "^win_rates must be from 0 to 1"),
            ({"win_rates": [0.5, 1.1]}, ValueError, "^win_rates"),
            ({"win_rates": [-0.1]}, ValueError, "^win_rates"),
            ({"win_rates": 0.5}, ValueError, "^win_rates must be a vector or a matrix"),
            ({"win_rates": np.zeros((1, 1, 1))}, ValueError, "^win_rates must be a vector or a matrix"),
            ({"win_rates": ["a"]}, TypeError, "^win_rates must be numbers"),
            ({"win_rates": [[0.5], [0.5, 0.5]]}, TypeError, "^win_rates"),
            ({"weighting": "harder"}, ValueError, "^weighting must be one of .*'hard'.*'linear'.* or a function"),
            ({"weighting": None}, ValueError, "^weighting must be one of .*'hard'.*'linear'.* or a function"),
            ({"weighting": lambda x: -x}, ValueError, "^weighting must return"),
            ({"weighting": lambda x: x / 0.0}, ValueError, "^weighting must return"),
            ({"weighting": lambda x: x[:1]}, ValueError, "^weighting must return"),
            ({"weighting": lambda x: "heavy"}, TypeError, "^weighting's result"),
            ({"power": -1.0}, ValueError, "^power"),
            ({"power": float("inf")}, ValueError, "^power"),
            ({"power": "2"}, TypeError, "^power"),
            ({"floor": 1.5}, ValueError, "^floor"),
            ({"floor": True}, TypeError, "^floor"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
    def test_pfsp_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=message):
            pm.pfsp(**{"win_rates": [0.0, 0.5], **arguments})


class TestExclude:
    """A learner in its own population has probability 0, with any floor."""

    @pytest.mark.parametrize("weighting", WEIGHTINGS)
    @pytest.mark.parametrize("floor", [0.0, 0.1, 1.0])
    def test_pfsp_excluded_learner_is_never_met(self, weighting, floor):
        weights = pm.pfsp([0.5, 0.5, 0.8], weighting, floor=floor, exclude=0)
        assert weights[0] == 0.0
        np.testing.assert_allclose(weights[1:], pm.pfsp([0.5, 0.8], weighting, floor=floor))

    def test_pfsp_diagonal_of_ones_is_met_through_the_floor(self):
        assert pm.pfsp([1.0, 0.5, 0.5], floor=0.1)[0] == pytest.approx(0.1 / 3)

    def test_pfsp_matrix_excludes_each_learner_from_its_row(self):
        rates = np.array([[0.5, 0.2, 0.9], [0.8, 0.5, 0.4]])
        weights = pm.pfsp(rates, floor=0.3, exclude="self")
        np.testing.assert_array_equal(weights[0], pm.pfsp(rates[0], floor=0.3, exclude=0))
        np.testing.assert_array_equal(weights[1], pm.pfsp(rates[1], floor=0.3, exclude=1))

    def test_pfsp_several_learners_are_excluded_from_all_rows(self):
        weights = pm.pfsp(np.full((2, 4), 0.5), exclude=[0, 3])
        np.testing.assert_allclose(weights, [[0.0, 0.5, 0.5, 0.0]] * 2)

    def test_latest_and_delta_uniform_skip_excluded_policies(self):
        assert pm.latest(5, window=2, exclude=4).tolist() == [0.0, 0.0, 0.25, 0.75, 0.0]
        assert pm.latest(4, window=3, latest_ratio=0.0, exclude=1).tolist() == [1 / 3, 0.0, 1 / 3, 1 / 3]
        assert pm.delta_uniform(5, delta=0.0, exclude=[0, 2]).tolist() == [0.0, 1 / 3, 0.0, 1 / 3, 1 / 3]

    def test_excluded_learner_in_a_mapping_is_never_its_own_opponent(self):
        payoff = pm.Payoff(3)
        mapping = pm.Focal(pm.Fixed(0), pm.Weighted(lambda: pm.pfsp(payoff.win_rates[0], floor=0.5, exclude=0)))
        drawn = pm.assignments(mapping, ["a", "b"], seed=0, episode=range(200), resample_every=1)
        assert (np.sort(drawn, axis=1)[:, 0] == 0).all()
        assert set(np.sort(drawn, axis=1)[:, 1]) == {1, 2}

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: pm.pfsp([0.5], exclude=0), ValueError, "exclude must leave at least one policy, got 0 of 1"),
            (lambda: pm.pfsp([0.5, 0.5], exclude=2), ValueError, "exclude must be from 0 to 1, got 2"),
            (lambda: pm.pfsp([0.5, 0.5], exclude=0.0), TypeError, "exclude must be an integer, got 0.0"),
            (lambda: pm.pfsp([0.5, 0.5], exclude="self"), ValueError, "exclude must be a policy, a sequence of"),
            (lambda: pm.pfsp(np.zeros((3, 2)), exclude="self"), ValueError, "exclude must be a policy, a sequence of"),
            (lambda: pm.pfsp(np.zeros((2, 2)), exclude="me"), ValueError, "exclude must be a policy, a sequence of"),
            (lambda: pm.latest(2, exclude=[0, 1]), ValueError, "exclude must leave at least one policy"),
            (lambda: pm.delta_uniform(2, exclude={0}), TypeError, "exclude must be a sequence"),
        ],
    )
    def test_invalid_exclude_raises(self, call, error, message):
        with pytest.raises(error, match=f"^{message}"):
            call()


class TestByAge:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [  # ML-Agents: the latest with that ratio, else uniform over the last `window`
            ((20, 10, 0.5), [0.0] * 10 + [0.05] * 9 + [0.55]),
            ((3, 10, 0.5), [1 / 6, 1 / 6, 2 / 3]),
            ((4, 2, 0.0), [0.0, 0.0, 0.5, 0.5]),
            ((4, 4, 1.0), [0.0, 0.0, 0.0, 1.0]),
            ((4, 1, 0.3), [0.0, 0.0, 0.0, 1.0]),
            ((1, 10, 0.5), [1.0]),
            ((0, 10, 0.5), []),
        ],
    )
    def test_latest_mixes_the_latest_and_the_last_few(self, arguments, expected):
        np.testing.assert_allclose(pm.latest(*arguments), expected)

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [  # Bansal et al.: uniform from delta * v to v, the latest
            ((5, 0.0), [0.2] * 5),
            ((5, 0.5), [0.0, 0.0, 1 / 3, 1 / 3, 1 / 3]),
            ((5, 0.6), [0.0, 0.0, 0.0, 0.5, 0.5]),
            ((5, 1.0), [0.0, 0.0, 0.0, 0.0, 1.0]),
            ((101, 0.07), [0.0] * 7 + [1 / 94] * 94),  # 0.07 * 100 is 7.000000000000001
            ((1, 0.5), [1.0]),
            ((0, 0.5), []),
        ],
    )
    def test_delta_uniform_chooses_the_later_part(self, arguments, expected):
        np.testing.assert_allclose(pm.delta_uniform(*arguments), expected)

    def test_weights_by_age_defaults_are_half_and_the_last_ten(self):
        np.testing.assert_array_equal(pm.latest(20), pm.latest(20, 10, 0.5))
        np.testing.assert_array_equal(pm.delta_uniform(20), pm.delta_uniform(20, 0.5))

    @given(st.integers(1, 200), st.integers(1, 300), st.floats(0.0, 1.0))
    def test_weights_by_age_of_any_population_are_probabilities(self, num_policies, window, share):
        assert is_probabilities(pm.latest(num_policies, window, share))
        assert is_probabilities(pm.delta_uniform(num_policies, share))

    @pytest.mark.parametrize(
        ("function", "arguments", "error", "message"),
        [
            (pm.latest, {"num_policies": -1}, ValueError, "^num_policies"),
            (pm.latest, {"num_policies": 2.0}, TypeError, "^num_policies"),
            (pm.latest, {"num_policies": 2, "window": 0}, ValueError, "^window"),
            (pm.latest, {"num_policies": 2, "latest_ratio": 1.1}, ValueError, "^latest_ratio"),
            (pm.latest, {"num_policies": 2, "latest_ratio": float("nan")}, ValueError, "^latest_ratio"),
            (pm.delta_uniform, {"num_policies": -1}, ValueError, "^num_policies"),
            (pm.delta_uniform, {"num_policies": 2, "delta": -0.1}, ValueError, "^delta"),
            (pm.delta_uniform, {"num_policies": 2, "delta": 1.1}, ValueError, "^delta"),
            (pm.delta_uniform, {"num_policies": 2, "delta": None}, TypeError, "^delta"),
        ],
    )
    def test_weights_by_age_invalid_arguments_raise(self, function, arguments, error, message):
        with pytest.raises(error, match=message):
            function(**arguments)


class TestInAMapping:
    def test_weighted_mapping_follows_the_ledger_at_each_draw(self):
        payoff = pm.Payoff(3)
        opponents = pm.Weighted(lambda: pm.pfsp(payoff.win_rates[0], power=50.0))
        assigner = pm.PolicyAssigner(opponents, agents=["a"], resample_every=1, seed=0)
        for _ in range(50):
            payoff.record(pm.Episode([0, 2], [0.0, 1.0]))  # policy 2 wins always
        assert {int(assigner.begin_episodes()[0, 0]) for _ in range(20)} == {2}

    def test_weighted_matrix_gives_each_learner_its_own_row(self):
        payoff = pm.Payoff(4)
        for learner, nemesis in [(0, 2), (1, 3)]:
            for opponent in (2, 3):
                for _ in range(50):
                    returns = [0.0, 1.0] if opponent == nemesis else [1.0, 0.0]
                    payoff.record(pm.Episode([learner, opponent], returns))
        mapping = pm.Focal(pm.Uniform([0, 1]), pm.Weighted(lambda: pm.pfsp(payoff.win_rates, power=50.0)))
        assigner = pm.PolicyAssigner(mapping, agents=["a", "b"], num_envs=200, seed=0)
        assert {tuple(sorted(pair)) for pair in assigner.begin_episodes().tolist()} == {(0, 2), (1, 3)}

    @pytest.mark.parametrize("change", [+3, -2])
    def test_weighted_population_change_keeps_the_block_in_force(self, change):
        population = [3]
        mapping = pm.Weighted(lambda: pm.latest(population[0], window=1, latest_ratio=1.0))  # always the latest
        env = pm.wrap(rps_v2.parallel_env(), mapping, resample_every=3, seed=0)

        def begin():
            env.reset()
            return set(env.policy_ids.values())

        played = [begin()]
        population[0] += change
        played += [begin() for _ in range(3)]
        population[0] -= change
        env.set_mapping(mapping, now=True)
        played.append(begin())
        assert played == [{2}, {2}, {2}, {2 + change}, {2}]
