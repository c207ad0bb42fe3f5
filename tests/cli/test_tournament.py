"""`tournament`: every pair as often as every other, the same by any number of processes, and not lost."""

import json
import multiprocessing
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import pz_policymap as pm
from pz_policymap.cli import main
from pz_policymap.cli.environments import EnvName
from pz_policymap.cli.errors import CommandError
from pz_policymap.evaluation.games import Match, Plan
from pz_policymap.evaluation.outcomes import Outcomes
from pz_policymap.evaluation.workers import _work, play_games

TICTACTOE = "pettingzoo.classic.tictactoe_v3"
BOTS = ["tests.cli_bots:first_free", "tests.cli_bots:last_free"]


def tournament(capsys, *arguments):
    assert main(["tournament", TICTACTOE, *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_every_pair_meets_in_both_seatings_and_who_moves_first_wins(capsys):
    shown = tournament(capsys, "--policies", *BOTS, "--cycles", "3")
    # Who moves first takes a line of three before the other does, whether from the front or from the back.
    assert shown["games"] == [[0, 6], [6, 0]]
    assert shown["wins"] == [[0, 3], [3, 0]]
    assert shown["win_rates"] == [[None, 0.5], [0.5, None]]
    assert [row["rating"] for row in shown["policies"]] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert [row["name"] for row in shown["policies"]] == BOTS


def test_ratings_and_matrices_are_those_of_a_ledger_and_the_best_stands_first(capsys):
    shown = tournament(capsys, "--policies", "random", *BOTS, "--cycles", "6")
    assert shown["games"] == [[0, 12, 12], [12, 0, 12], [12, 12, 0]]
    payoff = pm.Payoff(3)
    for i in range(3):
        for j in range(3):
            for _ in range(shown["wins"][i][j]):
                payoff.record(pm.Episode([i, j], [1, 0]))
        for j in range(i):
            for _ in range(shown["draws"][i][j]):
                payoff.record(pm.Episode([i, j], [0, 0]))
    ratings = payoff.ratings()
    for row in shown["policies"]:
        assert row["rating"] == pytest.approx(ratings.values[row["policy"]])
        assert row["rating_error"] == pytest.approx(ratings.errors[row["policy"]])
    for i, row in enumerate(shown["win_rates"]):  # of 12 games each, as the tables have them: without a prior
        assert row == [None if i == j else (shown["wins"][i][j] + shown["draws"][i][j] / 2) / 12 for j in range(3)]
    order = [row["rating"] for row in shown["policies"]]
    assert order == sorted(order, reverse=True)


def test_who_won_is_who_played(capsys):
    names = ("random", *BOTS)
    shown = tournament(capsys, "--policies", *names, "--games", "11", "--seed", "8")
    plan = Plan(EnvName(TICTACTOE), names, 8, ("player_1", "player_2"), teams=False, self_matches=False)
    payoff, match = pm.Payoff(3), Match(plan)
    for game in range(11):
        payoff.record(match.play(game))
    assert shown["wins"] == payoff.wins.tolist()
    assert shown["draws"] == payoff.draws.tolist()


def test_agents_that_were_not_there_are_left_out_of_games_before_and_after_the_file():
    plan = Plan(EnvName("any"), ("x", "y"), 0, ("a", "b", "c"), teams=False, self_matches=True)
    first, more = Outcomes(plan, 1), Outcomes(plan, 2)
    for game, outcomes in enumerate((first, more)):
        if game:
            outcomes.load_state_dict(first.state_dict())
        outcomes.record(game, pm.Episode([0, 1], [2.0, game], [3, 4], agents=["c", "a"]))
    for game, episode in enumerate(more.episodes()):
        matchup = dict(zip("abc", plan.matchups([game])[0], strict=True))
        assert episode.agents == ("a", "c")
        assert episode.policies == (matchup["a"], matchup["c"])
        assert (episode.returns, episode.lengths) == ((game, 2.0), (4, 3))


def test_teams_win_together_and_play_no_games_among_themselves(capsys):
    agents = ["red_0", "red_1", "blue_0"]
    arguments = ["tests.stub_envs:StubParallel", "--policies", "3", "--cycles", "1", "--json"]
    # Blue lives for two steps and reds for one, each of which pays 1.
    arguments += ["--set", f"live=[{agents}, ['blue_0'], []]", "--set", f"possible_agents={agents}"]
    shown = []
    for more in ([], ["--teams"]):
        assert main(["tournament", *arguments, *more]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    alone, teams = shown
    # Of the six seatings of three policies, two seat a pair as the reds.
    assert alone["games"] == [[0, 6, 6], [6, 0, 6], [6, 6, 0]]
    assert teams["games"] == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]
    assert alone["wins"] == teams["wins"] == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]


def test_the_tables_hold_the_same(capsys):
    arguments = ["--policies", "random", *BOTS, "--cycles", "2"]
    shown = tournament(capsys, *arguments)
    assert main(["tournament", TICTACTOE, *arguments]) == 0
    ratings, rates = capsys.readouterr().out.split("\n\n")
    assert ratings.startswith(f"{TICTACTOE}: 12 games\n")
    for line, row in zip(ratings.splitlines()[2:], shown["policies"], strict=True):
        cells = line.split()
        assert cells[:3] == [str(row["policy"]), row["name"], f"{row['rating']:+.0f}"]
        assert cells[4:8] == [str(row[key]) for key in ("games", "wins", "draws", "losses")]
    order = [row["policy"] for row in shown["policies"]]
    lines = [line.split() for line in rates.splitlines()[1:]]
    assert lines[0] == ["policy", *map(str, order)]
    for line, i in zip(lines[1:], order, strict=True):
        won = [(shown["wins"][i][j] + shown["draws"][i][j] / 2) / 4 for j in order]
        assert line == [str(i), *("-" if i == j else f"{rate:.2f}" for j, rate in zip(order, won, strict=True))]


def test_it_is_the_same_by_two_processes_as_by_one(capsys):
    arguments = ["--policies", "random", "tests.cli_bots:draws_globally", BOTS[0], "--cycles", "4", "--seed", "5"]
    assert tournament(capsys, *arguments, "--jobs", "2") == tournament(capsys, *arguments)


def test_a_thread_may_have_it_played_by_two_processes(capsys):
    arguments = ["--policies", "random", BOTS[0], "--games", "4"]
    with ThreadPoolExecutor(1) as thread:
        shown = thread.submit(tournament, capsys, *arguments, "--jobs", "2").result()
    assert shown == tournament(capsys, *arguments)


def test_it_goes_on_from_its_file_with_more_cycles_and_plays_nothing_twice(capsys, tmp_path, monkeypatch):
    path = str(tmp_path / "games.npz")
    arguments = ["--policies", "random", BOTS[0], "--seed", "2"]
    some = tournament(capsys, *arguments, "--games", "5", "--results", path)
    assert some["games_played"] == 5
    assert main(["tournament", TICTACTOE, *arguments, "--cycles", "6", "--results", path, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"going on after 5 of 12 games, which are in {path}\n"
    whole = json.loads(captured.out)
    assert whole == tournament(capsys, *arguments, "--cycles", "6")
    monkeypatch.setattr("pz_policymap.evaluation.play.Player.play", None)  # nobody plays from here on
    assert tournament(capsys, *arguments, "--cycles", "6", "--results", path) == whole
    assert tournament(capsys, *arguments, "--games", "3", "--results", path) == whole  # what is known is shown


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            ["--policies", "random", BOTS[1]],
            "--policies was ['random', 'tests.cli_bots:first_free'] and is ['random', '",
        ),
        (["--policies", "random", BOTS[0], "--seed", "1"], "--seed was 0 and is 1"),
        (["--policies", "random", BOTS[0], "--teams"], "--teams was False and is True"),
        (["--policies", "random", BOTS[0], "--self-matches"], "--self-matches was False and is True"),
        (["--policies", "random", BOTS[0], "--set", "screen_height=9"], "--set was {} and is {'screen_height': '9'}"),
    ],
)
def test_another_tournament_is_refused_with_what_differs_and_the_file_stays(capsys, tmp_path, other, message):
    path = tmp_path / "games.npz"
    tournament(capsys, "--policies", "random", BOTS[0], "--games", "2", "--results", str(path))
    before = path.read_bytes()
    assert main(["tournament", TICTACTOE, *other, "--results", str(path)]) == 2
    assert f"--results {path}: it is of another tournament: {message}" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_another_environment_with_other_agents_is_named_too(capsys, tmp_path):
    path = str(tmp_path / "games.npz")
    tournament(capsys, "--policies", "2", "--games", "2", "--results", path)
    assert main(["tournament", "pettingzoo.classic.connect_four_v3", "--policies", "2", "--results", path]) == 2
    error = capsys.readouterr().err
    assert f"ENV was {TICTACTOE!r} and is 'pettingzoo.classic.connect_four_v3'" in error
    assert "agents was ['player_1', 'player_2'] and is ['player_0', 'player_1']" in error


