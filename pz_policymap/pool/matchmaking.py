"""Matchmaking: pure functions from the members of a pool and their results to the opponents of a learner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pz_policymap.pool.learner_settings import RULES, Floats, PoolLearner, Rule
from pz_policymap.pool.members import GROUPS, Member
from pz_policymap.results.payoff import Payoff


class Group(NamedTuple):
    """A group of opponents that a learner meets.

    Attributes:
        share: Its share, > 0.
        rule: The rule for its members.
        ids: The policy ids of its members, oldest first, at least one.
    """

    share: float
    rule: Rule
    ids: list[int]


class Opponents(NamedTuple):
    """The opponents of a learner.

    Attributes:
        groups: Its groups with a positive share and at least one member.
        ids: The policy ids of their members, except its own: it has no games against itself.
    """

    groups: list[Group]
    ids: list[int]


def opponents_of(settings: PoolLearner, members: Sequence[Member], active: Sequence[int]) -> Opponents:
    """Returns the opponents of a learner.

    Args:
        settings: The learner.
        members: All members by policy id.
        active: The policy ids of active snapshots, oldest first.

    Raises:
        KeyError: If a group is unknown.
    """
    every = [
        Group(*settings.share_and_rule(name), group_ids(name, settings.name, members, active))
        for name in settings.opponents
    ]
    groups = [group for group in every if group.share > 0.0 and group.ids]
    own = set(group_ids("self", settings.name, members, active))
    return Opponents(groups, sorted({policy_id for group in groups for policy_id in group.ids} - own))


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


def opponent_weights(groups: Sequence[Group], own: int, num_policies: int, payoff: Payoff) -> Floats:
    """Returns the probability with which a learner meets each policy id; they sum to 1.

    Args:
        groups: The groups that it meets.
        own: Its policy id.
        num_policies: The size of the pool.
        payoff: The ledger.

    Raises:
        ValueError: If a rule returns bad weights.
    """
    weights = np.zeros(num_policies)
    for share, rule, ids in groups:
        if callable(rule):
            raw = np.asarray(rule(payoff.win_rates_of(own)[ids]), np.float64)
            if raw.shape != (len(ids),) or not np.isfinite(raw).all() or (raw < 0.0).any():
                raise ValueError(f"rule must return {len(ids)} finite weights >= 0, got {raw} from {rule!r}")
        else:
            raw = np.asarray(RULES[rule](payoff, own, ids))
        weights[ids] += share * (raw / raw.sum() if raw.any() else 1.0 / len(ids))
    if not groups:
        weights[own] = 1.0
    return weights / math.fsum(weights)


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
