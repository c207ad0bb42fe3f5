"""`Lineups`: sums of joint scores that are exact, bounded in memory and independent of the order of merges."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap.results import lineups as module
from pz_policymap.results.games import games
from pz_policymap.results.lineups import Lineups
from tests.results.ledgers import coarse, episodes, same


def random_episodes(count, num_policies=12, seed=0):
    rng = np.random.default_rng(seed)
    return [pm.Episode(rng.permutation(num_policies)[:4], rng.integers(0, 3, 4)) for _ in range(count)]


def recorded(played, num_policies=12):
    payoff = pm.Payoff(num_policies)
    for episode in played:
        payoff.record(episode)
    return payoff


def split_and_merged(played, parts, shuffler, num_policies=12):
    """A ledger merged in random order from workers that recorded every n-th episode."""
    workers = [recorded(played[part::parts], num_policies) for part in range(parts)]
    shuffler.shuffle(workers)
    merged = pm.Payoff(num_policies)
    for worker in workers:
        merged.merge(worker)
    return merged


class TestExactness:
    @given(st.lists(episodes(), max_size=15))
    def test_deviations_equal_those_of_the_episodes_one_by_one(self, played):
        payoff = recorded(played, 4)
        rates = payoff.overall_win_rates()
        squares, several, single = np.zeros(4), np.zeros(4), np.zeros(4)
        for episode in played:
            found = games(episode)
            joint = found.played.sum() > 2
            for row, policy in enumerate(found.policies.tolist()):
                if count := found.played[row].sum():
                    score = (found.results[row].sum() + count) / 2.0
                    if joint:
                        several[policy] += 1
                        squares[policy] += (score - rates.values[policy] * count) ** 2
                    else:
                        single[policy] += count
        np.testing.assert_array_equal(rates.units, several + single)
        joint_games = payoff.state_dict()["table"][..., 2].sum(axis=1)
        found, _ = payoff._table.lineups.deviations(
            np.nan_to_num(rates.values), payoff.games.sum(axis=1).astype(float), joint_games
        )
        factor = np.where(several > 1, several / np.maximum(several - 1, 1), 1.0)
        expected = factor * squares + np.nan_to_num(rates.values * (1.0 - rates.values)) * single
        np.testing.assert_allclose(found, expected, atol=1e-9)

    @given(st.lists(episodes(returns=coarse), max_size=20), st.randoms(use_true_random=False))
    def test_merged_lineups_in_any_order_equal_those_of_one_ledger(self, played, shuffler):
        assert same(split_and_merged(played, 3, shuffler, 4), recorded(played, 4))


class TestBudget:
    @pytest.fixture(autouse=True)
    def small_budget(self, monkeypatch):
        monkeypatch.setattr(module, "BUDGET", 1000)  # 40 lineups of four policies

    @pytest.mark.parametrize("seed", range(5))
    def test_trimmed_lineups_do_not_depend_on_order_or_splits(self, seed):
        played = random_episodes(600)
        straight = recorded(played)
        random.Random(seed).shuffle(played)
        assert same(recorded(played), straight)
        assert same(split_and_merged(played, 4, random.Random(seed)), straight)

    def test_trimmed_lineups_bound_memory(self):
        payoff, largest = pm.Payoff(12), 0
        for episode in random_episodes(600):
            payoff.record(episode)
            largest = max(largest, sum(sums.size for sums in payoff._table.lineups._sums.values()))
        assert largest <= 2 * 1000
        assert payoff.state_dict()["lineups"].size <= 1000 * (1 + 4 + 16 + 25) // 25
        assert payoff.state_dict()["lineups_limit"] < module.UNLIMITED

    def test_trimmed_lineups_estimate_the_intervals_of_all(self, monkeypatch):
        trimmed = recorded(random_episodes(600)).overall_win_rates()
        monkeypatch.setattr(module, "BUDGET", 10**9)
        whole = recorded(random_episodes(600)).overall_win_rates()
        np.testing.assert_array_equal(trimmed.values, whole.values)
        np.testing.assert_allclose(trimmed.lows, whole.lows, atol=0.03)
        np.testing.assert_allclose(trimmed.units, whole.units, rtol=1e-12)

    def test_resumed_trimmed_ledger_equals_an_uninterrupted_one(self):
        played = random_episodes(600)
        resumed = pm.Payoff(12)
        resumed.load_state_dict(recorded(played[:400]).state_dict())
        for episode in played[400:]:
            resumed.record(episode)
        assert same(resumed, recorded(played))

    def test_trimming_below_one_lineup_keeps_none(self, monkeypatch):
        monkeypatch.setattr(module, "BUDGET", 10)
        payoff = recorded(random_episodes(3))
        assert payoff.state_dict()["lineups"].size == 0
        rates, expected = payoff.overall_win_rates(), payoff.games.sum(axis=1)
        np.testing.assert_array_equal(rates.units, expected)


class TestState:
    @pytest.mark.parametrize(
        "change",
        [
            {"lineups_limit": -1},
            {"lineups_limit": 2**64 + 1},
            {"lineups_limit": 1.0},
            {"lineups_limit": True},
            {"lineups": np.array([np.nan])},
            {"lineups": np.array([1])},
            {"lineups": np.ones((2, 2))},
        ],
    )
    def test_lineups_state_of_wrong_type_or_range_raises(self, change):
        payoff = recorded(random_episodes(3))
        before = payoff.state_dict()
        with pytest.raises(ValueError, match="^state does not fit: 'lineups' must be a vector of finite floats"):
            payoff.load_state_dict({**before, **change})
        assert same(payoff, recorded(random_episodes(3)))

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (0, 0.0),  # no policies
            (0, -3.0),
            (0, 1e6),  # more than there are numbers
            (1, 99.0),  # an unknown policy
            (2, 0.0),  # policies out of order
            (5, 0.5),  # neither a game nor none
            (-1, -1.0),  # a negative sum
        ],
    )
    def test_lineups_state_with_a_wrong_number_raises(self, place, value):
        state = recorded([pm.Episode([1, 3, 4, 6], [3.0, 2.0, 1.0, 0.0])]).state_dict()
        state["lineups"][place] = value
        with pytest.raises(ValueError, match="^state does not fit: 'lineups' is damaged"):
            pm.Payoff(12).load_state_dict(state)

    @pytest.mark.parametrize(
        "change", [lambda s: {"lineups": np.tile(s["lineups"], 2)}, lambda s: {"lineups_limit": 0}]
    )
    def test_lineups_state_that_contradicts_itself_raises(self, change):
        state = recorded([pm.Episode([1, 3, 4, 6], [3.0, 2.0, 1.0, 0.0])]).state_dict()
        with pytest.raises(ValueError, match="^state does not fit: 'lineups' is damaged"):
            pm.Payoff(12).load_state_dict({**state, **change(state)})


def test_lineups_without_a_policy_keep_the_others():
    kept = [pm.Episode([0, 1, 2], [2.0, 1.0, 0.0]), pm.Episode([1, 2, 3], [0.0, 1.0, 0.0])]
    forgotten = [pm.Episode([0, 1, 4], [0.0, 5.0, 1.0])]
    assert isinstance(recorded(kept)._table.lineups, Lineups)
    found = recorded(kept + forgotten)._table.lineups.without(4).state()
    np.testing.assert_array_equal(found[0], recorded(kept)._table.lineups.state()[0])
