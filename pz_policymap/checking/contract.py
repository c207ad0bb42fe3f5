"""PettingZoo's own contract tests, of an environment bare and wrapped."""

from __future__ import annotations

import io
import re
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding

Make = Callable[[], Any]
_CYCLES = 100  # of the seed tests, which play two environments


def contract_findings(make: Make, wrapped: Make, api: str, cycles: int) -> list[Finding]:
    """Returns what PettingZoo's tests of the API and of seeding say.

    Args:
        make: Makes the environment.
        wrapped: Makes it, wrapped.
        api: "aec" or "parallel".
        cycles: How long the tests of the API play.
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
            findings.append(Finding(NOTE, f"PettingZoo's {name} warns of the wrapped one alone: {'; '.join(more)}"))
    return findings


def _judged(name: str, what: str, bare: str, tagged: str) -> Finding:
    """Returns whose fault a failure is; both are texts of failures, empty where it passed."""
    if bare:
        text = f"{name} fails, without pz_policymap too: {bare}"
        advice = "fix the environment first; most of what plays it relies on this"
        if what == "seeding":
            advice = "assignments follow from their seed all the same, but episodes cannot be played again; " + advice
        return Finding(PROBLEM, text, advice, "environment")
    if tagged:
        text = f"{name} passes bare and fails wrapped: {tagged}"
        return Finding(PROBLEM, text, "please report it, with the environment", "pz_policymap")
    return Finding(OK, f"{name} passes, bare and wrapped")


def _outcome(run: Callable[[Make], object], build: Make) -> tuple[str, list[str]]:
    """Returns how a test failed, "" where it passed, and what it warned of."""
    failure = ""
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            run(build)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is what we came for
            failure = failure_text(error)
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    return failure, list(dict.fromkeys(_short(text) for text in texts))


def failure_text(error: BaseException) -> str:
    """Returns what an error says, or the line that raised it where it says nothing, and where that is."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = _short(str(error)) or (frame.line or "")
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{message} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"


def _short(text: str) -> str:
    """Returns a text in one line, not too long, and without the colours that Gymnasium gives its warnings."""
    line = " ".join(re.sub(r"\x1b\[\d+m", "", text).removeprefix("WARN: ").split())
    return line if len(line) <= 160 else line[:157] + "..."
