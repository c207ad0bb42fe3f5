"""Tables, colours and progress: plain where nobody looks."""

import io

import pytest

from pz_policymap.cli import tables
from pz_policymap.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def table():
    def show():
        tables.show_table(
            "A title", ["name", "n", ""], [["a", 1, "##"], ["bcd", 0.5, "#"]], [["31", "", ""]] * 2, words=1
        )

    return show


def test_words_stand_to_the_left_and_numbers_to_the_right(table, capsys):
    table()
    assert capsys.readouterr().out.splitlines() == ["A title", "name     n", "a        1  ##", "bcd   0.50  #"]


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(table, monkeypatch, variables, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    table()
    assert ("\x1b[31ma   \x1b[0m" in terminal.getvalue()) == coloured
    assert ("\x1b" in terminal.getvalue()) == coloured


def test_progress_is_one_line_on_a_terminal_and_nothing_elsewhere(monkeypatch):
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with Progress("games", 2) as progress:
            progress.advance()
        assert ("\rgames [############............] 1/2, " in stream.getvalue()) == shown
        assert stream.getvalue().endswith("\r\x1b[K" if shown else "")


@pytest.mark.parametrize(
    ("done", "before", "seconds", "says"),
    [
        (3, 0, 1.0, "3/10, 3 a second, 2 s left"),
        (7, 5, 1.0, "7/10, 2 a second, 2 s left"),  # what an earlier command has done tells nothing of the rate
        (5, 0, 300.0, "5/10, 0.0167 a second, 5 min 00 s left"),
        (1, 0, 1000.0, "1/10, 0.001 a second, 2 h 30 min left"),
        (5, 5, 1.0, "5/10, 0 a second, ? left"),
        (10, 0, 1.0, "10/10, 10 a second, 0 s left"),
    ],
)
def test_rate_and_time_left(done, before, seconds, says):
    progress = Progress("games", 10, before)
    for _ in range(done - before):
        progress.advance()
    assert progress.line(seconds).endswith(says)
