"""The command line: the demonstration tells the truth."""

import re
import subprocess
import sys

import pytest
from mpe2 import simple_tag_v3

import pz_policymap as pm
from pz_policymap import cli


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pz_policymap", *arguments], capture_output=True, text=True, check=False, env=None
    )


def rows(text):
    return [re.findall(r"[\w]+(?: to \d+| \d+)?", line) for line in text.splitlines() if line.startswith("│")]


def test_the_demonstration_prints_who_played_whom_when_it_was_redrawn_and_how_often():
    shown = run()
    assert shown.returncode == 0, shown.stderr
    assigner = pm.PolicyAssigner(4, simple_tag_v3.parallel_env().possible_agents, seed=42)
    matchups = [[str(p) for p in assigner.begin_episodes()[0].tolist()] for _ in range(25)]
    blocks, counts = rows(shown.stdout)[:3], rows(shown.stdout)[3:]
    assert blocks == [
        ["0 to 9", "reset 0", *matchups[0]],
        ["10 to 19", "reset 10", *matchups[10]],
        ["20 to 24", "reset 20", *matchups[20]],
    ]
    for policy, (name, episodes, seats, steps) in enumerate(counts):
        played = [matchup.count(str(policy)) for matchup in matchups]
        assert int(name) == policy
        assert int(episodes) == sum(count > 0 for count in played)
        assert int(seats) == sum(played)
        assert int(steps) == 25 * sum(played)  # simple_tag lasts 25 steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--episodes", "0"], "argument --episodes: the number must be at least 1, got 0"),
        (["--policies", "-1"], "argument --policies: the number must be at least 1, got -1"),
        (["--seed", "x"], "argument --seed: invalid literal"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_bad_arguments_are_named_and_exit_with_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main([]) == 1
    assert "pip install 'pz-policymap[demo]'" in capsys.readouterr().err
