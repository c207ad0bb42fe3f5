"""`check`: each fault is found in the environment that has it, and real environments pass."""

import json

import pettingzoo
import pytest

import pz_policymap as pm
from pz_policymap.checking.contract import contract_findings
from pz_policymap.checking.replay import replay_findings
from pz_policymap.cli import main
from tests.cli_envs import BreaksContract, Clean, Leaks, Raises, Warns


def check(capsys, *arguments):
    code = main(["check", *arguments, "--steps", "60", "--json"])
    report = json.loads(capsys.readouterr().out)
    unfinished = any(finding["unfinished"] for finding in report["findings"])
    assert report["works"] == (code == 0 and not unfinished)
    return code, report["findings"]


CONTRACT = "PettingZoo's "


@pytest.mark.parametrize(
    ("name", "level", "text", "advice"),
    [
        (
            "clash",
            "problem",
            "already use the key 'policy_id': that of 'a' is {'policy_id': 7}",
            "wrap with another key",
        ),
        ("Outside", "problem", "the observation of 'a' is not in its space Discrete(1000): -1", "fix the space"),
        ("OutsideArray", "problem", "an array of dtype float64, shape (2,), values from 5 to 7", "fix the space"),
        ("OutsideEmpty", "problem", "an array of dtype float64, shape (0,)", "fix the space"),
        ("ResetsNothing", "problem", "in random play, in the lines of pz_policymap: TypeError", "compare what"),
        ("Infinite", "problem", "a reward is infinite or NaN", "record_results refuses"),
        ("Leaks", "problem", "another episode in a used environment", "reset must restore"),
        ("Raises", "problem", "raises an error in random play: RuntimeError: out of fuel (cli_envs.py:", "fix"),
        ("Unclosable", "problem", "raises an error when it is closed: BrokenPipeError: the viewer is gone (", "fix"),
        ("BreaksContract", "problem", "parallel_api_test fails, without pz_policymap too: action_space should", "fix"),
        (
            "Vectors",
            "note",
            "must be one number per agent, got [1.0, 0.0] for agent 'a'",
            "recorders and learners refuse",
        ),
        ("PaysTwice", "note", "'b' earned 1 by its rewards and 2 by last() in an episode", "learns from other returns"),
        ("pinned", "note", "it is wrapped already, with seed 3 and env_index 0", "all copies of it get the same"),
        ("generated", "note", "it has no possible_agents", "RoundRobin and Focal(rotate=True) need all seats"),
        ("endless", "note", "had not ended when the check stopped", "whole episodes only"),
        ("Global", "note", "draws from the global generators", "use self.np_random"),
        ("GlobalNumPy", "note", "draws from the global generators", "use self.np_random"),
    ],
)
def test_check_fault_is_reported_with_advice(capsys, name, level, text, advice):
    code, findings = check(capsys, f"tests.cli_envs:{name}")
    found = [finding for finding in findings if text in finding["text"]]
    assert len(found) == 1, findings
    assert found[0]["level"] == level
    assert advice in found[0]["advice"]
    fault = "unknown" if name == "ResetsNothing" else "environment"
    assert found[0]["fault"] == (fault if level == "problem" else "")
    if level == "problem":
        assert code == 1
    others = [finding for finding in findings if finding["level"] == "problem" and finding not in found]
    # PettingZoo's own tests fail on a step that raises, on missing infos, and on seeds that are not followed.
    assert all(CONTRACT in finding["text"] or name in ("Raises", "ResetsNothing") for finding in others), others


def test_check_clean_environment_has_no_findings(capsys):
    code, findings = check(capsys, "tests.cli_envs:clean")
    assert code == 0
    assert {finding["level"] for finding in findings if CONTRACT not in finding["text"]} == {"ok"}


@pytest.mark.parametrize("name", ["Habits", "unpinned"])
def test_check_allowed_habits_are_not_findings(capsys, name):
    findings = check(capsys, f"tests.cli_envs:{name}")[1]
    own = [finding for finding in findings if CONTRACT not in finding["text"]]
    assert [finding["level"] for finding in own] == ["ok", "ok"], own


