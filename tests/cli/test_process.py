"""The command line as a process: output streams, exit codes, and Ctrl-C."""

import io
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pz_policymap as pm
from pz_policymap.cli import main

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "pz_policymap"]


def run(*arguments, **settings):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=ROOT, **settings)


def test_readme_command_writes_plain_text():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = text.split("<!-- command: main -->")[1].split("```")[1]
    words = shlex.split(line.split(" -m pz_policymap ")[1])
    shown = run(*words)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "policy  name" in shown.stdout
    assert shown.stdout.isascii()


@pytest.mark.parametrize("command", [[], ["preview"], ["run"], ["tournament"], ["merge"], ["check"]])
def test_help_has_examples_at_every_level(command, capsys):
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "examples:\n  pz-policymap" in text
    if not command:
        assert main([]) == 0
        assert capsys.readouterr().out == text


def test_main_unknown_command_exits_with_2_and_version_with_0(capsys):
    assert main(["nonsense"]) == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pz-policymap {pm.__version__}\n"


def test_python_m_runs_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pz-policymap", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("pz_policymap", run_name="__main__")
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"pz-policymap {pm.__version__}\n"


def test_python_m_in_a_worker_process_runs_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pz-policymap", "--version"])
    runpy.run_module("pz_policymap.__main__", run_name="__mp_main__")  # what multiprocessing's spawned ones do
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_closed_stdout_is_not_an_error(form, monkeypatch, capsys):
    reader, pipe = os.pipe()
    os.close(reader)
    with open(pipe, "w", encoding="utf-8") as out:  # noqa: PTH123  # it has no path
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["preview", "Uniform(4)", *form]) == 0
    assert capsys.readouterr().err == ""


def test_stdout_closed_midway_is_not_an_error():
    # Twice what a pipe of 64 KiB holds: the rest is written after the pipe is closed.
    arguments = ["preview", "Uniform(4)", "--envs", "100", "--rows", "100000", "--resample-every", "1"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no process groups to interrupt")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_tournament_resumes_with_equal_results(tmp_path, capsys, monkeypatch, jobs):
    path = tmp_path / "games.jsonl"
    arguments = ["tournament", "pettingzoo.classic.tictactoe_v3", "--policies", "random", "tests.cli_bots:slow"]
    arguments += ["--cycles", "30", "--seed", "3"]
    kept = ["--results", str(path), "--jobs", jobs]
    process = subprocess.Popen(
        [*COMMAND, *arguments, *kept],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CLI_BOTS_DELAY": "0.1"},
        start_new_session=True,  # a Ctrl-C reaches the whole group
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # jobs in the background ignore it
    )
    try:
        while not path.exists() or path.read_bytes().count(b"\n") < 2:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate()  # to the end of the pipes, which all its processes hold
    finally:
        process.kill()
    assert (process.returncode, output) == (130, "")
    done = len(pm.read_tournament(path).episodes)
    assert 0 < done < 60
    told = re.search(r"(\d+) of 60 games were played; the same command resumes", errors)
    assert done - int(jobs) <= int(told[1]) <= done  # the interrupt may come between saving and counting

    monkeypatch.delenv("CLI_BOTS_DELAY", raising=False)
    assert main([*arguments, *kept, "--json"]) == 0
    resumed = capsys.readouterr()
    assert resumed.err.startswith(f"resuming after {done} of 60 games")
    assert main([*arguments, "--json"]) == 0
    assert json.loads(resumed.out) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", ["run", "tournament"])
def test_policy_that_calls_sys_exit_fails_the_command(command, capsys):
    names = ["random", "tests.cli_bots:exits"]
    assert main([command, "pettingzoo.classic.tictactoe_v3", "--policies", *names]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "tests.cli_bots:exits" in line or "policy 1" in line
    assert "raised sys.exit(0)" in line


@pytest.mark.parametrize("more", [["run"], ["tournament", "--jobs", "1"], ["tournament", "--jobs", "2"]])
def test_json_holds_nothing_that_policies_print(more):
    command, *options = more
    names = ["--policies", "random", "tests.cli_bots:prints"]
    shown = run(command, "pettingzoo.classic.tictactoe_v3", *names, *options, "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["policies"]
    assert "a message of the policy" in shown.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["check", "tests.cli_envs:Prints", "--steps", "20"],
        ["preview", "tests.cli_bots:printing_rule"],
        ["run", "tests.cli_envs:Prints", "--policies", "2", "--episodes", "2"],
        ["tournament", "tests.cli_envs:Prints", "--policies", "2", "--cycles", "1"],
    ],
)
def test_json_holds_nothing_that_environments_mappings_and_libraries_print(command, capfd, monkeypatch):
    with open(1, "w", encoding="utf-8", closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main([*command, "--json"]) == 0
    shown = capfd.readouterr()
    assert json.loads(shown.out)
    assert "from Python" in shown.err
    assert "from C" in shown.err


def test_results_are_kept_where_stdout_was_closed_beforehand(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    path = tmp_path / "payoff.npz"
    assert main(["run", "tests.cli_envs:clean", "--policies", "2", "--episodes", "2", "--payoff", str(path)]) == 0
    assert len(pm.load(path)) == 2
    assert capsys.readouterr().err == ""


def test_output_that_is_not_a_file_and_cannot_be_written_is_one_line(monkeypatch, capsys):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("disk full")

    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["preview", "4", "--json"]) == 1
    assert capsys.readouterr().err == "pz-policymap: the output cannot be written: disk full\n"


def test_module_that_calls_sys_exit_fails_the_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check", "leaves:make"]) == 1
    assert "sys.exit(0) was called by the code that it runs" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_full_disk_on_stdout_is_one_line(form):
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(
            [*COMMAND, "preview", "4", *form], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT
        )
    assert shown.returncode == 1
    assert shown.stderr.startswith("pz-policymap: the output cannot be written: ")
    assert shown.stderr.count("\n") == 1
