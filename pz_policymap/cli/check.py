"""`pz-policymap check`: whether an environment works with this package."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import pz_policymap as pm
from pz_policymap.checking.contract import contract_findings
from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.checking.habits import habit_findings
from pz_policymap.checking.replay import replay_findings
from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.options import add_command, add_environment, add_number, add_traceback
from pz_policymap.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, show, show_json

_TEXT = """
Checks whether an environment works with pz_policymap: runs PettingZoo's contract tests bare and wrapped, plays some
episodes, and reports each problem with its cause and what to do.

Exit code 0: no problems, with or without notes. 1: there are problems.

examples:
  pz-policymap check mpe2.simple_tag_v3
  pz-policymap check my.module:make_env --set max_cycles=50
  pz-policymap check classic/chess-v6 --json
"""
_COLOURS = {OK: GREEN, NOTE: YELLOW, PROBLEM: RED}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "check", "does an environment work with this?", _TEXT)
    add_environment(parser)
    add_number(parser, "--steps", 1000, 10, "steps to check")
    parser.add_argument("--info-key", default="policy_id", metavar="KEY", help="the key of the tag (policy_id)")
    parser.add_argument("--json", action="store_true", help="write JSON on stdout")
    add_traceback(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    name = EnvName(options.env, options.api, settings_from(options.set))
    reports = {
        api: _findings(EnvName(name.name, api, name.settings), api, options.info_key, options.steps)
        for api in name.apis()
    }
    if options.json:
        show_json(
            {
                "env": options.env,
                "works": not _problems(reports) and not any(f.unfinished for found in reports.values() for f in found),
                "findings": [{"api": api, **vars(finding)} for api, found in reports.items() for finding in found],
            }
        )
    else:
        for api, found in reports.items():
            _show(f"{options.env}, {'AEC' if api == 'aec' else 'Parallel'}", found)
    return 1 if _problems(reports) else 0


def _findings(make: EnvName, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns the findings for an environment in one of its APIs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the contract tests report them once
        return _found(make, api, info_key, steps)


def _found(make: EnvName, api: str, info_key: str, steps: int) -> list[Finding]:
    make.close(make())
    habits = habit_findings(make, api, info_key, steps)
    free, taken = info_key, {key for finding in habits for key in finding.taken}
    while free in taken:
        free += "_"  # the other checks use a free key

    def wrapped() -> Any:
        return pm.wrap(make(), 3, resample_every=1, info_key=free)

    return [
        *contract_findings(make, wrapped, api, max(10, steps // 4)),
        *habits,
        *replay_findings(make, wrapped, api, free, steps // 3),
    ]


def _problems(reports: dict[str, list[Finding]]) -> int:
    return sum(finding.level == PROBLEM for found in reports.values() for finding in found)


def _show(title: str, found: list[Finding]) -> None:
    show((title, BOLD))
    for finding in found:
        text = finding.text
        if finding.fault in ("environment", "pz_policymap"):
            text += f" [fault of {'the environment' if finding.fault == 'environment' else finding.fault}]"
        show("  ", (finding.level.ljust(7), _COLOURS[finding.level]), f"  {text}")
        if finding.advice:
            show((f"           {finding.advice}", DIM))
    problems = sum(finding.level == PROBLEM for finding in found)
    unfinished = any(finding.unfinished for finding in found)
    notes = sum(finding.level == NOTE for finding in found)
    verdict = "does not work" if problems else "no episode ended, so it is not known to work" if unfinished else "works"
    show(f"  {verdict}: {problems} problem{'s' * (problems != 1)}, {notes} note{'s' * (notes != 1)}")
