"""Mappings made of mappings: `Shared`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from pz_policymap.draw import Draw
from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping


@dataclass(frozen=True)
class Shared(PolicyMapping):
    """One policy for all seats of an environment: the one that `mapping` draws for the first seat.

    Args:
        mapping: The rule that picks the policy.

    Raises:
        TypeError: If `mapping` is no `PolicyMapping`.

    Example:
        >>> from pz_policymap import Draw, Shared, Weighted
        >>> draw = Draw.at(0, ["a", "b"], env_index=[0, 1, 2], episode=[0] * 3)
        >>> Shared(Weighted([0.5, 0.5])).assign(draw).tolist()
        [[0, 0], [0, 0], [1, 1]]
    """

    mapping: PolicyMapping

    def __post_init__(self) -> None:
        if not isinstance(self.mapping, PolicyMapping):
            raise TypeError(f"mapping must be a PolicyMapping, got {self.mapping!r}")

    @property
    @override
    def num_policies(self) -> int | None:
        return self.mapping.num_policies

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return (self.mapping,)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        self.mapping.check(agents[:1])

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, mapping=self.mapping.bind(ask))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        first = self.mapping.assign(draw.select([0]))
        return np.broadcast_to(first, (draw.num_envs, draw.num_seats))
