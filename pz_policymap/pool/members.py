"""`Member`: one policy of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["learner", "fixed", "snapshot"]
GROUPS = ("self", "snapshots", "all snapshots", "fixed")


@dataclass(frozen=True)
class Member:
    """A policy of the pool.

    Attributes:
        name: Unique in the pool.
        policy_id: Its policy id, which is never reused.
        kind: "learner" (its parameters change), "fixed" (a scripted or frozen policy), or "snapshot".
        learner: For a snapshot, the name of the learner it was taken from.
        step: For a snapshot, the learner's step at which it was taken.
    """

    name: str
    policy_id: int
    kind: Kind
    learner: str | None = None
    step: int = 0


def new_member(members: Sequence[Member], name: str, kind: Kind, learner: str | None = None, step: int = 0) -> Member:
    """Returns a member with the next policy id.

    Raises:
        TypeError: If the name is not a string.
        ValueError: If it is taken, is the name of a group, or holds a colon.
    """
    if not isinstance(name, str):
        raise TypeError(f"names must be strings, got {name!r}")
    if name in GROUPS or ":" in name or any(member.name == name for member in members):
        raise ValueError(f"names must be unique, without a colon and not the name of a group, got {name!r}")
    return Member(name, len(members), kind, learner, step)
