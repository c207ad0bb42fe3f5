"""`tournament` and `merge`: the output and files of the API, resumption, and errors on one line."""

import json

import pytest

import pz_policymap as pm
from pz_policymap.cli import main
from pz_policymap.cli.environments import EnvName
from pz_policymap.cli.tables import plain
from tests import cli_bots

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
        assert row["rating_error"] > 0.0
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


ARGUMENTS = ["--policies", "random", *BOTS, "--cycles", "6", "--seed", "3"]


def by_api(**settings):
    """The tournament of `ARGUMENTS`, played in Python."""
    entrants = {"random": "random", BOTS[0]: cli_bots.first_free, BOTS[1]: cli_bots.last_free}
    make_env = EnvName(TICTACTOE)  # the results file is bound to what the command line calls the environment
    return pm.tournament(make_env, entrants, cycles=6, seed=3, **settings)


def test_tournament_prints_and_writes_the_same_bytes_as_the_api(capsys, tmp_path):
    result = by_api(results=tmp_path / "api")
    assert main(["tournament", TICTACTOE, *ARGUMENTS, "--results", str(tmp_path / "command")]) == 0
    assert capsys.readouterr().out == f"{result}\n\n{result.pairs()}\n"
    assert (tmp_path / "api").read_bytes() == (tmp_path / "command").read_bytes()
    assert tournament(capsys, *ARGUMENTS) == {
        "env": TICTACTOE,
        "agents": ["player_1", "player_2"],
        "seed": 3,
        **json.loads(json.dumps(plain(result.as_dict()))),
    }


def test_merge_of_shards_prints_and_writes_the_same_bytes_as_the_api(capsys, tmp_path):
    shards = [str(tmp_path / f"shard{i}") for i in range(3)]
    for i, path in enumerate(shards):
        tournament(capsys, *ARGUMENTS, "--shard", f"{i}/3", "--results", path)
    assert main(["merge", *shards, "--into", str(tmp_path / "merged"), "--plot", str(tmp_path / "merged.png")]) == 0
    shown = capsys.readouterr().out
    by_api(results=tmp_path / "api")
    result = pm.read_tournament(tmp_path / "api", into=tmp_path / "api")
    assert shown == f"{result}\n\n{result.pairs()}\n"
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "api").read_bytes()
    assert main(["merge", str(tmp_path / "merged"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(plain(result.as_dict())))
    assert (tmp_path / "merged.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "code", "message"), [(None, 1, "No such file"), (b"x\n", 2, "it is not a results file of this version")]
)
def test_merge_unusable_file_is_one_line(content, code, message, capsys, tmp_path):
    if content:
        (tmp_path / "games").write_bytes(content)
    assert main(["merge", str(tmp_path / "games")]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_tournament_of_a_folder_of_checkpoints(capsys, tmp_path):
    for name in ("first", "last"):
        (tmp_path / f"{name}.txt").write_text(name)
    options = ["--checkpoints", str(tmp_path), "--loader", "tests.cli_bots:loads", "--cycles", "3", "--jobs", "2"]
    shown = tournament(capsys, *options)
    assert sorted(row["name"] for row in shown["policies"]) == ["first", "last"]
    assert shown["wins"] == [[0, 3], [3, 0]]


def test_tournament_two_jobs_equal_one_job(capsys):
    arguments = ["--policies", "random", "tests.cli_bots:draws_globally", BOTS[0], "--cycles", "4", "--seed", "5"]
    assert tournament(capsys, *arguments, "--jobs", "2") == tournament(capsys, *arguments)


@pytest.mark.parametrize("name", ["a_folder", "x" * 300])
def test_tournament_unusable_results_file_fails_before_play(name, capsys, tmp_path):
    (tmp_path / "a_folder").mkdir()
    path = str(tmp_path / name)
    players = ["random", "tests.cli_bots:interrupts"]  # a game would show as an interruption
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
    assert text.startswith("mean return with")
    rows = [["random", "2.00", "2.00"], ["random-2", "2.00", "2.00"]]
    assert [line.split() for line in text.splitlines()[1:]] == rows


def test_tournament_draws_the_picture_of_the_api(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "ratings.png"
    tournament(capsys, *ARGUMENTS, "--plot", str(path))
    by_api().plot().savefig(tmp_path / "api.png", dpi=150)
    assert path.read_bytes() == (tmp_path / "api.png").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:fails"], 1, "ZeroDivisionError: no idea"),
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:fails", "--jobs", "2"], 1, "ZeroDivisionError: no idea"),
        ([TICTACTOE, "--policies", "random", "tests.cli_bots:nix"], 2, "has no 'nix'"),
        ([TICTACTOE, "--policies", "1"], 2, "must name at least 2 policies, got 1"),
        ([TICTACTOE], 2, "must name at least 2 policies, got 0"),
        ([TICTACTOE, "--policies", "2", "--shard", "3/3"], 2, "--shard: must be I/N with 0 <= I < N"),
        ([TICTACTOE, "--policies", "2", "--shard", "x"], 2, "--shard: must be I/N with 0 <= I < N"),
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
def test_tournament_failure_prints_one_line(arguments, code, message, capsys):
    assert main(["tournament", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.splitlines()[-1]


def test_tournament_resumes_from_its_file_with_more_cycles(capsys, tmp_path):
    path = str(tmp_path / "games.jsonl")
    arguments = ["--policies", "random", BOTS[0], "--seed", "2"]
    assert tournament(capsys, *arguments, "--games", "5", "--results", path)["games_played"] == 5
    assert main(["tournament", TICTACTOE, *arguments, "--cycles", "6", "--results", path, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"resuming after 5 of 12 games in {path}\n"
    assert json.loads(captured.out) == tournament(capsys, *arguments, "--cycles", "6")


def test_interrupted_tournament_reports_kept_games(capsys, tmp_path):
    path = tmp_path / "games.jsonl"
    arguments = ["tournament", TICTACTOE, "--policies", "tests.cli_bots:interrupts", "random", BOTS[0], "--cycles", "1"]
    for more, message in (
        ([], "without --results nothing is kept"),
        (["--results", str(path)], "the same command res"),
    ):
        assert main([*arguments, *more]) == 130
        error = capsys.readouterr().err
        assert f" of 6 games were played; {message}" in error
    assert error.startswith(f"{len(pm.read_tournament(path).episodes)} of 6 games")
