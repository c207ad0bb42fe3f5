"""`PolicyStatistics`: counts, windows, scalars, growing and forgetting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from tests.results.ledgers import WIN, episodes


@pytest.mark.filterwarnings("error")  # a mean without episodes does not divide by zero
class TestStatistics:
    def test_statistics_default_window_is_100_episodes(self):
        assert pm.PolicyStatistics(1).window == 100

    def test_statistics_count_all_episodes_and_average_over_the_window(self):
        statistics = pm.PolicyStatistics(3, window=2)
        for value, length in [(9.0, 9), (1.0, 4), (3.0, 6)]:
            statistics.record(pm.Episode([0, 1], [value, -value], [length, 2 * length]))
        assert statistics.episodes.tolist() == [3, 3, 0]
        assert statistics.steps.tolist() == [19, 38, 0]
        np.testing.assert_array_equal(statistics.mean_return, [2.0, -2.0, np.nan])
        np.testing.assert_array_equal(statistics.mean_length, [5.0, 10.0, np.nan])

    def test_statistics_of_several_seats_are_one_episode_with_their_mean(self):
        statistics = pm.PolicyStatistics(2)
        statistics.record(pm.Episode([0, 0, 1], [1.0, 2.0, 7.0], [4, 6, 3]))
        assert statistics.episodes.tolist() == [1, 1]
        assert statistics.steps.tolist() == [10, 3]
        assert statistics.mean_return.tolist() == [1.5, 7.0]
        assert statistics.mean_length.tolist() == [5.0, 3.0]

    def test_scalars_are_flat_and_leave_out_what_is_unknown(self):
        statistics = pm.PolicyStatistics(2)
        statistics.record(pm.Episode([1], [2.5], [4]))
        assert statistics.scalars() == {
            "policy_0/episodes": 0.0,
            "policy_0/steps": 0.0,
            "policy_1/episodes": 1.0,
            "policy_1/steps": 4.0,
            "policy_1/mean_return": 2.5,
            "policy_1/mean_length": 4.0,
        }
        assert all(type(value) is float for value in statistics.scalars().values())
        assert "league/p1/steps" in statistics.scalars(prefix="league/p")

    def test_growing_statistics_keeps_results(self):
        statistics = pm.PolicyStatistics(1, window=2)
        statistics.record(pm.Episode([0], [2.0], [4]))
        statistics.grow(3)
        statistics.record(pm.Episode([2, 0], [1.0, 4.0], [1, 1]))
        assert statistics.num_policies == 3
        np.testing.assert_array_equal(statistics.mean_return, [3.0, np.nan, 1.0])

    @given(st.lists(episodes(), max_size=20), st.integers(1, 5))
    def test_statistics_means_are_those_of_the_last_episodes(self, played, window):
        statistics = pm.PolicyStatistics(4, window)
        seen = {policy: [] for policy in range(4)}
        for episode in played:
            statistics.record(episode)
            for policy in set(episode.policies):
                mine = [r for p, r in zip(episode.policies, episode.returns, strict=True) if p == policy]
                seen[policy].append(math.fsum(mine) / len(mine))
        for policy, values in seen.items():
            expected = np.mean(values[-window:]) if values else np.nan
            np.testing.assert_allclose(statistics.mean_return[policy], expected, rtol=1e-9, atol=1e-6)

    def test_unknown_policy_raises_and_changes_nothing(self):
        statistics = pm.PolicyStatistics(2)
        with pytest.raises(ValueError, match=r"num_policies=2, got \[0, 2\]; grow\(3\)"):
            statistics.record(pm.Episode([0, 2], WIN))
        assert statistics.episodes.tolist() == [0, 0]

    def test_forget_clears_one_policy_and_keeps_the_others(self):
        statistics = pm.PolicyStatistics(2)
        statistics.record(pm.Episode([0, 1], [2.0, 3.0], [4, 5]))
        statistics.forget(0)
        np.testing.assert_array_equal(statistics.mean_return, [np.nan, 3.0])
        assert (statistics.episodes.tolist(), statistics.steps.tolist()) == ([0, 1], [0, 5])

    def test_repr_of_many_policies_is_cut(self):
        lines = repr(pm.PolicyStatistics(20, window=5)).splitlines()
        assert lines[0] == "PolicyStatistics(num_policies=20, window=5)"
        assert lines[2].split() == ["0", "0", "0", "-", "-"]
        assert len(lines) == 11

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"num_policies": 0}, ValueError, "num_policies must be at least 1, got 0"),
            ({"window": 0}, ValueError, "window must be at least 1, got 0"),
            ({"window": 1.5}, TypeError, "window must be an integer, got 1.5"),
        ],
    )
    def test_statistics_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.PolicyStatistics(**{"num_policies": 2, **arguments})
