"""`Roles`: one sub-population per role."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
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
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Roles(PolicyMapping):
    """One mapping per role, such as predator and prey, which assigns policies to the seats of that role.

    Roles draw independently: adding a role or removing one does not change the others.

    Args:
        mappings: A dict from role to mapping. Roles are strings or integers: they select the random
            bits.
        role_of: The role of each agent: a dict from agent to role, a function `agent -> role`, or "prefix": the name of
            the agent without the number at its end, "adversary" for "adversary_0".

    Raises:
        TypeError: If an argument is none of these, or if "prefix" meets agents that are not strings.
        ValueError: If `mappings` is empty; if an agent of the environment has no role, or a role without a mapping;
            if "prefix" meets names without a number at their end; if a mapping cannot serve the agents of its role.

    Example:
        >>> from pz_policymap import Draw, Roles, Uniform
        >>> draw = Draw.at(0, ["adversary_0", "agent_0", "agent_1"], env_index=[0, 1], episode=[0, 0])
        >>> Roles({"agent": Uniform(2), "adversary": Uniform([4, 5, 6])}).assign(draw).tolist()
        [[6, 0, 1], [6, 0, 0]]
    """

    mappings: Mapping[str | int, PolicyMapping]
    role_of: GroupOf = "prefix"

    num_policies = from_children(joint_population)

    def __post_init__(self) -> None:
        if not isinstance(self.mappings, Mapping):
            raise TypeError(f"mappings must be a dict from role to PolicyMapping, got {self.mappings!r}")
        if not self.mappings:
            raise ValueError("mappings must hold at least one role, got none")
        for role in self.mappings:
            if not isinstance(role, str) and not hasattr(role, "__index__"):
                raise TypeError(f"mappings must have strings or integers for roles, got {role!r}")
        mappings = {role: as_child(f"mappings[{role!r}]", mapping) for role, mapping in self.mappings.items()}
        object.__setattr__(self, "mappings", mappings)
        object.__setattr__(self, "role_of", group_rule("role_of", self.role_of))

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return tuple(self.mappings.values())

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        for role, seats in self._seats(agents).items():
            self.mappings[role].check(tuple(agents[seat] for seat in seats))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        policy_ids = np.empty((draw.num_envs, draw.num_seats), np.int32)
        for role, seats in self._seats(draw.agents).items():
            child = draw.child("role", role, agents=[draw.agents[seat] for seat in seats])
            policy_ids[:, seats] = checked_assign(self.mappings[role], child)
        return policy_ids

    def _seats(self, agents: tuple[Hashable, ...]) -> dict[str | int, list[int]]:
        """Returns the seats of every role that has agents, by the keys of `mappings`."""
        seats = seats_by_group("role_of", self.role_of, agents, known=self.mappings)
        for role, held in seats.items():
            if role not in self.mappings:
                raise ValueError(
                    f"mappings must hold every role, got none for {role!r}, the role of agent {agents[held[0]]!r}, "
                    f"in {list(self.mappings)}"
                )
        return {role: seats[role] for role in self.mappings if role in seats}
