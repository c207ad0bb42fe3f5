"""Seating: the mapping that puts the learners of a pool and their opponents into seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pz_policymap.mappings.base import PolicyIds, PolicyMapping, checked_assign, from_children, joint_population
from pz_policymap.mappings.fixed import Fixed
from pz_policymap.mappings.uniform import Uniform
from pz_policymap.mappings.weighted import Weighted
from pz_policymap.randomness.draw import Draw

Seats = Callable[[PolicyMapping, PolicyMapping], PolicyMapping]


@dataclass(frozen=True)
class OneOf(PolicyMapping):
    """One of several mappings, drawn uniformly for each environment.

    Example:
        >>> mapping = OneOf((Fixed(0), Fixed(1)))
        >>> mapping.assign(Draw.at(0, ["a", "b"], env_index=[0, 1, 2], episode=[0] * 3)).tolist()
        [[0, 0], [0, 0], [1, 1]]
    """

    mappings: tuple[PolicyMapping, ...]

    num_policies = from_children(joint_population)
    reads_agents = from_children(any)

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return self.mappings

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        picks = (draw.uniform()[:, 0] * len(self.mappings)).astype(int)
        policy_ids = np.empty((draw.num_envs, draw.num_seats), np.int32)
        for pick in np.unique(picks).tolist():
            rows = np.flatnonzero(picks == pick)
            policy_ids[rows] = checked_assign(self.mappings[pick], draw.only(rows).child("one of", pick))
        return policy_ids


def seated(
    seats: Seats | Mapping[str, Seats],
    learners: Sequence[str],
    weights: Sequence[Sequence[float]],
    policy_ids: Sequence[int] | None,
) -> PolicyMapping:
    """Returns the mapping of learners and their opponents, made of numbers alone.

    Args:
        seats: As in `SnapshotPool`.
        learners: The names of the learners; their policy ids are 0, 1, ...
        weights: The weights of the opponents of each learner.
        policy_ids: The policy ids that the weights are for; None: 0, 1, ...
    """
    policies = None if policy_ids is None else list(policy_ids)
    if isinstance(seats, Mapping):
        each = [
            seats[name](Fixed(own), Weighted(row, policies))
            for own, (name, row) in enumerate(zip(learners, weights, strict=True))
        ]
        return each[0] if len(each) == 1 else OneOf(tuple(each))
    if len(weights) == 1:
        return seats(Fixed(0), Weighted(weights[0], policies))
    return seats(Uniform(len(weights)), Weighted(weights, policies))
