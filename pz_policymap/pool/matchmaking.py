"""Matchmaking: pure functions from the members of a pool and their win rates to the opponents of a learner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pz_policymap.pool.learner_settings import RULES, Member, PoolLearner, Vector

GROUPS = ("self", "snapshots", "all snapshots", "fixed")


def group_ids(group: str, learner: str, members: Sequence[Member], active: Sequence[int]) -> list[int]:
    """Returns the policy ids of a group as a learner sees it, oldest first.

    Args:
        group: As in `PoolLearner.opponents`.
        learner: The name of the learner.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first.

    Raises:
        KeyError: If the group is unknown.
    """
    by_name = {member.name: member.policy_id for member in members if member.kind != "snapshot"}
    name, colon, rest = group.partition(":")
    if group == "self":
        return [by_name[learner]]
    if group == "all snapshots":
        return list(active)
    if group == "fixed":
        return [member.policy_id for member in members if member.kind == "fixed"]
    if group == "snapshots" or (colon and rest == "snapshots" and name in by_name):
        owner = name if colon else learner
        return [policy_id for policy_id in active if members[policy_id].learner == owner]
    if group in by_name:
        return [by_name[group]]
    raise KeyError(f"opponents must name groups or members, got {group!r}; groups are {GROUPS}, members {[*by_name]}")


def opponent_weights(
    settings: PoolLearner, members: Sequence[Member], active: Sequence[int], win_rates: Vector
) -> Vector:
    """Returns the probability with which a learner meets each policy id; they sum to 1.

    Args:
        settings: The learner.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first.
        win_rates: The learner's win rate against each policy id, shape `(num_policies,)`.

    Raises:
        KeyError: If a group is unknown.
        ValueError: If a rule returns bad weights.
    """
    weights = np.zeros(len(members))
    for group in settings.opponents:
        share, rule = settings.share_and_rule(group)
        ids = group_ids(group, settings.name, members, active)
        if ids and share:
            raw = np.asarray((rule if callable(rule) else RULES[rule])(win_rates[ids]), np.float64)
            if raw.shape != (len(ids),) or not np.isfinite(raw).all() or (raw < 0.0).any():
                raise ValueError(f"rule must return {len(ids)} finite weights >= 0 for {group!r}, got {raw}")
            weights[ids] += share * (raw / raw.sum() if raw.any() else 1.0 / len(ids))
    if not weights.any():
        weights[group_ids("self", settings.name, members, active)] = 1.0
    return weights / math.fsum(weights)


def opponent_ids(settings: PoolLearner, members: Sequence[Member], active: Sequence[int]) -> list[int]:
    """Returns the policy ids that a learner may meet, except itself: it has no games against itself."""
    groups = [group for group in settings.opponents if settings.share_and_rule(group)[0] > 0.0]
    ids = {policy_id for group in groups for policy_id in group_ids(group, settings.name, members, active)}
    return sorted(ids - set(group_ids("self", settings.name, members, active)))


def snapshot_to_retire(evict: str, members: Sequence[Member], active: Sequence[int], shares: Vector) -> int:
    """Returns the active snapshot that is to retire.

    Args:
        evict: "oldest", "spread" or "weakest", as in `SnapshotPool`.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first, at least one.
        shares: The sum over learners of the probability with which each policy id is met.
    """
    if evict == "weakest":
        return active[int(np.argmin(shares[list(active)]))]
    if evict == "spread" and len(active) > 2:
        steps = [members[policy_id].step for policy_id in active]
        gaps = [after - before for before, after in zip(steps[:-2], steps[2:], strict=True)]
        return active[1 + int(np.argmin(gaps))]
    return active[0]
