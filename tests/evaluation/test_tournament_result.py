"""`TournamentResult`: tables, notes, pictures, and returns in cooperative games."""

import math
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from pettingzoo.classic import rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation import tournament_result
from pz_policymap.evaluation.game_table import GameTable
from pz_policymap.evaluation.games import FinishedGame, Game
from pz_policymap.evaluation.tournament_result import TournamentResult
from pz_policymap.results.ratings import clustered_ratings
from tests import cli_bots
from tests.evaluation.outcomes import ENTRANTS


def result_of(*games, names=None, sides=(0, 1)):
    """A result of games given as (names, returns) or (names, returns, moves)."""
    table = GameTable([f"agent_{seat}" for seat in range(len(sides))])
    repetitions = {}
    for seats, returns, *moves in games:
        repetition = repetitions[seats] = repetitions.get(seats, -1) + 1
        table.add(FinishedGame(Game(tuple(seats), repetition), returns, [1] * len(seats), *moves))
    return TournamentResult(names or sorted(table.names), table, sides)


def test_result_table_shows_every_number_by_name():
    result = pm.tournament(tictactoe_v3.env, {"<b>": "random", "first": cli_bots.first_free}, cycles=10, seed=1)
    title, heading, *rows = repr(result).splitlines()
    assert title == "20 games of 2 entrants"
    assert heading.split()[:7] == ["name", "rating", "error", "games", "wins", "draws", "losses"]
    rates, ratings, means = result.win_rates, result.ratings(), result.mean_returns
    for policy, row in zip(result.order, rows, strict=True):
        name, rating, error, games, wins, draws, losses, rate, low, to, high, value, of_value = row.split()
        assert name == result.names[policy]
        assert (rating, error) == (f"{ratings.values[policy]:+.0f}", f"{ratings.errors[policy]:.0f}")
        assert int(games) == int(wins) + int(draws) + int(losses) == 20
        assert [rate, low, to, high] == [
            f"{rates.values[policy]:.2f}",
            f"{rates.lows[policy]:.2f}",
            "to",
            f"{rates.highs[policy]:.2f}",
        ]
        assert (value, of_value) == (f"{means.values[policy]:.2f}", f"{means.errors[policy]:.2f}")
    np.testing.assert_allclose(ratings.values, result.payoff.ratings().values)
    page = ET.fromstring(f"<div>{result._repr_html_()}</div>")
    assert page.find("table/caption").text == title
    assert len(page.findall("table/tr")) == 3
    assert "<b>" in [cell.text for cell in page.iter("td")]


def test_result_ratings_are_computed_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        tournament_result, "clustered_ratings", lambda *given: calls.append(given) or clustered_ratings(*given)
    )
    result = result_of(("ab", [1.0, 0.0]), ("ba", [1.0, 0.0]), ("ab", [1.0, 0.0]))
    assert repr(result).startswith("3 games")
    assert result.as_dict()
    assert result.pairs()
    assert result.ratings().values[0] > result.ratings().values[1]
    assert result.order == [0, 1]
    assert len(calls) == 1


def test_result_mean_returns_count_an_episode_once():
    result = result_of(("ab", [1.0, 3.0]), ("aa", [2.0, 6.0]), ("ab", [5.0, 0.0]))
    values = [1.0, 4.0, 5.0]
    assert result.mean_returns.values.tolist() == [np.mean(values), 1.5]
    assert result.mean_returns.errors[0] == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))


def test_result_mean_returns_take_seatings_under_one_seed_as_one_unit():
    result = result_of(("ab", [1.0, 3.0]), ("ba", [0.0, 5.0]))
    assert result.mean_returns.units.tolist() == [1, 1]
    assert np.isnan(result.mean_returns.errors).all()


def test_result_win_rates_take_seatings_under_one_seed_as_one_unit():
    wins = [(seats, [1.0, 0.0] if won == seats[0] else [0.0, 1.0]) for won in "abaab" for seats in ("ab", "ba")]
    rates = result_of(*wins).win_rates  # the seed decides which entrant wins, in both seatings
    assert rates.units.tolist() == [5, 5]
    z, t = 1.959964, 2.776445  # tables of the normal distribution and of Student's t with 4 degrees of freedom
    n = (5 - 1) * (z / t) ** 2  # effective games, Korn and Graubard 1998
    half = z * math.sqrt(0.6 * 0.4 / n + (z / n) ** 2 / 4)  # Wilson 1927
    assert rates.values[0] == 0.6
    assert rates.lows[0] == pytest.approx((0.6 + z**2 / n / 2 - half) / (1 + z**2 / n), rel=1e-5)
    assert rates.highs[0] == pytest.approx((0.6 + z**2 / n / 2 + half) / (1 + z**2 / n), rel=1e-5)


def test_result_win_rates_include_forfeits():
    table = GameTable(["x", "y"])
    for repetition in range(3):
        table.add(FinishedGame(Game(("a", "b"), repetition), [0.0, 0.0], [0, 0], 0, "b", "error"))
    assert TournamentResult("ab", table, (0, 1)).win_rates.values.tolist() == [1.0, 0.0]


