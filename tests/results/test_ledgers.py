"""The ledgers: what a game is, counts raw and decayed, win rates, merging, ratings, statistics, state."""

import dataclasses
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

import pz_policymap as pm
from pz_policymap.results.games import games
from pz_policymap.results.ratings import ELO, bradley_terry
from pz_policymap.results.sums import added

WIN, LOSS, DRAW = [1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]
returns = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([0.1, 0.2, 0.3, 1e-9]), st.floats(-1e6, 1e6))


coarse = st.integers(-(2**26), 2**26).map(lambda x: x / 64.0)  # within the nine orders of magnitude that sums promise


@st.composite
def episodes(draw, num_policies=4, max_seats=6, returns=returns):
    seats = draw(st.integers(1, max_seats))

    def each(values):
        return draw(st.lists(values, min_size=seats, max_size=seats))

    return pm.Episode(
        policies=each(st.integers(0, num_policies - 1)),
        returns=each(returns),
        lengths=each(st.integers(0, 100)),
        sides=draw(st.one_of(st.just(()), st.lists(st.sampled_from("rgb"), min_size=seats, max_size=seats))),
    )


def ledger(results, num_policies=2, **settings):
    """A ledger of games between policy 0 and policy 1."""
    payoff = pm.Payoff(num_policies, **settings)
    for result in results:
        payoff.record(pm.Episode([0, 1], result))
    return payoff


def contract(episode):
    """The games of an episode, word by word and with exact numbers: {(i, j): sign} for every ordered pair."""
    seats = range(len(episode.policies))
    mean = {}
    for side in episode.sides:
        scores = [Fraction(episode.scores[s]) for s in seats if episode.sides[s] == side]
        mean[side] = sum(scores) / len(scores)
    found = {}
    for i in set(episode.policies):
        for j in set(episode.policies) - {i}:
            signs = [
                (mean[episode.sides[s]] > mean[episode.sides[t]]) - (mean[episode.sides[s]] < mean[episode.sides[t]])
                for s in seats
                for t in seats
                if episode.policies[s] == i and episode.policies[t] == j and episode.sides[s] != episode.sides[t]
            ]
            if signs:
                total = sum(signs)
                found[i, j] = (total > 0) - (total < 0)
    return found


def as_pairs(found):
    policies = found.policies.tolist()
    return {
        (i, j): int(found.results[a, b])
        for a, i in enumerate(policies)
        for b, j in enumerate(policies)
        if found.played[a, b]
    }


class TestGames:
    @pytest.mark.parametrize(
        ("policies", "values", "sides", "expected"),
        [
            ([0, 1], WIN, (), {(0, 1): 1}),
            ([0, 1], LOSS, (), {(0, 1): -1}),
            ([0, 1], DRAW, (), {(0, 1): 0}),
            ([0, 0], WIN, (), {}),  # against itself is no game
            ([5], [1.0], (), {}),
            ([0, 1, 1, 1], [2.0, 1.0, 1.0, 9.0], (), {(0, 1): 1}),  # ahead of two seats of three
            ([0, 1, 1], [2.0, 1.0, 3.0], (), {(0, 1): 0}),  # one won, one lost
            ([0, 1, 2], [2.0, 1.0, 2.0], (), {(0, 1): 1, (0, 2): 0, (1, 2): -1}),  # every pair is a game
            ([0, 0, 1, 1], [5.0, 0.0, 2.0, 2.0], "rrbb", {(0, 1): 1}),  # by the mean return of the team
            ([0, 1, 0, 1], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 1): 0}),  # both policies in both teams
            ([0, 1, 1, 1], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 1): 1}),  # a seat beside a teammate counts for nothing
            ([0, 1, 2, 2], [1.0, 0.0, 0.0, 0.0], "rrbb", {(0, 2): 1, (1, 2): 1}),  # teammates have no game
            ([0, 0, 0, 1], [0.1, 0.1, 0.1, 0.1], "rrrb", {(0, 1): 0}),  # in floats 0.10000000000000002 > 0.1
            ([0, 1], [-1e300, 1e300], (), {(0, 1): -1}),
            ([0, 1], [0.0, 5e-324], (), {(0, 1): -1}),
        ],
    )
    def test_a_pair_of_policies_is_one_game_between_sides(self, policies, values, sides, expected):
        found = as_pairs(games(pm.Episode(policies, values, sides=list(sides))))
        assert found == {**expected, **{(j, i): -sign for (i, j), sign in expected.items()}}

    @given(episodes())
    def test_it_is_what_the_contract_says(self, episode):
        assert as_pairs(games(episode)) == contract(episode)

    @given(episodes(), st.randoms(use_true_random=False))
    def test_the_order_of_seats_does_not_matter(self, episode, shuffler):
        order = list(range(len(episode.policies)))
        shuffler.shuffle(order)
        seats = {name: [values[i] for i in order] for name, values in dataclasses.asdict(episode).items()}
        assert as_pairs(games(pm.Episode(**seats))) == as_pairs(games(episode))

    def test_a_score_decides_instead_of_the_return(self):
        episode = pm.Episode([0, 1], WIN, scores=[0.0, 3.0])
        payoff = pm.Payoff(2)
        payoff.record(episode)
        assert payoff.wins.tolist() == [[0, 0], [1, 0]]
        assert payoff.mean_returns[0, 1] == 1.0


