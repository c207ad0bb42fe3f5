"""Games of one episode, against the contract evaluated literally with exact numbers."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap.results.games import games
from tests.results.ledgers import DRAW, LOSS, WIN, as_pairs, contract, episodes


class TestGames:
    @pytest.mark.parametrize(
        ("policies", "values", "sides", "expected"),
        [
            ([0, 1], WIN, (), {(0, 1): 1}),
            ([0, 1], LOSS, (), {(0, 1): -1}),
            ([0, 1], DRAW, (), {(0, 1): 0}),
            ([0, 0], WIN, (), {}),  # a policy against itself is not a game
            ([5], [1.0], (), {}),
            ([0, 1, 1, 1], [2.0, 1.0, 1.0, 9.0], (), {(0, 1): 1}),  # ahead of two seats of three
            ([0, 1, 1], [2.0, 1.0, 3.0], (), {(0, 1): 0}),  # one won, one lost
            ([0, 1, 2], [2.0, 1.0, 2.0], (), {(0, 1): 1, (0, 2): 0, (1, 2): -1}),  # every pair is a game
            ([0, 0, 1, 1], [5.0, 0.0, 2.0, 2.0], "rrbb", {(0, 1): 1}),  # by the mean return of the team
            ([0, 1, 0, 1], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 1): 0}),  # both policies in both teams
            ([0, 1, 1, 1], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 1): 1}),  # pairs of teammates are not compared
            ([0, 1, 2, 2], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 2): 1, (1, 2): 1}),  # teammates have no game
            ([0, 0, 0, 1], [0.1, 0.1, 0.1, 0.1], "rrrb", {(0, 1): 0}),  # in floats 0.10000000000000002 > 0.1
            ([0, 1], [-1e300, 1e300], (), {(0, 1): -1}),
            ([0, 1], [0.0, 5e-324], (), {(0, 1): -1}),
        ],
    )
    def test_games_between_sides_are_one_per_pair_of_policies(self, policies, values, sides, expected):
        found = as_pairs(games(pm.Episode(policies, values, sides=list(sides))))
        assert found == {**expected, **{(j, i): -sign for (i, j), sign in expected.items()}}

    @given(episodes())
    def test_games_of_any_episode_follow_the_contract(self, episode):
        assert as_pairs(games(episode)) == contract(episode)

    @given(episodes(), st.randoms(use_true_random=False))
    def test_games_of_shuffled_seats_are_the_same(self, episode, shuffler):
        order = list(range(len(episode.policies)))
        shuffler.shuffle(order)
        seats = {name: [values[i] for i in order] for name, values in dataclasses.asdict(episode).items()}
        assert as_pairs(games(pm.Episode(**seats))) == as_pairs(games(episode))

    def test_games_with_scores_ignore_returns(self):
        episode = pm.Episode([0, 1], WIN, scores=[0.0, 3.0])
        payoff = pm.Payoff(2)
        payoff.record(episode)
        assert payoff.wins.tolist() == [[0, 0], [1, 0]]
        assert payoff.mean_returns[0, 1] == 1.0