def test_result_seats_show_whether_moving_first_wins():
    games = [("ab", [1.0, 0.0]), ("ba", [1.0, 0.0])]
    result = result_of(*games * 10)
    assert result.seats().win_rates.values.tolist() == [1.0, 0.0]
    assert result.seats("a").mean_returns.values.tolist() == [1.0, 0.0]
    assert result.seats().labels == ("agent_0", "agent_1")
    with pytest.raises(ValueError, match="name must be one of a, b, got 'c'"):
        result.seats("c")


def test_result_pairs_have_no_prior():
    result = result_of(("ab", [1.0, 0.0]), ("ab", [0.0, 0.0]), ("ac", [1.0, 0.0]))
    lines = [line.split() for line in result.pairs().splitlines()]
    assert lines[0] == ["win", "rate", "against", *(result.names[policy] for policy in result.order)]
    cells = {line[0]: dict(zip(lines[0][3:], line[1:], strict=True)) for line in lines[1:]}
    assert cells["a"] == {"a": "-", "b": "0.75", "c": "1.00"}
    assert cells["b"]["c"] == "-"


def test_result_order_of_episodes_does_not_depend_on_the_order_of_games():
    games = [Game(("b", "a"), 1), Game(("a", "b"), 0), Game(("b", "a"), 0), Game(("a", "b"), 10), Game(("a", "b"), 2)]
    table = GameTable(["x", "y"])
    for number, game in enumerate([*games, games[0]]):
        table.add(FinishedGame(game, [float(number), 0.0], [number, number]))
    result = TournamentResult(["b", "a"], table, [0, 1])
    assert [episode.returns[0] for episode in result.episodes] == [1.0, 4.0, 3.0, 2.0, 0.0]
    assert [episode.policies for episode in result.episodes[-2:]] == [(0, 1), (0, 1)]
    assert result.episodes[-1].returns == (0.0, 0.0)
    assert len(TournamentResult(["b", "c"], table, [0, 1]).episodes) == 0
    with pytest.raises(IndexError):
        result.episodes[5]


def test_result_identical_games_of_a_pair_are_noted():
    entrants = {"random": "random", "first": cli_bots.first_free, "last": cli_bots.last_free}
    result = pm.tournament(tictactoe_v3.env, entrants, cycles=20)
    (note,) = result.notes
    assert note.startswith("the 20 games of first - last, the 20 games of last - first are identical, and count as one")
    assert repr(result).splitlines()[-1] == f"Note: {note}"
    assert result.win_rates.units.tolist() == [40, 22, 22]  # 20 seeds per opponent, or one game per seating
    assert result.mean_returns.units.tolist() == [40, 22, 22]
    random = pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random"}, cycles=50)
    assert random.notes == []


def test_result_games_with_equal_returns_and_other_moves_are_not_identical():
    equal, other = [("ab", [1.0, -1.0], 7)] * 20, [("ab", [1.0, -1.0], 8)]
    assert ["identical" in note for note in result_of(*equal).notes] == [True, False]
    assert result_of(*equal).win_rates.units.tolist() == [1, 1]
    assert result_of(*equal, *other).notes == []
    assert result_of(*equal, *other).win_rates.units.tolist() == [21, 21]
    assert "identical" not in "".join(result_of(*equal[:4]).notes)


def test_result_many_identical_matchups_are_counted():
    games = [(pair, [1.0, 0.0]) for pair in ("ab", "ba", "ac", "ca", "bc") for _ in range(10)]
    assert "the 10 games of b - a and 2 more matchups are identical, " in result_of(*games).notes[0]


@pytest.mark.parametrize(("games", "who"), [(9, "all entrants"), (10, None)])
def test_result_too_few_independent_games_are_noted(games, who):
    result = result_of(*[("ab", [float(number % 2), 0.5], number) for number in range(games)])
    notes = [note for note in result.notes if "independent" in note]
    assert [note.split(" of ")[1].split(":")[0] for note in notes] == ([who] if who else [])


def test_result_few_games_of_some_entrants_are_noted_by_name():
    games = [("ab", [float(number % 2), 0.5], number) for number in range(30)]
    (note,) = result_of(*games, ("ac", [1.0, 0.0])).notes
    assert note.startswith("fewer than 10 independent games of c: ")
    assert note.endswith("; play more cycles.")


def test_result_games_of_one_episode_are_not_independent():
    games = [("abcd", [float(number % 4 == seat) for seat in range(4)], number) for number in range(6)]
    result = result_of(*games, sides=range(4))
    assert result.payoff.games.sum(axis=1).tolist() == [18] * 4
    assert any("fewer than 10 independent games" in note for note in result.notes)  # of 18, from six episodes