FIELDS = [field.name for field in dataclasses.fields(pm.Episode)]


class TestEpisode:
    def test_it_is_plain_and_frozen(self):
        episode = pm.Episode(np.array([0, 1]), np.array([1, -1]), np.array([3, 3]), ["r", "b"], agents=["x", "y"])
        assert episode == pm.Episode([0, 1], [1.0, -1.0], [3, 3], ["r", "b"], [1.0, -1.0], ["x", "y"])
        assert all(type(value) is float for value in episode.returns)
        assert all(type(value) is int for value in episode.policies + episode.lengths)
        with pytest.raises(dataclasses.FrozenInstanceError):
            episode.returns = ()

    def test_what_is_left_out_is_every_seat_for_itself_by_its_return(self):
        episode = pm.Episode([2, 2], [0.5, 1.5])
        assert (episode.lengths, episode.sides, episode.scores) == ((0, 0), (0, 1), (0.5, 1.5))
        assert episode.agents == (0, 1)

    @given(st.lists(episodes(), max_size=8))
    def test_a_log_gives_the_same_ledger(self, played):
        log = [json.dumps(dataclasses.asdict(episode)) for episode in played]
        live, read = pm.Payoff(4), pm.Payoff(4)
        for episode, line in zip(played, log, strict=True):
            live.record(episode)
            read.record(pm.Episode(**json.loads(line)))
        np.testing.assert_array_equal(live.state_dict()["table"], read.state_dict()["table"])

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"policies": []}, ValueError, "policies must hold at least one seat, got none$"),
            ({"policies": [0, -1]}, ValueError, "policies must be from 0"),
            ({"policies": [0, 2**31]}, ValueError, "policies must be from 0"),
            ({"policies": [0, 1.0]}, TypeError, "policies must be an integer"),
            ({"policies": 2}, TypeError, "policies must be a sequence"),
            ({"policies": "01"}, TypeError, "policies must be a sequence"),
            ({"policies": {0: 5, 1: 6}}, TypeError, "policies must be a sequence"),
            ({"returns": [1.0]}, ValueError, "returns must hold 2 values"),
            ({"returns": []}, ValueError, "returns must hold 2 values"),
            ({"returns": [1.0, float("nan")]}, ValueError, "returns must be finite"),
            ({"returns": [1.0, None]}, TypeError, "returns must be a number"),
            ({"returns": [1.0, "1"]}, TypeError, "returns must be a number"),
            ({"returns": [1.0, 10**400]}, TypeError, "returns must be a number"),
            ({"returns": [0.0, 2e300]}, ValueError, r"returns must be finite, from -1e\+300 to 1e\+300, got 2e\+300"),
            ({"scores": [-2e300, 0.0]}, ValueError, r"scores must be finite, from -1e\+300 to 1e\+300, got -2e\+300"),
            ({"lengths": [1, -1]}, ValueError, "lengths must be from 0"),
            (
                {"lengths": [1, 2**53 + 1]},
                ValueError,
                "lengths must be from 0 to 9007199254740992, got 9007199254740993",
            ),
            ({"lengths": [1, 2, 3]}, ValueError, "lengths must hold 2 values"),
            ({"sides": ["r"]}, ValueError, "sides must hold 2 values"),
            ({"sides": [["r"], ["b"]]}, TypeError, "sides must be hashable"),
            ({"sides": None}, TypeError, "sides must be a sequence"),
            ({"scores": [float("inf"), 0.0]}, ValueError, "scores must be finite"),
            ({"agents": ["a"]}, ValueError, "agents must hold 2 values"),
            *(({name: {0, 1}}, TypeError, f"{name} must be a sequence") for name in FIELDS),
        ],
    )
    def test_bad_input_names_the_argument(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.Episode(**{"policies": [0, 1], "returns": [0.0, 0.0], **arguments})


class TestCounts:
    def test_wins_draws_losses_and_games(self):
        payoff = ledger([WIN] * 3 + [LOSS] * 2 + [DRAW], num_policies=3)
        assert payoff.wins.tolist() == [[0, 3, 0], [2, 0, 0], [0, 0, 0]]
        assert payoff.losses.tolist() == [[0, 2, 0], [3, 0, 0], [0, 0, 0]]
        assert payoff.draws.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        assert payoff.games.tolist() == [[0, 6, 0], [6, 0, 0], [0, 0, 0]]
        assert payoff.wins.dtype == np.int64

    def test_without_decay_the_decayed_counts_are_the_raw_ones(self):
        payoff = ledger([WIN, WIN, LOSS, DRAW])
        for name, counts in payoff.decayed._asdict().items():
            np.testing.assert_array_equal(counts, getattr(payoff, name))

    def test_a_decayed_win_rate_agrees_with_published_code(self):
        # DI-engine's and TLeague's payoffs agree on this sequence at decay 0.99.
        payoff = ledger([WIN] * 6 + [LOSS] * 3 + [DRAW], decay=0.99, prior=0.0)
        assert payoff.win_rates[0, 1] == pytest.approx(0.6401930913772922, rel=1e-12)

    def test_raw_counts_stay_beside_decayed_ones(self):
        payoff = ledger([WIN] * 100 + [LOSS] * 100, decay=0.99)
        assert payoff.wins.tolist() == [[0, 100], [100, 0]]
        # A geometric series: the losses came last, the wins had a hundred games more to fade.
        losses = (1.0 - 0.99**100) / 0.01
        assert payoff.decayed.losses[0, 1] == pytest.approx(losses)
        assert payoff.decayed.wins[0, 1] == pytest.approx(losses * 0.99**100)
        assert payoff.decayed.games[0, 1] == pytest.approx((1.0 - 0.99**200) / 0.01)

    def test_only_the_games_of_a_pair_make_it_fade(self):
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

    def test_a_game_against_itself_changes_no_count_and_no_rating(self):
        payoff = ledger([WIN, WIN, LOSS])
        before = payoff.win_rates, payoff.ratings().values
        payoff.record(pm.Episode([0, 0], [5.0, -5.0]))
        assert payoff.games[0, 0] == 0
        np.testing.assert_array_equal(payoff.win_rates, before[0])
        np.testing.assert_array_equal(payoff.ratings().values, before[1])

    def test_what_is_handed_out_is_the_callers_own(self):
        payoff = ledger([WIN])
        for value in (payoff.wins, payoff.losses, payoff.decayed.wins, payoff.win_rates, payoff.mean_returns):
            value[:] = 7
        payoff.state_dict()["table"][:] = 7.0
        assert payoff.wins.tolist() == [[0, 1], [0, 0]]
        assert payoff.win_rates[0, 1] == 2 / 3

    @given(st.lists(episodes(), max_size=10))
    def test_counts_are_those_of_the_contract(self, played):
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
    def test_a_policy_that_is_not_there_is_refused_and_nothing_has_changed(self, decay):
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
    def test_bad_input_names_the_argument(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.Payoff(**{"num_policies": 2, **arguments})

    @pytest.mark.parametrize("ledger_of", [pm.Payoff, pm.PolicyStatistics])
    def test_only_episodes_are_recorded(self, ledger_of):
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
    def test_they_are_the_mean_of_a_beta_distribution(self, results, prior, expected):
        assert ledger(results, prior=prior).win_rates[0, 1] == pytest.approx(expected, rel=1e-15)

    def test_the_two_of_a_pair_sum_to_one_even_where_their_quotients_do_not(self):
        payoff = ledger([WIN, WIN], decay=0.9, prior=0.3)
        counts, total = payoff.decayed, payoff.decayed.games[0, 1] + 0.6
        assert (counts.wins[0, 1] + 0.3) / total + (counts.wins[1, 0] + 0.3) / total != 1.0
        assert payoff.win_rates[0, 1] + payoff.win_rates[1, 0] == 1.0

    @given(st.lists(episodes(), max_size=12), st.sampled_from([1.0, 0.9]), st.floats(0.0, 10.0))
    def test_they_are_antisymmetric_to_the_last_bit_and_between_0_and_1(self, played, decay, prior):
        payoff = pm.Payoff(4, decay, prior)
        for episode in played:
            payoff.record(episode)
        rates = payoff.win_rates
        assert (rates + rates.T == 1.0).all()
        assert ((rates >= 0.0) & (rates <= 1.0)).all()
        assert (np.diag(rates) == 0.5).all()


class TestMeanReturns:
    def test_the_cross_play_matrix_of_a_cooperative_game(self):
        payoff = pm.Payoff(3)
        for policies, value in [([0, 0], 4.0), ([0, 1], 1.0), ([1, 0], 3.0), ([1, 1], 6.0)]:
            payoff.record(pm.Episode(policies, [value, value]))
        assert payoff.mean_returns[:2, :2].tolist() == [[4.0, 2.0], [2.0, 6.0]]
        assert np.isnan(payoff.mean_returns[2]).all()
        assert payoff.episodes.tolist() == [[1, 2, 0], [2, 1, 0], [0, 0, 0]]

    def test_an_episode_counts_once_with_the_mean_over_the_seats_of_a_policy(self):
        payoff = pm.Payoff(2)
        payoff.record(pm.Episode([0, 0, 1], [1.0, 2.0, 9.0]))
        assert payoff.mean_returns[0].tolist() == [1.5, 1.5]
        assert payoff.mean_returns[1, 0] == 9.0
        assert np.isnan(payoff.mean_returns[1, 1])  # its only seat had no company of its own

    def test_teammates_share_episodes_without_a_game(self):
        payoff = pm.Payoff(2)
        payoff.record(pm.Episode([0, 1], [3.0, 5.0], sides=["r", "r"]))
        assert payoff.games.sum() == 0
        assert payoff.mean_returns[0, 1] == 3.0


class TestGrowing:
    @pytest.mark.parametrize("decay", [1.0, 0.9])
    def test_it_keeps_what_is_known(self, decay):
        payoff = ledger([WIN, WIN, DRAW], decay=decay)
        before = payoff.state_dict()["table"]
        payoff.grow(4)
        assert payoff.num_policies == 4
        np.testing.assert_array_equal(payoff.state_dict()["table"][:2, :2], before)
        assert payoff.games.sum() == 6
        payoff.record(pm.Episode([0, 3], WIN))
        assert payoff.wins[0].tolist() == [0, 2, 0, 1]

    @pytest.mark.parametrize("ledger_of", [pm.Payoff, pm.PolicyStatistics])
    def test_it_never_shrinks(self, ledger_of):
        one = ledger_of(3)
        one.grow(3)
        with pytest.raises(ValueError, match="num_policies must be at least 3, got 2"):
            one.grow(2)


class TestMerging:
    @given(st.lists(episodes(returns=coarse), max_size=24), st.randoms(use_true_random=False))
    def test_any_order_gives_the_ledger_of_all_episodes_to_the_last_bit(self, played, shuffler):
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

    def test_a_smaller_ledger_grows_and_a_smaller_one_is_taken_in(self):
        small, large = ledger([WIN]), ledger([LOSS, LOSS], num_policies=4)
        small.merge(large)
        assert small.wins.tolist() == ledger([WIN, LOSS, LOSS], num_policies=4).wins.tolist()
        large.merge(ledger([WIN]))
        assert large.wins[:2, :2].tolist() == [[0, 1], [2, 0]]

    @pytest.mark.parametrize("decays", [(0.99, 1.0), (1.0, 0.99), (0.99, 0.99)])
    def test_decayed_ledgers_are_refused(self, decays):
        mine, other = (ledger([WIN], decay=decay) for decay in decays)
        with pytest.raises(ValueError, match="episodes, which one ledger records"):
            mine.merge(other)
        assert mine.wins[0, 1] == 1

    def test_workers_of_a_decayed_ledger_send_episodes(self):
        # 100 wins and then 100 losses: 0.27 in sequence, where merged halves would be 0.50.
        sent = [pm.Episode([0, 1], result) for result in [WIN] * 100 + [LOSS] * 100]
        payoff = pm.Payoff(2, decay=0.99, prior=0.0)
        for episode in sent:
            payoff.record(episode)
        assert payoff.win_rates[0, 1] == pytest.approx(0.268, abs=0.001)

    def test_only_a_ledger_can_be_merged(self):
        with pytest.raises(TypeError, match="other must be a Payoff"):
            pm.Payoff(2).merge({})


class TestSums:
    @given(st.lists(st.floats(-1e6, 1e6).filter(lambda x: x == 0.0 or abs(x) > 1e-3), max_size=200))
    @example([0.1] * 10)
    @example([1e16, 1.0, -1e16])
    def test_a_sum_is_the_exact_one_rounded_in_any_order(self, values):
        for order in (values, values[::-1], random.Random(0).sample(values, len(values))):
            total, rest = 0.0, 0.0
            for value in order:
                total, rest = added(total, rest, value)
            assert total == math.fsum(values)
            assert Fraction(total) + Fraction(rest) == sum(map(Fraction, values))


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
    def test_they_agree_with_a_published_analysis(self):
        ratings = bradley_terry(BASEBALL, prior=1e-9)
        # The vignette of R's BradleyTerry2, model baseballModel1: log-odds against Baltimore.
        published = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]
        np.testing.assert_allclose((ratings.values - ratings.values[-1]) / ELO, published, atol=5e-5)

    def test_the_errors_are_those_of_the_information_matrix(self):
        ratings = bradley_terry(BASEBALL, prior=1e-9)
        chance = 1.0 / (1.0 + np.exp(-(ratings.values[:, None] - ratings.values) / ELO))
        information = (BASEBALL + BASEBALL.T) * chance * (1.0 - chance)
        laplacian = np.diag(information.sum(axis=1)) - information
        # The pseudo-inverse of a Laplacian is the covariance of distances to the mean.
        np.testing.assert_allclose(ratings.errors / ELO, np.sqrt(np.diag(np.linalg.pinv(laplacian))), rtol=1e-6)

    @pytest.mark.parametrize(("won", "lost"), [(30, 10), (500, 500), (1, 9)])
    def test_two_policies_by_hand(self, won, lost):
        ratings = bradley_terry(np.array([[0.0, won], [lost, 0.0]]), prior=1e-6)
        np.testing.assert_allclose(ratings.values / ELO, np.array([0.5, -0.5]) * math.log(won / lost), atol=1e-5)
        np.testing.assert_allclose(ratings.errors / ELO, 0.5 * math.sqrt(1.0 / won + 1.0 / lost), rtol=1e-5)

    def test_the_scale_is_elos(self):
        # TLeague's Elo, k=32: 1200 beats 1000 and gains 7.6880983472654, so it was expected to win 1 - 7.688.../32.
        expected = 1.0 - 7.6880983472654 / 32.0
        ratings = bradley_terry(np.array([[0.0, expected], [1.0 - expected, 0.0]]) * 1000.0, prior=1e-9)
        assert ratings.values[0] - ratings.values[1] == pytest.approx(200.0, abs=1e-3)

    @pytest.mark.parametrize("prior", [0.1, 1.0, 5.0])
    def test_they_are_the_maximum_of_the_posterior(self, prior):
        rng = np.random.default_rng(0)
        wins = rng.integers(0, 10, (6, 6)).astype(float)
        np.fill_diagonal(wins, 0.0)

        def loss(ratings):
            gap = ratings[:, None] - ratings
            return (wins * np.logaddexp(0.0, -gap)).sum() + prior * np.logaddexp(0.0, [ratings, -ratings]).sum()

        found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(bradley_terry(wins, prior).values / ELO, found - found.mean(), atol=1e-5)

    def test_they_are_finite_when_somebody_won_everything(self):
        ratings = ledger([WIN] * 10_000, num_policies=3).ratings()
        assert np.isfinite(ratings).all()
        assert ratings.values[0] > ratings.values[2] > ratings.values[1]
        assert (ratings.errors > 0.0).all()

    def test_they_are_right_when_somebody_won_a_million_billion_games(self):
        # By hand: 1e15 / (1 + odds**2) = prior for odds = sqrt(1e15), which is 400 * 15 points between the two.
        ratings = bradley_terry(np.array([[0.0, 1e15], [0.0, 0.0]]), prior=1.0)
        np.testing.assert_allclose(ratings.values, [3000.0, -3000.0], rtol=1e-6)

    def test_they_end_and_are_in_order_where_rounding_hides_the_maximum(self):
        ratings = bradley_terry(np.triu(np.full((30, 30), 1e6), 1), prior=1e-3)
        assert np.isfinite(ratings).all()
        assert (np.diff(ratings.values) < 0.0).all()

    def test_a_policy_without_games_is_in_the_middle_with_the_largest_error(self):
        ratings = ledger([WIN] * 30 + [LOSS] * 10, num_policies=3).ratings()
        assert ratings.values[2] == pytest.approx(0.0, abs=1e-9)
        assert ratings.errors.argmax() == 2

    def test_a_draw_is_half_a_win(self):
        drawn, halves = ledger([DRAW] * 10 + [WIN] * 10), ledger([WIN] * 15 + [LOSS] * 5)
        np.testing.assert_allclose(drawn.ratings().values, halves.ratings().values)

    def test_without_games_and_alone_everybody_is_average(self):
        np.testing.assert_allclose(pm.Payoff(3).ratings().values, 0.0, atol=1e-9)
        assert [values.tolist() for values in pm.Payoff(1).ratings()] == [[0.0], [0.0]]

    def test_old_games_count_less_in_a_decayed_ledger(self):
        results = [WIN] * 100 + [LOSS] * 100
        assert ledger(results).ratings().values[0] == pytest.approx(0.0, abs=1e-6)
        assert ledger(results, decay=0.97).ratings().values[0] < -100.0

    @pytest.mark.parametrize("prior", [0.01, 0.3])
    def test_they_are_found_where_newtons_whole_steps_would_run_away(self, prior):
        wins = np.array([[0, 1e3, 0, 0], [0, 0, 0, 0], [0, 1e4, 0, 1e4], [1, 0, 0, 0]])
        log_odds = bradley_terry(wins, prior).values / ELO
        # At the maximum what the virtual games pull by sums to zero ...
        log_odds -= brentq(lambda mean: np.tanh((log_odds - mean) / 2.0).sum(), -50.0, 50.0)
        chance = 1.0 / (1.0 + np.exp(log_odds - log_odds[:, None]))
        # ... and everybody has won as much as was to be expected.
        expected = ((wins + wins.T) * chance).sum(axis=1) + prior * np.tanh(log_odds / 2.0)
        np.testing.assert_allclose(wins.sum(axis=1), expected, atol=1e-6)

    @pytest.mark.parametrize("prior", [0.5, 1.0, 8.0])
    def test_the_prior_is_in_the_errors(self, prior):
        # By hand, five games each: the distance has the precision n/2 + prior/2, and half its deviation is a policy's.
        ratings = bradley_terry(np.array([[0.0, 5.0], [5.0, 0.0]]), prior)
        np.testing.assert_allclose(ratings.errors / ELO, math.sqrt(1.0 / (10.0 + prior)))

    def test_a_prior_that_rounding_loses_is_refused(self):
        with pytest.raises(ValueError, match=r"^prior must not vanish beside 1e\+15 games of a pair, got 1e-06"):
            bradley_terry(np.array([[0.0, 1e15], [0.0, 0.0]]), prior=1e-6)

    @pytest.mark.parametrize("prior", [0.0, -1.0, float("nan")])
    def test_without_a_prior_they_need_not_be_finite(self, prior):
        with pytest.raises(ValueError, match="prior must be above 0"):
            bradley_terry(BASEBALL, prior)
        with pytest.raises(ValueError, match="prior must be above 0"):
            pm.Payoff(2, prior=0.0).ratings()

    def test_the_truth_lies_within_two_errors_as_often_as_it_should(self):
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


@pytest.mark.filterwarnings("error")  # a mean over nothing is no division by zero
class TestStatistics:
    def test_the_window_is_a_hundred_episodes_unless_told(self):
        assert pm.PolicyStatistics(1).window == 100

    def test_it_counts_episodes_and_steps_and_takes_means_over_the_window(self):
        statistics = pm.PolicyStatistics(3, window=2)
        for value, length in [(9.0, 9), (1.0, 4), (3.0, 6)]:
            statistics.record(pm.Episode([0, 1], [value, -value], [length, 2 * length]))
        assert statistics.episodes.tolist() == [3, 3, 0]
        assert statistics.steps.tolist() == [19, 38, 0]
        np.testing.assert_array_equal(statistics.mean_return, [2.0, -2.0, np.nan])
        np.testing.assert_array_equal(statistics.mean_length, [5.0, 10.0, np.nan])

    def test_several_seats_of_a_policy_are_one_episode_of_their_mean(self):
        statistics = pm.PolicyStatistics(2)
        statistics.record(pm.Episode([0, 0, 1], [1.0, 2.0, 7.0], [4, 6, 3]))
        assert statistics.episodes.tolist() == [1, 1]
        assert statistics.steps.tolist() == [10, 3]
        assert statistics.mean_return.tolist() == [1.5, 7.0]
        assert statistics.mean_length.tolist() == [5.0, 3.0]

    def test_the_scalars_are_flat_plain_and_without_gaps(self):
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

    def test_growing_keeps_what_is_known(self):
        statistics = pm.PolicyStatistics(1, window=2)
        statistics.record(pm.Episode([0], [2.0], [4]))
        statistics.grow(3)
        statistics.record(pm.Episode([2, 0], [1.0, 4.0], [1, 1]))
        assert statistics.num_policies == 3
        np.testing.assert_array_equal(statistics.mean_return, [3.0, np.nan, 1.0])

    @given(st.lists(episodes(), max_size=20), st.integers(1, 5))
    def test_the_means_are_those_of_the_last_episodes(self, played, window):
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

    def test_a_policy_that_is_not_there_is_refused_and_nothing_has_changed(self):
        statistics = pm.PolicyStatistics(2)
        with pytest.raises(ValueError, match=r"num_policies=2, got \[0, 2\]; grow\(3\)"):
            statistics.record(pm.Episode([0, 2], WIN))
        assert statistics.episodes.tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"num_policies": 0}, ValueError, "num_policies must be at least 1, got 0"),
            ({"window": 0}, ValueError, "window must be at least 1, got 0"),
            ({"window": 1.5}, TypeError, "window must be an integer, got 1.5"),
        ],
    )
    def test_bad_input_names_the_argument(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.PolicyStatistics(**{"num_policies": 2, **arguments})


def played(ledger_of, seed, count, num_policies=3):
    """A ledger after some episodes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ledger_of.record(pm.Episode(rng.integers(0, num_policies, 3), rng.normal(size=3), rng.integers(1, 9, 3)))
    return ledger_of


LEDGERS = [
    lambda size=3: pm.Payoff(size),
    lambda size=3: pm.Payoff(size, decay=0.9, prior=2.0),
    lambda size=3: pm.PolicyStatistics(size, window=4),
]


def with_entry(state, value):
    """A state in which a count is another number."""
    name = "table" if "table" in state else "steps"
    changed = state[name].copy() if value == int(value) else state[name].astype(np.float64)
    changed.flat[0] = value
    return {**state, name: changed}


def same(one, other):
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)


class TestState:
    @pytest.mark.parametrize("make", LEDGERS)
    def test_a_saved_ledger_goes_on_as_if_it_had_never_stopped(self, make, tmp_path):
        pm.save(tmp_path / "run.npz", ledger=played(make(), 0, 20))
        resumed = make()
        resumed.load_state_dict(pm.load(tmp_path / "run.npz")["ledger"])
        straight = played(make(), 0, 20)
        assert same(resumed, straight)
        assert same(played(resumed, 1, 20), played(straight, 1, 20))

    def test_only_a_ledger_with_decay_keeps_decayed_counts(self):
        assert [pm.Payoff(2, decay).state_dict()["table"].shape for decay in (1.0, 0.5)] == [(2, 2, 8), (2, 2, 10)]

    def test_it_lies_in_one_file_with_the_assigner(self, tmp_path):
        payoff, assigner = ledger([WIN]), pm.PolicyAssigner(2, agents=["a", "b"], seed=0)
        pm.save(tmp_path / "run.npz", assigner=assigner, payoff=payoff)
        assert set(pm.load(tmp_path / "run.npz")) == {"assigner", "payoff"}

    def test_decayed_counts_are_not_negative(self):
        mine = played(pm.Payoff(3, decay=0.9), 0, 20)
        state = mine.state_dict()
        state["table"][0, 1, -1] = -1e-9
        with pytest.raises(ValueError, match="^state does not fit: 'table' must be counts"):
            mine.load_state_dict(state)

    def test_the_largest_returns_can_be_saved_and_loaded(self, tmp_path):
        payoff, statistics = pm.Payoff(2), pm.PolicyStatistics(2)
        for ledger_of in (payoff, statistics):
            for _ in range(1000):
                ledger_of.record(pm.Episode([0, 1, 1], [1e300, -1e300, -1e300], lengths=[2**53, 0, 0]))
        pm.save(tmp_path / "run.npz", payoff=payoff, statistics=statistics)
        states = pm.load(tmp_path / "run.npz")
        pm.Payoff(2).load_state_dict(states["payoff"])
        pm.PolicyStatistics(2).load_state_dict(states["statistics"])
        assert payoff.mean_returns[1, 0] == statistics.mean_return[1] == -1e300

    @pytest.mark.parametrize("make", LEDGERS)
    @pytest.mark.parametrize("size", [1, 5])
    def test_a_ledger_of_another_size_ends_as_the_larger(self, make, size):
        saved = played(make(), 0, 20)
        resumed = make(size)
        resumed.load_state_dict(saved.state_dict())
        saved.grow(max(size, 3))
        assert same(resumed, saved)
        played(resumed, 1, 5)

    @pytest.mark.parametrize("make", LEDGERS)
    def test_the_state_and_the_ledger_do_not_share_memory(self, make):
        saved = played(make(), 0, 20)
        state = saved.state_dict()
        resumed = make()
        resumed.load_state_dict(state)
        played(resumed, 1, 20)
        assert same(saved, played(make(), 0, 20))
        again = make()
        again.load_state_dict(state)
        assert same(again, saved)

    @pytest.mark.parametrize("make", LEDGERS)
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (lambda state: [], TypeError, "state must be a dict, got list"),
            (lambda state: {}, ValueError, "state does not fit: it has version=None, this ledger 1"),
            (lambda state: {**state, "version": 2}, ValueError, "state does not fit: it has version=2, this ledger 1"),
            (lambda state: {key: state[key] for key in list(state)[:-1]}, ValueError, "state does not fit: "),
            (
                lambda state: {**state, list(state)[-1]: [[1.0], [1.0, 2.0]]},
                ValueError,
                r"state does not fit: '(table|recent)' must be an array, got \[\[1.0\], \[1.0, 2.0\]\]",
            ),
            (lambda state: {**state, list(state)[-1]: "text"}, ValueError, "state does not fit: "),
            (lambda state: {**state, list(state)[-1]: state[list(state)[-1]][:1]}, ValueError, "state does not fit: "),
            (
                lambda state: {**state, list(state)[-1]: state[list(state)[-1]][..., :1]},
                ValueError,
                "state does not fit: ",
            ),
            (
                lambda state: {**state, list(state)[-1]: state[list(state)[-1]] * np.nan},
                ValueError,
                "state does not fit: ",
            ),
            (lambda state: {**state, list(state)[-1]: state[list(state)[-1]] > 0}, ValueError, "state does not fit: "),
            (lambda state: with_entry(state, -1), ValueError, "state does not fit: "),
            (lambda state: with_entry(state, -0.5), ValueError, "state does not fit: "),
        ],
    )
    def test_a_state_that_does_not_fit_is_refused_and_nothing_has_changed(self, make, change, error, message):
        mine = played(make(), 0, 20)
        with pytest.raises(error, match=f"^{message}"):
            mine.load_state_dict(change(mine.state_dict()))
        assert same(mine, played(make(), 0, 20))

    @pytest.mark.parametrize(
        ("mine", "other", "message"),
        [
            (pm.Payoff(2, decay=0.9), pm.Payoff(2), "decay=1.0, this ledger 0.9"),
            (pm.Payoff(2), pm.Payoff(2, prior=0.5), "prior=0.5, this ledger 1.0"),
            (pm.PolicyStatistics(2, window=5), pm.PolicyStatistics(2), "window=100, this ledger 5"),
        ],
    )
    def test_a_ledger_with_other_settings_is_refused(self, mine, other, message):
        with pytest.raises(ValueError, match=f"^state does not fit: .*{message}"):
            mine.load_state_dict(other.state_dict())
