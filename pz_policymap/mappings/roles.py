"""`Roles`: every role from its own sub-population."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping
from pz_policymap.mappings.checked import checked_assign
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group
from pz_policymap.mappings.nested import joint_population, nested
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Roles(PolicyMapping):
    """Every role from its own sub-population, as in predator and prey: a mapping a role draws for the role's seats.

    Args:
        mappings: A dict from role to the rule that draws for the agents of that role. Roles are strings or integers,
            for their names tell their random bits apart: roles draw independently, and what one draws does not depend
            on which others there are.
        role_of: Which role an agent has: a dict from agent to role, a function of an agent that returns its role, or
            "prefix": the agent's name without the number at its end, "adversary" for "adversary_0".

    Raises:
        TypeError: If an argument is none of these; if agents without names are to be told by their prefix.
        ValueError: If there are no mappings; if an agent of the environment has no role, or one that has no mapping; if
            a mapping cannot serve the agents of its role.

    Example:
        >>> from pz_policymap import Draw, Roles, Uniform
        >>> draw = Draw.at(0, ["adversary_0", "agent_0", "agent_1"], env_index=[0, 1], episode=[0, 0])
        >>> Roles({"agent": Uniform(2), "adversary": Uniform([4, 5, 6])}).assign(draw).tolist()
        [[6, 0, 1], [6, 0, 0]]
    """

    mappings: Mapping[str | int, PolicyMapping]
    role_of: GroupOf = "prefix"

    def __post_init__(self) -> None:
        if not isinstance(self.mappings, Mapping):
            raise TypeError(f"mappings must be a dict from role to PolicyMapping, got {self.mappings!r}")
        if not self.mappings:
            raise ValueError("mappings must hold at least one role, got none")
        for role in self.mappings:
            if not isinstance(role, str) and not hasattr(role, "__index__"):
                raise TypeError(f"mappings must have strings or integers for roles, got {role!r}")
        mappings = {role: nested(f"mappings[{role!r}]", mapping) for role, mapping in self.mappings.items()}
        object.__setattr__(self, "mappings", mappings)
        object.__setattr__(self, "role_of", group_rule("role_of", self.role_of))

    @property
    @override
    def num_policies(self) -> int | None:
        return joint_population(self.children)

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return tuple(self.mappings.values())

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        for role, seats in self._seats(agents).items():
            self.mappings[role].check(tuple(agents[seat] for seat in seats))

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, mappings={role: mapping.bind(ask) for role, mapping in self.mappings.items()})

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        policy_ids = np.empty((draw.num_envs, draw.num_seats), np.int32)
        for role, seats in self._seats(draw.agents).items():
            child = draw.child("role", role, agents=[draw.agents[seat] for seat in seats])
            policy_ids[:, seats] = checked_assign(self.mappings[role], child)
        return policy_ids

    def _seats(self, agents: tuple[Hashable, ...]) -> dict[str | int, list[int]]:
        """Returns the seats of every role that is played, by the keys of `mappings`."""
        seats = seats_by_group("role_of", self.role_of, agents)
        for role, played in seats.items():
            if role not in self.mappings:
                raise ValueError(
                    f"mappings must hold every role, got none for {role!r}, the role of agent {agents[played[0]]!r}, "
                    f"in {list(self.mappings)}"
                )
        return {role: seats[role] for role in self.mappings if role in seats}