def cooperative():
    """Both return what the pair earns: a with itself 10, b with itself 6, a with b 2 or 4."""
    games = [("aa", [10.0, 10.0]), ("aa", [12.0, 12.0]), ("bb", [6.0, 6.0])]
    return result_of(*games, ("ab", [2.0, 2.0]), ("ba", [4.0, 4.0]), ("ac", [1.0, 1.0]))


def test_result_cross_play_gap_and_worst_partner():
    found = cooperative().cooperation()
    np.testing.assert_array_equal(found.self_play, [11.0, 6.0, np.nan])
    np.testing.assert_array_equal(found.cross_play, [2.0, 3.0, 1.0])  # partners have equal weight
    np.testing.assert_array_equal(found.gaps, [9.0, 3.0, np.nan])
    assert found.worst_partners.tolist() == [2, 0, 0]
    assert found.worst_returns.tolist() == [1.0, 3.0, 1.0]


def test_result_without_wins_shows_returns_and_the_best_first():
    result = cooperative()
    assert not result.competitive
    _, heading, first, *_ = repr(result).splitlines()
    assert heading.split() == [
        *("name", "return", "error", "self-play", "cross-play", "gap", "error", "worst", "partner"),
    ]
    assert first.split()[0] == "a"
    assert first.split()[-2:] == ["c", "(1.00)"]
    assert result.pairs().splitlines()[0].split() == ["mean", "return", "with", "a", "b", "c"]
    assert result.pairs().splitlines()[1].split() == ["a", "11.00", "3.00", "1.00"]
    alone = result_of(("aa", [1.0, 1.0]))
    assert repr(alone).splitlines()[-1].split()[-1] == "-"


def test_result_self_matches_in_a_cooperative_game():
    from mpe2 import simple_spread_v3

    def still(observation, agent, info):
        return 0

    result = pm.tournament(
        lambda: simple_spread_v3.parallel_env(N=2, max_cycles=5),
        {"still": still, "random": "random"},
        self_matches=True,
        cycles=3,
    )
    assert len(result.episodes) == 12
    cross = result.cooperation()
    assert not np.isnan(cross.gaps).any()
    assert cross.worst_partners.tolist() == [1, 0]


def test_result_entrant_without_a_game_has_no_numbers():
    shown = result_of(("ab", [1.0, 0.0]), names=["a", "b", "c"])
    assert np.isnan(shown.win_rates.values[2])
    assert next(line for line in repr(shown).splitlines() if line.startswith("c ")).split()[-4:] == ["-"] * 4
    assert np.isnan(shown.mean_returns.values[2])


def test_result_as_dict_holds_the_same_numbers():
    result = pm.tournament(tictactoe_v3.env, {name: ENTRANTS[name] for name in ("random", "first", "last")}, cycles=4)
    plain = result.as_dict()
    assert plain["games_played"] == 24
    assert plain["wins"] == result.payoff.wins.tolist()
    assert [row["policy"] for row in plain["policies"]] == result.order
    for row in plain["policies"]:
        assert row["rating"] == result.ratings().values[row["policy"]]
        assert row["interval"] == [result.win_rates.lows[row["policy"]], result.win_rates.highs[row["policy"]]]
    assert plain["notes"] == result.notes


@pytest.mark.parametrize(
    "make", [cooperative, lambda: pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random"})]
)
def test_result_plot_shows_names(make):
    pytest.importorskip("matplotlib")
    figure = make().plot()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(make().names)
    figure.canvas.draw()


def test_result_plot_shows_errors_that_count_independent_units():
    pytest.importorskip("matplotlib")
    result = result_of(*[(pair, [1.0, 0.0]) for pair in ("ab", "ba") for _ in range(20)])
    numbers = [text.get_text() for text in result.plot().axes[1].texts]
    assert numbers == [f"{result.ratings().values[i]:+.0f} ± {result.ratings().errors[i]:.0f}" for i in result.order]
    assert result.ratings().errors[0] > 2.0 * result.payoff.ratings().errors[0]


def test_result_plot_of_many_partners_shows_no_numbers():
    pytest.importorskip("matplotlib")
    names = [f"{number:02}" for number in range(21)]
    figure = result_of(*[((name, name), [1.0, 1.0]) for name in names]).plot()
    assert not figure.axes[0].texts


def test_result_plot_without_matplotlib_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="matplotlib"):
        cooperative().plot()


def test_episodes_of_equal_tournaments_are_equal():
    first, second, other = (pm.tournament(tictactoe_v3.env, ENTRANTS, seed=seed).episodes for seed in (1, 1, 2))
    assert first == second
    assert first != other
    assert first != list(first)
    assert repr(first) == f"<Episodes: {len(first)} games of {list(ENTRANTS)}>"


def test_result_of_a_single_team_is_noted():
    result = result_of((("a", "b"), [1.0, 0.0]), (("b", "a"), [1.0, 0.0]), sides=("player", "player"))
    assert "all agents are one team, so no game can be won." in result.notes
    assert not any("one team" in note for note in result_of((("a", "b"), [1.0, 0.0])).notes)
