"""`tournament`: every pair as often as every other, the same by any number of processes, and not lost."""

import json

import pytest

import pz_policymap as pm
from pz_policymap.cli import main

TICTACTOE = "pettingzoo.classic.tictactoe_v3"
BOTS = ["tests.cli_bots:first_free", "tests.cli_bots:last_free"]


def tournament(capsys, *arguments):
    assert main(["tournament", TICTACTOE, *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_tournament_plays_every_pair_in_both_seatings(capsys):
    shown = tournament(capsys, "--policies", *BOTS, "--cycles", "3")
    # Who moves first takes a line of three before the other does, whether from the front or from the back.
    assert shown["games"] == [[0, 6], [6, 0]]
    assert shown["wins"] == [[0, 3], [3, 0]]
    assert shown["win_rates"] == [[None, 0.5], [0.5, None]]
    assert [row["rating"] for row in shown["policies"]] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert [row["name"] for row in shown["policies"]] == BOTS


def test_tournament_ratings_and_matrices_equal_a_ledger(capsys):
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


def test_tournament_teams_play_no_games_among_themselves(capsys):
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


def test_tournament_tables_equal_json(capsys):
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


def test_tournament_two_jobs_equal_one_job(capsys):
    arguments = ["--policies", "random", "tests.cli_bots:draws_globally", BOTS[0], "--cycles", "4", "--seed", "5"]
    assert tournament(capsys, *arguments, "--jobs", "2") == tournament(capsys, *arguments)


@pytest.mark.parametrize("name", ["a_folder", "x" * 250])
def test_tournament_unusable_results_file_fails_before_play(name, capsys, tmp_path):
    (tmp_path / "a_folder").mkdir()
    path = str(tmp_path / name)  # the long one is too long with what is written beside it
    players = ["random", "tests.cli_bots:interrupts"]  # a game would be told as an interrupted one
    assert main(["tournament", TICTACTOE, "--policies", *players, "--results", path]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pz-policymap: --results: ")
    assert name in line


def test_tournament_fewer_policies_than_seats_uses_self_matches(capsys):
    arguments = ["mpe2.simple_tag_v3", "--policies", "2", "--cycles", "1", "--set", "max_cycles=2", "--json"]
    assert main(["tournament", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["games_played"] == 2**4


def test_tournament_without_wins_shows_returns(capsys):
    assert (
        main(["tournament", "tests.stub_envs:StubParallel", "--policies", "2", "--cycles", "1", "--self-matches"]) == 0
    )
    # StubParallel pays both agents 1 a step, for two steps.
    text = capsys.readouterr().out.split("\n\n")[-1]
    assert text.startswith("No game was won. Mean return")
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
        (["mpe2.simple_tag_v3", "--policies", "90"], 2, "games must be at most 10000000, got 613245600"),
        (["pettingzoo.test.example_envs.generated_agents_env_v0", "--policies", "2"], 1, "has no possible_agents"),
        (["tests.stub_envs:StubParallel", "--policies", "2", "--results", "no_such_folder/x"], 2, "there is no folder"),
        (
            ["tests.cli_envs:numbered", "--policies", "2", "--teams"],
            2,
            "team_of='prefix' needs agents that are strings",
        ),
        (
            ["tests.cli_envs:tuples", "--policies", "2"],
            2,
            "possible_agents must be strings or integers, got [('red', 0), ('red', 1)]",
        ),
        (["tests.cli_envs:Vanishes", "--policies", "2"], 1, "some agents have neither terminated nor been truncated"),
    ],
)
def test_failure_is_one_line(arguments, code, message, capsys):
    assert main(["tournament", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.splitlines()[-1]


def test_tournament_resumes_from_its_file_with_more_cycles(capsys, tmp_path):
    path = str(tmp_path / "games.npz")
    arguments = ["--policies", "random", BOTS[0], "--seed", "2"]
    assert tournament(capsys, *arguments, "--games", "5", "--results", path)["games_played"] == 5
    assert main(["tournament", TICTACTOE, *arguments, "--cycles", "6", "--results", path, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"resuming after 5 of 12 games in {path}\n"
    assert json.loads(captured.out) == tournament(capsys, *arguments, "--cycles", "6")


def test_interrupted_tournament_reports_kept_games(capsys, tmp_path):
    path = tmp_path / "games.npz"
    arguments = ["tournament", TICTACTOE, "--policies", "tests.cli_bots:interrupts", "random", BOTS[0], "--cycles", "1"]
    for more, message in (
        ([], "without --results nothing is kept"),
        (["--results", str(path)], "the same command res"),
    ):
        assert main([*arguments, *more]) == 130
        error = capsys.readouterr().err
        assert f" of 6 games were played; {message}" in error
    assert error.startswith(f"{len(pm.load(path)['tournament']['repetitions'])} of 6 games")
