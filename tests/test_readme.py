"""Tests the README: snippets run in order, in one namespace, and print the output below them."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from pz_policymap.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", README, re.DOTALL)


def test_snippets_print_the_output_below_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for code, expected in SNIPPETS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), namespace)
        assert printed.getvalue() == expected, code
    assert len(SNIPPETS) >= 5


def test_commands_print_the_output_below_them(capsys):
    commands = re.findall(r"```bash\npz-policymap ([^\n]*)\n```\n```text\n(.*?)```", README, re.DOTALL)
    for command, expected in commands:
        assert main(shlex.split(command)) == 0
        printed = capsys.readouterr().out.splitlines()
        assert [line.rstrip() for line in printed] == expected.splitlines(), command
    assert len(commands) >= 2


def test_first_snippet_and_its_output_are_within_twenty_lines():
    opening = "\n".join(README.splitlines()[:20])
    assert re.search(r"```python\n.*?```\n```text\n.*?```", opening, re.DOTALL)


@pytest.mark.parametrize("name", ["main", "tests"])
def test_command_is_one_line_in_a_bash_block_after_its_marker(name):
    found = re.findall(rf"<!-- command: {name} -->\n```bash\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1
    assert len(found[0].strip().splitlines()) == 1


def test_links_to_files_are_valid():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    for target in re.findall(r"\]\((?!http|#)([^)]+)\)", prose):
        assert (ROOT / target.split("#")[0]).exists(), target
