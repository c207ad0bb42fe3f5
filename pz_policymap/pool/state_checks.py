"""Checks of the saved state of a `SnapshotPool` before it is loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pz_policymap.arguments import integer
from pz_policymap.pool.members import Member, new_member
from pz_policymap.pool.trigger import LastSnapshot


def saved_members(rows: Iterable[Any], learners: Collection[str]) -> list[Member]:
    """Returns the members of a state, given as name, kind, learner and step.

    Raises:
        TypeError, ValueError: If a row is damaged, or a name is used twice.
    """
    members: list[Member] = []
    for name, kind, learner, step in rows:
        if (learner in learners) != (kind == "snapshot"):
            raise ValueError(f"member {name!r} of kind {kind!r} cannot belong to the learner {learner!r}")
        members.append(new_member(members, name, kind, learner, integer(f"the step of {name!r}", step, 0)))
    return members


def check_slots(slots: Mapping[int, int], capacity: int | None, members: Sequence[Member], released: set[int]) -> None:
    """Raises a ValueError unless each snapshot that is not released has a slot of its own below the capacity."""
    held = [m.policy_id for m in members if m.kind == "snapshot" and m.policy_id not in released]
    for policy_id, slot in slots.items():
        integer(f"the slot of {policy_id!r}", slot, 0, None if capacity is None else capacity - 1)
    if list(slots) != held or len(set(slots.values())) < len(slots):
        raise ValueError(f"slots must be distinct, one for each of the policies {held}, got {dict(slots)}")


def check_retired(members: Sequence[Member], retired: set[int], left_out: set[int], released: set[int]) -> None:
    """Raises a ValueError unless released ids were left out of a mapping, and those are of retired snapshots."""
    snapshots = {member.policy_id for member in members if member.kind == "snapshot"}
    if not released <= left_out <= retired <= snapshots:
        raise ValueError(
            f"released {released} must be among left_out {left_out}, these among retired {retired}, and these among "
            f"the snapshots {snapshots}"
        )


def check_records(
    slots: Mapping[int, int],
    capacity: int | None,
    members: Sequence[Member],
    gone: tuple[set[int], set[int], set[int]],
    last: Mapping[str, LastSnapshot],
) -> None:
    """Raises an error if slots, the retired, left out and released ids, or the last steps are impossible."""
    check_retired(members, *gone)
    check_slots(slots, capacity, members, gone[-1])
    for name, snapshot in last.items():
        integer(f"the last step of {name!r}", snapshot.step, 0)
