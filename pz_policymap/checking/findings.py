"""`Finding`: one result of `check`."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Args:
        level: "ok", "note" (it works, with a limitation), or "problem".
        text: The result.
        advice: What to do about it.
        fault: The cause of a problem: "environment", "pz_policymap" or "unknown".
        unfinished: Whether the check ended before it had seen the end of an episode.
        taken: The keys of an info that already uses the key of the tag.
    """

    level: str
    text: str
    advice: str = ""
    fault: str = ""
    unfinished: bool = False
    taken: tuple[str, ...] = ()
