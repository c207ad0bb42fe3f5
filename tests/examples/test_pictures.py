"""Tests that the script for the README's pictures draws those in the repository."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
EXAMPLES = Path(__file__).parents[2] / "examples"

spec = importlib.util.spec_from_file_location("pictures", EXAMPLES / "pictures.py")
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_script_draws_the_pictures_in_the_repository(tmp_path, capsys):
    pictures.main(tmp_path / "new", cycles=1)
    made = names(EXAMPLES / "pictures")
    made.remove("sb3_self_play.png")  # drawn by another example
    assert names(tmp_path / "new") == made
    assert len(capsys.readouterr().out.splitlines()) == len(made)


@pytest.mark.parametrize("name", names(EXAMPLES / "pictures"))
def test_pictures_are_900_pixels_wide_and_small(name):
    content = (EXAMPLES / "pictures" / name).read_bytes()
    width, _ = struct.unpack(">II", content[16:24])  # of a PNG: its header comes first (ISO/IEC 15948)
    assert content.startswith(b"\x89PNG")
    assert width == 900
    assert len(content) < 60_000


def test_tournament_is_complete_and_the_careful_policy_wins():
    payoff = pictures.tournament(cycles=6)
    np.testing.assert_array_equal(payoff.games, 2 * 6 * (1 - np.eye(len(pictures.PLAYERS), dtype=int)))
    players = list(pictures.PLAYERS)
    assert payoff.win_rates[players.index("careful"), players.index("random")] > 0.7
    assert payoff.ratings().values.argmax() == players.index("careful")


def test_completes_four_in_every_direction():
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        line = [(1 + i * down, 3 + i * right) if down else (5, 1 + i) for i in range(4)]
        for last in line:
            stones = np.zeros((6, 7), bool)
            for place in line:
                stones[place] = place != last
            assert pictures.completes_four(stones, *last)
            stones[line[0] if last != line[0] else line[1]] = False
            assert not pictures.completes_four(stones, *last)
