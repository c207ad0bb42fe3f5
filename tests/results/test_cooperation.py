"""`cooperation`: self-play, cross-play, their gap with its error, and the worst partner."""

import numpy as np
import pytest
from scipy import stats

import pz_policymap as pm


def team(policies, value):
    return pm.Episode(policies, [value] * len(policies), sides=[0] * len(policies))


class TestCooperation:
    def test_cooperation_gap_and_worst_partner_by_hand(self):
        results = [([0, 0], 10.0), ([0, 0], 8.0), ([0, 1], 4.0), ([1, 0], 2.0), ([0, 2], 7.0), ([1, 1], 5.0)]
        found = pm.cooperation([team(*result) for result in results], 4)
        np.testing.assert_array_equal(found.self_play, [9.0, 5.0, np.nan, np.nan])
        np.testing.assert_array_equal(found.cross_play, [5.0, 3.0, 7.0, np.nan])  # partners count alike
        np.testing.assert_array_equal(found.gaps, [4.0, 2.0, np.nan, np.nan])
        assert found.worst_partners.tolist() == [1, 0, 0, -1]
        np.testing.assert_array_equal(found.worst_returns, [3.0, 3.0, 7.0, np.nan])
        assert np.isnan(found.gap_errors).all()  # policy 2 was a partner once, policy 1 had one self-play episode

    def test_cooperation_errors_of_two_seats_are_those_of_independent_means(self):
        rng = np.random.default_rng(0)
        own, first, second = rng.normal(size=6), rng.normal(size=4), rng.normal(size=5)
        played = [team([0, 0], x) for x in own] + [team([0, 1], x) for x in first] + [team([2, 0], x) for x in second]
        expected = np.sqrt(stats.sem(own) ** 2 + stats.sem(first) ** 2 / 4 + stats.sem(second) ** 2 / 4)
        assert pm.cooperation(played, 3).gap_errors[0] == pytest.approx(expected, rel=1e-12)

    def test_cooperation_intervals_of_three_seats_and_shared_seeds_cover_the_gap(self):
        rng = np.random.default_rng(2)
        covered, naive = [], []
        for _ in range(300):
            played, seeds = [], []
            for seed in range(20):
                deal = rng.normal()  # shifts every game of this environment seed
                for policies, mean in ([0, 0, 0], 4.0), ([0, 1, 2], 1.0), ([1, 0, 0], 2.0), ([2, 2, 0], 3.0):
                    played.append(team(policies, mean + deal * (1.0 + (policies == [0, 0, 0])) + 0.3 * rng.normal()))
                    seeds.append(seed)
            for hits, clusters in ((covered, seeds), (naive, None)):
                found = pm.cooperation(played, 3, clusters=clusters)
                # Partner 1: mean of 1 and 2; partner 2: mean of 1 and 3.
                hits.append(abs(found.gaps[0] - (4.0 - (1.5 + 2.0) / 2.0)) < 2.09 * found.gap_errors[0])
        assert 0.92 < np.mean(covered) < 0.98
        assert not 0.92 < np.mean(naive) < 0.98

    def test_cooperation_self_play_needs_all_seats(self):
        found = pm.cooperation([team([0, 0, 1], 1.0), pm.Episode([0], [5.0])], 2)
        assert np.isnan(found.self_play).all()
        assert found.cross_play.tolist() == [1.0, 1.0]

    def test_cooperation_without_episodes_is_nan(self):
        found = pm.cooperation([], 2)
        assert np.isnan(found.gaps).all()
        assert found.worst_partners.tolist() == [-1, -1]

    def test_cooperation_invalid_arguments_raise(self):
        with pytest.raises(ValueError, match="num_policies=1, got"):
            pm.cooperation([team([0, 1], 1.0)], 1)
        with pytest.raises(ValueError, match="zip"):
            pm.cooperation([team([0, 1], 1.0)], 2, clusters=[])