def test_a_file_of_something_else_is_refused_and_stays(capsys, tmp_path):
    ledger, newer, text = tmp_path / "ledger.npz", tmp_path / "newer.npz", tmp_path / "notes.txt"
    pm.save(ledger, payoff=pm.Payoff(2))
    pm.save(newer, tournament={"version": 2})
    text.write_text("my notes")
    for path, message in (
        (ledger, "it holds no tournament"),
        (newer, "it has version 2, this one reads 1"),
        (text, "is no whole file written by"),
    ):
        before = path.read_bytes()
        assert main(["tournament", TICTACTOE, "--policies", "2", "--results", str(path)]) == 2
        assert message in capsys.readouterr().err
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["a_folder", "x" * 250])
def test_a_file_that_cannot_be_read_or_written_is_named_before_anything_is_played(name, capsys, tmp_path):
    (tmp_path / "a_folder").mkdir()
    path = str(tmp_path / name)  # the long one is too long with what is written beside it
    players = ["random", "tests.cli_bots:interrupts"]  # a game would be told as an interrupted one
    assert main(["tournament", TICTACTOE, "--policies", *players, "--results", path]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pz-policymap: --results: ")
    assert name in line


def test_with_fewer_policies_than_seats_a_policy_plays_several(capsys):
    arguments = ["mpe2.simple_tag_v3", "--policies", "2", "--cycles", "1", "--set", "max_cycles=2", "--json"]
    assert main(["tournament", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["games_played"] == 2**4


def test_where_nobody_wins_the_returns_are_shown(capsys):
    assert (
        main(["tournament", "tests.stub_envs:StubParallel", "--policies", "2", "--cycles", "1", "--self-matches"]) == 0
    )
    # StubParallel pays both agents 1 a step, for two steps.
    text = capsys.readouterr().out.split("\n\n")[-1]
    assert text.startswith("Nobody won a game. Mean return")
    assert [line.split() for line in text.splitlines()[2:]] == [["0", "2.00", "2.00"], ["1", "2.00", "2.00"]]


def test_pictures_are_drawn(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "ratings.png"
    tournament(capsys, "--policies", "random", BOTS[0], "--cycles", "1", "--plot", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:fails"], 1, "ZeroDivisionError: no idea"),
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:fails", "--jobs", "2"], 1, "ZeroDivisionError: no idea"),
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:nix"], 2, "has no 'nix'"),
        ([TICTACTOE, "--policies", "1"], 2, "--policies must be at least 2"),
        ([TICTACTOE], 2, "required: --policies"),
        ([TICTACTOE, "--policies", "2", "--cycles", "2", "--games", "3"], 2, "not allowed with argument --cycles"),
        # Ten cycles of 90 * 89 * 88 * 87 seatings.
        (["mpe2.simple_tag_v3", "--policies", "90"], 2, "there are 613245600 games, of at most 10000000"),
        (["pettingzoo.test.example_envs.generated_agents_env_v0", "--policies", "2"], 1, "has no possible_agents"),
        (["tests.stub_envs:StubParallel", "--policies", "2", "--results", "no_such_folder/x"], 2, "there is no folder"),
        (["tests.cli_envs:numbered", "--policies", "2", "--teams"], 1, "--teams needs agents whose names are strings"),
        (["tests.cli_envs:tuples", "--policies", "2"], 1, "agents that are no names: [('red', 0), ('red', 1)]"),
        (["tests.cli_envs:Vanishes", "--policies", "2"], 1, "game 0 ended, but not for all of its agents"),
    ],
)
def test_what_goes_wrong_is_named_in_a_line(arguments, code, message, capsys):
    assert main(["tournament", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.splitlines()[-1]


def test_a_failure_loses_no_game_that_was_played(capsys, tmp_path):
    path = str(tmp_path / "games.npz")
    arguments = ["tests.stub_envs:StubParallel", "--policies", "2", "--results", path, "--games", "6"]
    assert main(["tournament", *arguments, "--set", "fail_at=[3]"]) == 1
    assert "episode 3: RuntimeError: reset 3 fails" in capsys.readouterr().err
    assert pm.load(path)["tournament"]["done"].tolist() == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("kept", "message"), [(False, "without --results nothing is kept"), (True, "the same command goes on")]
)
def test_an_interrupted_one_says_how_far_it_came_and_what_is_kept(kept, message, capsys, tmp_path):
    path = tmp_path / "games.npz"
    names = ("tests.cli_bots:interrupts", "random", BOTS[0])
    arguments = ["tournament", TICTACTOE, "--policies", *names, "--cycles", "1"]
    plan = Plan(EnvName(TICTACTOE), names, 0, ("player_1", "player_2"), teams=False, self_matches=False)
    played = [0 in matchup for matchup in plan.matchups(range(6))].index(True)
    assert played > 0
    assert main([*arguments, *(["--results", str(path)] if kept else [])]) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"{played} of 6 games were played; {message}\ninterrupted\n"
    if kept:
        assert pm.load(path)["tournament"]["done"].tolist() == [True] * played + [False] * (6 - played)


def test_who_plays_for_another_process_answers_each_game_until_nobody_asks():
    env = EnvName("tests.stub_envs:StubParallel", settings={"fail_at": [1]})
    plan = Plan(env, ("random", "random"), 0, ("a", "b"), teams=False, self_matches=False)
    ours, theirs = multiprocessing.Pipe()
    answers = []

    def ask():
        with ours:
            for game in (3, 1, 2):
                ours.send(game)
                answers.append(ours.recv())

    asking = threading.Thread(target=ask, daemon=True)
    before = signal.getsignal(signal.SIGINT)
    try:
        asking.start()
        with theirs:  # a question that is never answered fails
            _work(theirs, plan)  # and ends
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # Ctrl-C is the other process's to answer
    finally:
        signal.signal(signal.SIGINT, before)
    asking.join()
    assert [game for game, _, _ in answers] == [3, 1, 2]
    assert [where == "" for _, _, where in answers] == [True, False, True]
    assert answers[0][1] == Match(plan).play(3)
    assert "episode 1: RuntimeError: reset 1 fails" in str(answers[1][1])
    assert 'raise RuntimeError(f"reset {self.resets} fails")' in answers[1][2]
    assert isinstance(answers[2][1], pm.Episode)


def test_a_process_that_dies_is_noticed(capsys):
    arguments = [TICTACTOE, "--policies", "random", "tests.cli_bots:dies", "--jobs", "2"]
    assert main(["tournament", *arguments]) == 1
    assert "a process that played games died, exit code 3" in capsys.readouterr().err


def test_a_process_that_dies_between_two_games_is_noticed():
    plan = Plan(EnvName(TICTACTOE), ("random", "random"), 0, ("player_1", "player_2"), teams=False, self_matches=False)

    def kill(game, episode):
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join()

    with pytest.raises(CommandError, match="a process that played games died, exit code"):
        play_games(plan, range(9), 2, kill)


def test_the_traceback_of_another_process_is_shown_when_asked(capsys):
    arguments = ["tournament", TICTACTOE, "--policies", "random", "tests.cli_bots:fails", "--jobs", "2"]
    assert main([*arguments, "--traceback"]) == 1
    assert 'raise ZeroDivisionError("no idea")' in capsys.readouterr().err


def test_episodes_and_mean_returns_are_those_of_all_games(capsys):
    names = ("random", *BOTS)
    shown = tournament(capsys, "--policies", *names, "--games", "9")
    plan = Plan(EnvName(TICTACTOE), names, 0, ("player_1", "player_2"), teams=False, self_matches=False)
    statistics, match = pm.PolicyStatistics(3, window=9), Match(plan)
    for game in range(9):
        statistics.record(match.play(game))
    for row in shown["policies"]:
        assert row["episodes"] == statistics.episodes[row["policy"]]
        assert row["mean_return"] == pytest.approx(statistics.mean_return[row["policy"]])
