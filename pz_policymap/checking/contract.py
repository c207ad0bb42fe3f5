"""PettingZoo's own contract tests, on the bare and on the wrapped environment."""

from __future__ import annotations

import io
import re
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding

Make = Callable[[], Any]
_PACKAGE = Path(__file__).parents[1]
_CYCLES = 100  # of the seed test, which steps two environments


def contract_findings(make: Make, wrapped: Make, api: str, cycles: int) -> list[Finding]:
    """Returns the results of PettingZoo's tests of the API and of seeding.

    Args:
        make: Makes the bare environment.
        wrapped: Makes the wrapped environment.
        api: "aec" or "parallel".
        cycles: Number of cycles of the API test.
    """
    from pettingzoo import test

    prefix = "" if api == "aec" else "parallel_"
    of_api, of_seed = (getattr(test, prefix + name) for name in ("api_test", "seed_test"))
    findings = []
    for name, what, run in (
        (of_api.__name__, "the API", lambda build: of_api(build(), num_cycles=cycles)),
        (of_seed.__name__, "seeding", lambda build: of_seed(build, num_cycles=min(cycles, _CYCLES))),
    ):
        (bare, said), (tagged, also_said) = _outcome(run, make), _outcome(run, wrapped)
        findings.append(_judged(f"PettingZoo's {name}", what, bare, tagged))
        if said:
            text = f"PettingZoo's {name} warns, without pz_policymap too: {'; '.join(said)}"
            findings.append(Finding(NOTE, text))
        more = [warning for warning in also_said if warning not in said]
        if more and not bare:
            findings.append(Finding(NOTE, f"PettingZoo's {name} warns only when wrapped: {'; '.join(more)}"))
    return findings


def _judged(name: str, what: str, bare: str, tagged: str) -> Finding:
    """Returns the finding for two failure texts, each empty if the test passed."""
    if bare:
        text = f"{name} fails, without pz_policymap too: {bare}"
        advice = "fix the environment first; most trainers rely on this"
        if what == "seeding":
            advice = "assignments are reproducible all the same, but episodes are not; " + advice
        return Finding(PROBLEM, text, advice, "environment")
    if tagged:
        text = f"{name} passes bare and fails wrapped: {tagged}"
        return Finding(PROBLEM, text, "please report it, with the environment", "pz_policymap")
    return Finding(OK, f"{name} passes, bare and wrapped")


def _outcome(run: Callable[[Make], object], build: Make) -> tuple[str, list[str]]:
    """Returns the failure text of a test, "" if it passed, and its warnings."""
    failure = ""
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            run(build)
        except Exception as error:  # noqa: BLE001  # any error is a finding
            failure = failure_text(error)
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    return failure, list(dict.fromkeys(_one_line(text) for text in texts))


def failure_text(error: BaseException) -> str:
    """Returns the message of an error, or the line that raised it if the message is empty, and its place."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = _one_line(str(error)) or (frame.line or "")
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{message} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"


def failure(doing: str, error: BaseException, advice: str = "fix the environment first") -> Finding:
    """Returns the finding for an error: the environment's fault, unless a line of this package raised it.

    Args:
        doing: What failed, such as "it raises an error in random play".
        error: The error.
        advice: What to do if the environment raised it.
    """
    place = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    if _PACKAGE in place.parents:
        text = f"{doing}, in the lines of pz_policymap: {failure_text(error)}"
        return Finding(PROBLEM, text, "compare what the environment returns with PettingZoo's API", "unknown")
    return Finding(PROBLEM, f"{doing}: {failure_text(error)}", advice, "environment")


def _one_line(text: str) -> str:
    """Returns a text on one line, without the colours of Gymnasium's warnings."""
    return " ".join(re.sub(r"\x1b\[\d+m", "", text).removeprefix("WARN: ").split())
