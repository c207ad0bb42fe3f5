"""`preview`: its table equals the assignments of a run."""

import json

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.cli import main


def preview(capsys, *arguments):
    assert main(["preview", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "mapping", "envs"),
    [
        ("Uniform(5)", pm.Uniform(5), 1),
        ("Balanced(3, num_envs=4)", pm.Balanced(3, num_envs=4), 4),
        ("5", pm.Uniform(5), 3),
    ],
)
def test_preview_equals_an_assigner(capsys, text, mapping, envs):
    arguments = [text, "--agents", "x,y", "--envs", str(envs), "--episodes", "7", "--resample-every", "3"]
    shown = json.loads(preview(capsys, *arguments, "--warmup-episodes", "2", "--seed", "9", "--json"))
    cadence = {"resample_every": 3, "warmup_episodes": 2}
    assigner = pm.PolicyAssigner(mapping, ["x", "y"], envs, seed=9, env_index=0, **cadence)
    expected = np.array([assigner.begin_episodes() for _ in range(7)])
    assert shown["policy_ids"] == expected.tolist()
    assert shown["agents"] == ["x", "y"]
    size = mapping.num_policies
    counts = [int((expected == policy).sum()) for policy in range(size)]
    assert shown["seats"] == counts
    assert shown["shares"] == [count / expected.size for count in counts]
    assert len(shown["long_run_shares"]) == size


def test_preview_long_run_shares_approach_the_weights(capsys):
    shown = json.loads(preview(capsys, "Weighted([6, 3, 1])", "--json", "--agents", "4", "--seed", "3"))
    # Four times the standard error of 8000 draws.
    assert shown["long_run_shares"] == pytest.approx([0.6, 0.3, 0.1], abs=4 * (0.25 / 8000) ** 0.5)


def test_preview_tables_show_blocks_and_shares(capsys):
    text = preview(capsys, "Fixed({'red_0': 2, 'blue_0': 0})", "--agents", "red_0,blue_0", "--episodes", "5")
    first, second = text.split("\n\n")
    assert [line.split() for line in first.splitlines()[1:]] == [
        ["episodes", "red_0", "blue_0"],
        ["0", "to", "4", "2", "0"],
    ]
    rows = [line.split() for line in second.splitlines()[1:]]
    assert rows[0] == ["policy", "episodes", "seats", "share", "long", "run"]
    assert [row[:5] for row in rows[1:]] == [
        ["0", "5", "5", "50.0%", "50.0%"],
        ["1", "0", "0", "0.0%", "0.0%"],
        ["2", "5", "5", "50.0%", "50.0%"],
    ]


def test_preview_limits_rows(capsys):
    text = preview(capsys, "Uniform(2)", "--envs", "4", "--episodes", "30", "--rows", "5")
    assert "... and 7 more rows" in text
    assert text.count("0 to 9") == 4
    assert text.count("10 to 19") == 1


def test_preview_numbers_agents_with_long_names(capsys):
    names = ",".join(f"a_rather_long_name_{i}" for i in range(20))
    lines = preview(capsys, "Uniform(2)", "--agents", names, "--episodes", "1").splitlines()
    assert lines[0].startswith("seats: 0 a_rather_long_name_0, 1 a_rather")
    assert lines[2].split() == ["episodes", *map(str, range(20))]


def test_preview_numbers_unnamed_agents(capsys):
    title, heading, *_ = preview(capsys, "Uniform(2)", "--agents", "40", "--episodes", "1").splitlines()
    assert title == "Policies by agent"
    assert heading.split() == ["episodes", *map(str, range(40))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["Uniform(4, replace=False)", "--agents", "5"],
            "replace=False needs at least one policy per seat, got 4 policies for 5 seats",
        ),
        (["Uniform("], "mapping Uniform(: 'Uniform(' is not the text form of a mapping"),
        (["Uniform(4)", "--agents", "0"], "--agents must be a number from 1, or names a,b,c, got '0'"),
        (["Uniform(4)", "--agents", "a,,b"], "--agents must be"),
        (["Uniform(4)", "--agents", "a,a"], "distinct"),
        (["Fixed({'a': 0})", "--agents", "a,b"], "got no policy for 'b'"),
        (["tests.cli_bots:first_free"], "episode 0: first_free() missing 1"),
        (["Uniform(4)", "--episodes", "0"], "argument --episodes: must be an integer >= 1, got '0'"),
        (["Uniform(4)", "--seed", "x"], "argument --seed: must be an integer >= 0, got 'x'"),
        (["Uniform(4)", "--plot", "picture.doc"], "--plot must end in one of"),
        (["Uniform(4)", "--plot", "no_such_folder/picture.png"], "--plot: there is no folder 'no_such_folder'"),
        (["Uniform(4)", "--ep", "3"], "unrecognized arguments: --ep 3"),
        ([], "the following arguments are required: MAPPING"),
    ],
)
def test_preview_invalid_argument_exits_with_2(arguments, message, capsys):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    assert main(["preview", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.splitlines()[-1]


@pytest.mark.parametrize("envs", [1, 30])
def test_preview_draws_a_picture(tmp_path, capsys, envs):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    preview(capsys, "Uniform(3)", "--plot", str(path), "--envs", str(envs))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_plot_without_matplotlib_names_the_install_command(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert main(["preview", "Uniform(3)", "--plot", "picture.png"]) == 1
    assert capsys.readouterr().err == "pz-policymap: --plot needs matplotlib: pip install matplotlib\n"


def test_preview_long_run_is_unknown_for_a_partial_function(tmp_path, capsys):
    arguments = ["tests.cli_bots:three_blocks", "--episodes", "3", "--resample-every", "1", "--agents", "1"]
    shown = json.loads(preview(capsys, *arguments, "--json"))
    assert (shown["seats"], shown["long_run_shares"]) == ([1, 2], [None, None])
    rows = [line.split() for line in preview(capsys, *arguments).splitlines()[-2:]]
    assert [row[3:5] for row in rows] == [["33.3%", "-"], ["66.7%", "-"]]


def test_preview_draws_a_picture_without_long_run_shares(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    preview(capsys, "tests.cli_bots:three_blocks", "--episodes", "3", "--resample-every", "1", "--plot", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_preview_impure_mapping_is_reported(capsys):
    assert main(["preview", "tests.cli_bots:impure", "--agents", "2", "--episodes", "1"]) == 0
    assert capsys.readouterr().err == "the mapping is not pure: a second draw with the same numbers differs\n"


def test_preview_limits_columns(capsys):
    text = preview(capsys, "4", "--agents", "4000", "--episodes", "1")
    assert "... and 3936 more agents" in text
    assert max(map(len, text.splitlines())) < 500
