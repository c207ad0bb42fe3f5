"""What `check` has found, in words."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        level: "ok", "note" (it works, but know this), or "problem".
        text: What was found.
        advice: What to do about it.
        fault: Whose a problem is: "environment" or "pz_policymap".
    """

    level: str
    text: str
    advice: str = ""
    fault: str = ""
