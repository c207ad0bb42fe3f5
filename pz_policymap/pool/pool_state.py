"""`checked_state`: reads and checks the saved state of a `SnapshotPool`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pz_policymap.arguments import integer
from pz_policymap.pool.members import Member, new_member
from pz_policymap.pool.trigger import LastSnapshot

STATE_VERSION = 1


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


def check_weights(
    weights: Sequence[Sequence[float]], policy_ids: Sequence[int] | None, learners: int, size: int
) -> None:
    """Raises a ValueError unless each learner has probabilities, for ascending policy ids of a pool of this size."""
    rows = np.array(weights, np.float64)
    ids = np.arange(rows.shape[-1] if rows.ndim else 0) if policy_ids is None else np.array(policy_ids, np.int64)
    if (
        rows.shape != (learners, len(ids))
        or not (np.diff(ids, prepend=-1, append=size) > 0).all()
        or not (rows >= 0.0).all()
        or not np.allclose(rows.sum(axis=1), 1.0)
    ):
        raise ValueError(f"weights must be probabilities of each learner's opponents, got {weights} for {policy_ids}")


class PoolState(NamedTuple):
    """The saved state of a pool; attributes as in `SnapshotPool.state_dict`."""

    capacity: int | None
    members: list[Member]
    retired: set[int]
    left_out: set[int]
    released: set[int]
    slots: dict[int, int]
    last: dict[str, LastSnapshot]
    weights: list[list[float]]
    weighted_ids: list[int] | None


def checked_state(state: Any, learners: Collection[str], members: Sequence[Member], capacity: int | None) -> PoolState:
    """Returns the saved state of a pool with these learners, members and capacity.

    Raises:
        ValueError: If it is damaged, of another version or of another pool.
    """
    if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION:
        raise ValueError(f"state must be of version {STATE_VERSION}, got {state!r}")
    try:
        new = PoolState(
            capacity=state["capacity"],
            members=saved_members(state["members"], learners),
            retired=set(state["retired"]),
            left_out=set(state["left_out"]),
            released=set(state["released"]),
            slots=dict(state["slots"]),
            last={name: LastSnapshot(**values) for name, values in dict(state["last"]).items()},
            weights=state["weights"],
            weighted_ids=state["weighted_ids"],
        )
        check_retired(new.members, new.retired, new.left_out, new.released)
        check_slots(new.slots, new.capacity, new.members, new.released)
        for name, snapshot in new.last.items():
            integer(f"the last step of {name!r}", snapshot.step, 0)
        check_weights(new.weights, new.weighted_ids, len(new.last), len(new.members))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"state does not fit: {error!r}") from error
    theirs, mine = ([member for member in some if member.kind != "snapshot"] for some in (new.members, members))
    if theirs != mine or new.capacity != capacity or new.last.keys() != set(learners):
        names = [member.name for member in theirs], list(new.last), [member.name for member in mine]
        raise ValueError(f"state does not fit: {names}, capacity {new.capacity} instead of capacity {capacity}")
    return new
