"""Matchmaking: pure functions from the members of a pool and their win rates to the opponents of a learner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pz_policymap.pool.learner_settings import RULES, Floats, PoolLearner
from pz_policymap.pool.members import GROUPS, Member


def group_ids(group: str, learner: str, members: Sequence[Member], active: Sequence[int]) -> list[int]:
    """Returns the policy ids of a group as a learner sees it, oldest first.

    Args:
        group: As in `PoolLearner.opponents`.
        learner: The name of the learner.
        members: All members by policy id; learners and fixed policies come first.
        active: The policy ids of active snapshots, oldest first.

    Raises:
        KeyError: If the group is unknown.
    """
    if group == "all snapshots":
        return list(active)
    if group == "snapshots":
        return [policy_id for policy_id in active if members[policy_id].learner == learner]
    permanent = {}
    for member in members:
        if member.kind == "snapshot":
            break
        permanent[member.name] = member
    name, _, rest = group.partition(":")
    if group == "self":
        return [permanent[learner].policy_id]
    if group == "fixed":
        return [member.policy_id for member in permanent.values() if member.kind == "fixed"]
    if rest == "snapshots" and name in permanent:
        return [policy_id for policy_id in active if members[policy_id].learner == name]
    if group in permanent:
        return [permanent[group].policy_id]
    raise KeyError(f"opponents must name groups or members, got {group!r}; groups are {GROUPS}, members {[*permanent]}")


def opponent_weights(
    settings: PoolLearner, members: Sequence[Member], active: Sequence[int], win_rates: Floats
) -> Floats:
    """Returns the probability with which a learner meets each policy id; they sum to 1.

    Args:
        settings: The learner.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first.
        win_rates: As in `Payoff`, shape `(num_policies, num_policies)`.

    Raises:
        KeyError: If a group is unknown.
        ValueError: If a rule returns bad weights.
    """
    (own,) = group_ids("self", settings.name, members, active)
    weights = np.zeros(len(members))
    for group in settings.opponents:
        share, rule = settings.share_and_rule(group)
        ids = group_ids(group, settings.name, members, active)
        if ids and share:
            raw = rule(win_rates[own, ids]) if callable(rule) else RULES[rule](win_rates, own, ids)
            raw = np.asarray(raw, np.float64)
            if raw.shape != (len(ids),) or not np.isfinite(raw).all() or (raw < 0.0).any():
                raise ValueError(f"rule must return {len(ids)} finite weights >= 0 for {group!r}, got {raw}")
            weights[ids] += share * (raw / raw.sum() if raw.any() else 1.0 / len(ids))
    if not weights.any():
        weights[own] = 1.0
    return weights / math.fsum(weights)


def opponent_ids(settings: PoolLearner, members: Sequence[Member], active: Sequence[int]) -> list[int]:
    """Returns the policy ids that a learner may meet, except itself: it has no games against itself."""
    groups = [group for group in settings.opponents if settings.share_and_rule(group)[0] > 0.0]
    ids = {policy_id for group in groups for policy_id in group_ids(group, settings.name, members, active)}
    return sorted(ids - set(group_ids("self", settings.name, members, active)))


def snapshot_to_retire(evict: str, members: Sequence[Member], active: Sequence[int], shares: Floats) -> int:
    """Returns the active snapshot that is to retire.

    Args:
        evict: "oldest", "spread" or "weakest", as in `SnapshotPool`.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first, at least one.
        shares: The sum over learners of the probability with which each policy id is met.
    """
    if evict == "weakest":
        return active[int(np.argmin(shares[list(active)]))]
    gaps = _relative_gaps(members, active) if evict == "spread" else {}
    return min(gaps, key=gaps.__getitem__) if gaps else active[0]


def _relative_gaps(members: Sequence[Member], active: Sequence[int]) -> dict[int, float]:
    """Returns the steps between the neighbors of each snapshot, as a share of all steps between those of its learner.

    Learners count steps of their own, so only snapshots of the same learner are neighbors; the first and the last one
    of each learner are left out.
    """
    gaps = {}
    for learner in dict.fromkeys(members[policy_id].learner for policy_id in active):
        own = [members[policy_id] for policy_id in active if members[policy_id].learner == learner]
        span = max(own[-1].step - own[0].step, 1)
        for before, member, after in zip(own, own[1:], own[2:], strict=False):
            gaps[member.policy_id] = (after.step - before.step) / span
    return gaps
