"""Tables, colours and progress: plain unless stdout is a terminal."""

import io

import pytest

from pz_policymap import cli
from pz_policymap.cli import tables
from pz_policymap.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Terminal()


def show_table():
    rows = [["a", 1, "##"], ["[b]cd", 0.5, "#"], ["e", float("nan"), ""]]
    tables.show_table("A title", ["name", "n", ""], rows, [["red", "", ""]] * 3)


def test_table_aligns_words_left_and_numbers_right(capsys):
    show_table()
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["A title", "name      n", "a         1  ##", "[b]cd  0.50  #", "e         -"]


def test_table_wider_than_the_line_is_not_cut(capsys):
    tables.show_table("Wide", [f"column_{i}" for i in range(40)], [list(range(40))])
    assert [len(line.split()) for line in capsys.readouterr().out.splitlines()] == [1, 40, 40]


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_table_colours_only_on_colour_terminals(terminal, monkeypatch, variables, coloured):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", terminal)
    show_table()
    assert ("\x1b[31m[b]cd" in terminal.getvalue()) == coloured


def test_progress_only_on_a_terminal(terminal, monkeypatch):
    for stream, shown in ((terminal, True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with progress("games", total=4, done=1) as advance:
            advance()
        assert ("games" in stream.getvalue() and "2/4" in stream.getvalue()) == shown
        assert bool(stream.getvalue()) == shown


def test_main_without_rich_names_the_install_command(monkeypatch, capsys):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["preview", "uniform:4"]) == 1
    assert "rich" in (said := capsys.readouterr().err)
    assert "pip install rich" in said
    assert cli.main([]) == 0
    assert "preview" in capsys.readouterr().out
