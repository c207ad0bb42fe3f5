"""`run`: its table equals the results of the episodes."""

import json

import numpy as np
import pytest
from pettingzoo.classic import tictactoe_v3

import pz_policymap as pm
from pz_policymap.cli import main
from pz_policymap.cli.policies import policies_named
from pz_policymap.cli.tables import plain
from tests import cli_bots

TICTACTOE, TAG = "pettingzoo.classic.tictactoe_v3", "mpe2.simple_tag_v3"


def run(capsys, *arguments):
    assert main(["run", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def table(capsys, *arguments):
    return json.loads(run(capsys, *arguments, "--json"))["policies"]


def test_run_readme_command_counts_episodes_and_steps(capsys):
    text = run(capsys, TAG, "--policies", "4", "--episodes", "25")
    rows = [line.split() for line in text.splitlines()[2:]]
    assigner = pm.PolicyAssigner(4, ["adversary_0", "adversary_1", "adversary_2", "agent_0"], seed=0)
    played = np.array([assigner.begin_episodes()[0] for _ in range(25)])
    for policy, row in enumerate(rows):
        seats = (played == policy).sum(axis=1)
        # simple_tag lasts 25 steps
        assert row[:4] == [str(policy), "random", str(np.count_nonzero(seats)), str(25 * seats.sum())]
    assert len(rows) == 4


def test_run_game_with_known_moves(capsys):
    # Who moves first takes a line of three before the other does, whether from the front or from the back.
    first = {"player_1": 0, "player_2": 1}
    players = ["tests.cli_bots:first_free", "tests.cli_bots:last_free"]
    arguments = [TICTACTOE, "--policies", *players, "--mapping", f"Fixed({first})", "--episodes", "6"]
    winner, loser = table(capsys, *arguments)
    assert [winner["name"], loser["name"]] == players
    assert [winner[key] for key in ("episodes", "steps", "games", "wins", "win_rate", "mean_return")] == [
        6,
        18,
        6,
        6,
        1,
        1,
    ]
    assert [loser[key] for key in ("episodes", "steps", "games", "losses", "win_rate", "mean_return")] == [
        6,
        12,
        6,
        6,
        0,
        -1,
    ]
    assert "interval" not in winner


@pytest.mark.parametrize("policy", ["random", "tests.cli_bots:draws_globally"])
@pytest.mark.parametrize("env", [TICTACTOE, "pettingzoo.classic.connect_four_v3"])
def test_run_same_seed_same_results(capsys, env, policy):
    arguments = [env, "--policies", policy, "tests.cli_bots:Predicts", "--episodes", "12", "--resample-every", "1"]
    same = [table(capsys, *arguments, "--seed", seed) for seed in ("3", "3", "4")]
    assert same[0] == same[1] != same[2]


def test_run_random_policies_differ_between_episodes(capsys):
    mapping = "Fixed({'player_1': 0, 'player_2': 1})"
    first, _ = table(capsys, TICTACTOE, "--policies", "2", "--mapping", mapping, "--episodes", "30")
    assert min(first["wins"], first["losses"]) > 0


def test_run_both_apis_with_settings(capsys):
    arguments = [TAG, "--set", "max_cycles=3", "--episodes", "2", "--mapping", "Shared(Uniform(1))"]
    for api in ("parallel", "aec"):
        (row,) = table(capsys, *arguments, "--api", api)
        assert (row["episodes"], row["steps"], row["games"], row["win_rate"]) == (2, 2 * 3 * 4, 0, None)


def test_run_teams_play_no_games_among_themselves(capsys):
    arguments = [
        TAG,
        "--mapping",
        "Roles({'adversary': Uniform(2), 'agent': Fixed(2)})",
        "--policies",
        "3",
        "--episodes",
        "20",
    ]
    alone = table(capsys, *arguments)
    teams = table(capsys, *arguments, "--teams")
    assert alone[0]["games"] > teams[0]["games"] > 0  # adversaries play no games among themselves
    assert sum(row["wins"] for row in teams) == sum(row["losses"] for row in teams)


def test_run_saves_the_ledger_that_it_shows(capsys, tmp_path):
    path = tmp_path / "ledger.npz"
    shown = table(
        capsys, TICTACTOE, "--policies", "3", "--episodes", "30", "--payoff", str(path), "--resample-every", "1"
    )
    states = pm.load(path)
    payoff, statistics = pm.Payoff(3), pm.PolicyStatistics(3)
    payoff.load_state_dict(states["payoff"])
    statistics.load_state_dict(states["statistics"])
    for policy, row in enumerate(shown):
        assert row["wins"] == payoff.wins[policy].sum()
        assert row["steps"] == statistics.steps[policy]


def test_run_prints_and_writes_the_same_bytes_as_the_api(capsys, tmp_path):
    names = ["random", "tests.cli_bots:first_free"]
    options = ["--episodes", "30", "--resample-every", "2", "--seed", "3", "--payoff", str(tmp_path / "command")]
    shown = run(capsys, TICTACTOE, "--policies", *names, *options)
    env = pm.wrap(tictactoe_v3.env(), pm.Uniform(2), resample_every=2, seed=3, env_index=0)
    result = pm.PlayResult(names)
    for episode in pm.play(env, ["random", cli_bots.first_free], 30, seed=3):
        result.record(episode)
    assert shown == f"{result}\n"
    pm.save(tmp_path / "api", payoff=result.payoff, statistics=result.statistics)
    assert (tmp_path / "api").read_bytes() == (tmp_path / "command").read_bytes()
    rows = table(capsys, TICTACTOE, "--policies", *names, *options)
    assert rows == json.loads(json.dumps(plain(result.as_dict()["policies"])))


@pytest.mark.parametrize(
    ("policies", "labels"),
    [
        (["random", "random"], ["0", "1"]),
        (["random", "tests.cli_bots:first_free"], ["0 random", "1 tests.cli_…s:first_free"]),
    ],
)
def test_run_draws_the_picture_of_the_api(capsys, tmp_path, policies, labels):
    pytest.importorskip("matplotlib")
    path = tmp_path / "run.png"
    run(capsys, TICTACTOE, "--policies", *policies, "--episodes", "4", "--plot", str(path))
    result = pm.PlayResult(policies)
    env = pm.wrap(tictactoe_v3.env(), pm.Uniform(2), resample_every=10, seed=0, env_index=0)
    for episode in pm.play(env, policies_named(policies), 4, seed=0):
        result.record(episode)
    figure = result.plot()
    assert sorted(label.get_text() for label in figure.axes[0].get_yticklabels()) == labels
    figure.savefig(tmp_path / "api.png", dpi=150)
    assert path.read_bytes() == (tmp_path / "api.png").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tests.nix"], 2, "there is no module 'tests.nix'"),
        (
            [TICTACTOE, "--mapping", "Uniform(3)", "--policies", "2"],
            2,
            "--mapping Uniform(3) has 3 policies, --policies 2",
        ),
        ([TICTACTOE, "--mapping", "Fixed(1)"], 2, "does not declare its number of policies: pass --policies"),
        ([TICTACTOE, "--mapping", "Uniform(1, replace=False)"], 2, "needs at least one policy per seat"),
        ([TICTACTOE, "--mapping", "Fixed(5)", "--policies", "2"], 1, "episode 0: "),
        ([TICTACTOE, "--policies", "tests.cli_bots:nix"], 2, "module 'tests.cli_bots' has no 'nix'"),
        ([TICTACTOE, "--policies", "tests.cli_bots:fails"], 1, "raised ZeroDivisionError: no idea ("),
        ([TICTACTOE, "--payoff", "no_such_folder/x.npz"], 2, "--payoff: there is no folder 'no_such_folder'"),
        (["tests.stub_envs:StubParallel", "--set", "fail_at=[2]"], 1, "episode 2: RuntimeError: reset 2 fails ("),
        # More episodes than any memory has room for.
        (
            ["tests.stub_envs:StubParallel", "--set", "fail_at=[2]", "--episodes", str(10**13), "--policies", "9"],
            1,
            "episode 2: RuntimeError: reset 2 fails (",
        ),
    ],
)
def test_run_failure_prints_one_line(arguments, code, message, capsys):
    assert main(["run", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("pz-policymap: ")
    assert message in captured.err


@pytest.mark.parametrize(("option", "name"), [("--payoff", "ledger.npz"), ("--plot", "picture.png")])
def test_run_unwritable_file_is_one_line(option, name, capsys, tmp_path):
    if option == "--plot":
        pytest.importorskip("matplotlib")
    (tmp_path / name).mkdir()
    assert main(["run", "tests.stub_envs:StubParallel", "--episodes", "2", option, str(tmp_path / name)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"pz-policymap: {option}: ")
    assert name in line


def test_run_traceback_is_shown_on_request(capsys):
    arguments = ["run", TICTACTOE, "--policies", "tests.cli_bots:fails"]
    main(arguments)
    short = capsys.readouterr().err
    assert "cli_bots.py:" in short
    main([*arguments, "--traceback"])
    full = capsys.readouterr().err
    assert full.endswith(short)
    assert 'raise ZeroDivisionError("no idea")' in full


def test_run_environment_that_fails_to_close_keeps_and_shows_results(capsys, tmp_path):
    path = tmp_path / "kept.npz"
    arguments = ["run", "tests.cli_envs:Unclosable", "--policies", "2", "--payoff", str(path), "--episodes", "2"]
    assert main([*arguments, "--json"]) == 1
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["policies"]) == 2
    assert captured.err == (
        "pz-policymap: environment 'tests.cli_envs:Unclosable' cannot be closed: the viewer is gone\n"
    )
    assert pm.load(path)


@pytest.mark.parametrize("command", ["run", "tournament"])
def test_help_defines_teams(command, capsys):
    main([command, "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert "agents whose names differ only in the number at the end are a team" in words


@pytest.mark.parametrize(
    ("player", "code", "message"),
    [
        ("interrupts", 130, "{played} of 40 episodes were played; they are in {path}\ninterrupted\n"),
        ("fails", 1, "ZeroDivisionError: no idea"),
    ],
)
def test_run_cut_short_saves_finished_episodes(player, code, message, capsys, tmp_path):
    path = tmp_path / "ledger.npz"
    names = ["random", "tests.cli_bots:first_free", f"tests.cli_bots:{player}"]
    arguments = ["run", TICTACTOE, "--policies", *names, "--episodes", "40", "--payoff", str(path)]
    assigner = pm.PolicyAssigner(3, ["player_1", "player_2"], seed=0)
    played = [2 in assigner.begin_episodes()[0] for _ in range(40)].index(True)
    assert played == 10
    assert main(arguments) == code
    assert message.format(played=played, path=path) in capsys.readouterr().err
    statistics = pm.PolicyStatistics(3)
    statistics.load_state_dict(pm.load(path)["statistics"])
    assert statistics.episodes.tolist() == [played, played, 0]


def test_run_interrupted_at_once_keeps_the_existing_file(capsys, tmp_path):
    path = tmp_path / "ledger.npz"
    path.write_bytes(b"the ledgers of another run")
    arguments = ["run", TICTACTOE, "--policies", "tests.cli_bots:interrupts"]
    for more in ([], ["--payoff", str(path)]):
        assert main([*arguments, *more]) == 130
        assert capsys.readouterr().err == "0 of 100 episodes were played; nothing is kept\ninterrupted\n"
    assert path.read_bytes() == b"the ledgers of another run"