@pytest.mark.parametrize(
    ("name", "taken", "free"),
    [
        ("clash", ["policy_id"], "policy_id_"),
        ("clash_twice", ["policy_id", "policy_id_"], "policy_id__"),
        ("Names", [], "policy_id"),
    ],
)
def test_check_with_a_taken_key_uses_a_free_one(capsys, monkeypatch, name, taken, free):
    keys, wrap = set(), pm.wrap
    monkeypatch.setattr(
        pm, "wrap", lambda *given, **settings: keys.add(settings["info_key"]) or wrap(*given, **settings)
    )
    findings = check(capsys, f"tests.cli_envs:{name}")[1]
    assert [key for finding in findings for key in finding["taken"]] == taken
    assert keys == {free}


def test_check_free_info_key_is_not_a_clash(capsys):
    code, findings = check(capsys, "tests.cli_envs:clash", "--info-key", "mine")
    assert code == 0, findings


@pytest.mark.parametrize(
    ("name", "apis"),
    [
        ("mpe2.simple_tag_v3", {"parallel", "aec"}),
        ("pettingzoo.classic.tictactoe_v3", {"aec"}),
        ("pettingzoo.classic.connect_four_v3", {"aec"}),
        ("pettingzoo.classic.leduc_holdem_v4", {"aec"}),
        ("pettingzoo.classic.rps_v2", {"parallel", "aec"}),
    ],
)
def test_check_real_environments_work(capsys, name, apis):
    code, findings = check(capsys, name)
    assert code == 0, findings
    assert {finding["api"] for finding in findings} == apis
    assert sum("passes, bare and wrapped" in finding["text"] for finding in findings) == 2 * len(apis)
    assert sum("episodes are the same wrapped and bare" in finding["text"] for finding in findings) == len(apis)


def test_findings_failure_only_when_wrapped_blames_the_package():
    contract = contract_findings(Clean, BreaksContract, "parallel", cycles=10)
    assert (contract[0].level, contract[0].fault) == ("problem", "pz_policymap")
    assert "parallel_api_test passes bare and fails wrapped" in contract[0].text
    assert "please report it" in contract[0].advice
    (replay,) = replay_findings(Clean, lambda: Clean(live=(("a", "b"), ())), "parallel", "policy_id", 10)
    assert (replay.level, replay.fault) == ("problem", "pz_policymap")
    assert "wrapped, the same seed gives another episode" in replay.text
    (replay,) = replay_findings(Clean, Raises, "parallel", "policy_id", 10)
    assert (replay.level, replay.fault) == ("problem", "pz_policymap")
    assert "an episode plays bare and fails wrapped: RuntimeError: out of fuel" in replay.text


def test_contract_warning_only_when_wrapped_is_reported():
    findings = contract_findings(Clean, Warns, "parallel", cycles=10)
    told = [finding.text for finding in findings if finding.level == "note"]
    assert told == [
        f"PettingZoo's parallel_{name}_test warns only when wrapped: the board is too large to see"
        for name in ("api", "seed")
    ]


def test_replay_used_environment_differs_from_new_one():
    (found,) = replay_findings(Leaks, Leaks, "parallel", "policy_id", 10)
    assert "than in a new environment" in found.text


def test_check_report_names_fault_and_verdict(capsys):
    assert main(["check", "tests.cli_envs:clash", "--steps", "30"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tests.cli_envs:clash, Parallel"
    (problem,) = [line for line in lines if line.startswith("  problem")]
    assert problem.endswith("[fault of the environment]")
    assert lines[-1].startswith("  does not work: 1 problem, ")
    assert main(["check", "tests.cli_envs:clean", "--steps", "30"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("  works: 0 problems, ")


def test_check_endless_environment_is_not_said_to_work(capsys):
    assert main(["check", "tests.cli_envs:endless", "--steps", "30"]) == 0
    assert "no episode ended, so it is not known to work: 0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("tests.nix", 2, "there is no module"),
        ("gymnasium:Space", 2, "is a Space, expected"),
        ("tests.cli_bots:Needs", 1, "cannot be made"),
        ("classic/nix-v3", 2, "PettingZoo"),
    ],
)
def test_check_non_environment_exits_with_an_error(name, code, message, capsys):
    assert main(["check", name]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo 1.25 has no registry")
def test_check_registered_environment_covers_both_apis(capsys):
    code, findings = check(capsys, "classic/rps-v2")
    assert code == 0
    assert {finding["api"] for finding in findings} == {"parallel", "aec"}
