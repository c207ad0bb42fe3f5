"""`Shared`: one policy for all seats of an environment."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pz_policymap.mappings.base import (
    PolicyIds,
    PolicyMapping,
    as_child,
    checked_assign,
    from_children,
    joint_population,
)
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Shared(PolicyMapping):
    """One policy for all seats of an environment: the one that `mapping` assigns to the first seat.

    Args:
        mapping: The mapping that picks the policy.

    Raises:
        TypeError: If `mapping` is not a `PolicyMapping`.

    Example:
        >>> from pz_policymap import Draw, Shared, Weighted
        >>> draw = Draw.at(0, ["a", "b"], env_index=[0, 1, 2], episode=[0] * 3)
        >>> Shared(Weighted([0.5, 0.5])).assign(draw).tolist()
        [[0, 0], [0, 0], [1, 1]]
    """

    mapping: PolicyMapping

    num_policies = from_children(joint_population)
    reads_agents = from_children(any)
    needs_all_seats = False  # the first seat is always there

    def __post_init__(self) -> None:
        as_child("mapping", self.mapping)

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return (self.mapping,)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        self.mapping.check(agents[:1])

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        first = checked_assign(self.mapping, draw.select([0]))
        return np.broadcast_to(first, (draw.num_envs, draw.num_seats))
