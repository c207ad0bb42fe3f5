"""Mappings made of one mapping: `Shared` and `Teams`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping
from pz_policymap.mappings.checked import checked_assign
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group
from pz_policymap.mappings.nested import nested
from pz_policymap.randomness.draw import Draw


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
        nested("mapping", self.mapping)

    @property
    @override
    def num_policies(self) -> int | None:
        return self.mapping.num_policies

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return (self.mapping,)

    @property
    @override
    def reads_agents(self) -> bool:
        return self.mapping.reads_agents

    @property
    @override
    def needs_all_seats(self) -> bool:
        return False  # the first seat is always there

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        self.mapping.check(agents[:1])

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, mapping=self.mapping.bind(ask))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        first = checked_assign(self.mapping, draw.select([0]))
        return np.broadcast_to(first, (draw.num_envs, draw.num_seats))


@dataclass(frozen=True)
class Teams(PolicyMapping):
    """One policy a team: `mapping` draws for teams as it would for seats, in the order of their first agents.

    Args:
        mapping: The rule that draws, with the teams for agents.
        team_of: Which team an agent is in: a dict from agent to team, a function of an agent that returns its team, or
            "prefix": the agent's name without the number at its end, "red" for "red_3". An agent that comes late plays
            as its team does, and a team that comes late is drawn for as a late agent is.

    Raises:
        TypeError: If an argument is none of these; if agents without names are to be told by their prefix.
        ValueError: If an agent of the environment has no team, or if `mapping` cannot serve the teams.

    Example:
        >>> from pz_policymap import Draw, Teams, Uniform
        >>> draw = Draw.at(0, ["red_0", "blue_0", "red_1", "blue_1"], env_index=[0, 1], episode=[0, 0])
        >>> Teams(Uniform(4)).assign(draw).tolist()
        [[2, 1, 2, 1], [3, 3, 3, 3]]
    """

    mapping: PolicyMapping
    team_of: GroupOf = "prefix"

    def __post_init__(self) -> None:
        nested("mapping", self.mapping)
        object.__setattr__(self, "team_of", group_rule("team_of", self.team_of))

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
        self.mapping.check(tuple(seats_by_group("team_of", self.team_of, agents)))

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, mapping=self.mapping.bind(ask))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        teams = seats_by_group("team_of", self.team_of, draw.agents)
        team = np.empty(draw.num_seats, np.intp)
        for number, seats in enumerate(teams.values()):
            team[seats] = number
        return checked_assign(self.mapping, draw.child("teams", agents=tuple(teams)))[:, team]
