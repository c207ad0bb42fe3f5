"""`Teams`: one policy per team."""

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
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Teams(PolicyMapping):
    """One policy per team: `mapping` assigns policies to teams as to seats, in the order of their first agents.

    An agent that joins mid-episode gets the policy of its team. A team that joins mid-episode is drawn as a late agent.

    Args:
        mapping: The mapping that assigns a policy to each team.
        team_of: The team of each agent: a dict from agent to team, a function `agent -> team`, or "prefix": the name of
            the agent without the number at its end, "red" for "red_3".

    Raises:
        TypeError: If an argument is none of these, or if "prefix" meets agents that are not strings.
        ValueError: If an agent of the environment has no team, if "prefix" meets names without a number at their end,
            or if `mapping` cannot serve the teams.

    Example:
        >>> from pz_policymap import Draw, Teams, Uniform
        >>> draw = Draw.at(0, ["red_0", "blue_0", "red_1", "blue_1"], env_index=[0, 1], episode=[0, 0])
        >>> Teams(Uniform(4)).assign(draw).tolist()
        [[2, 1, 2, 1], [3, 3, 3, 3]]
    """

    mapping: PolicyMapping
    team_of: GroupOf = "prefix"

    num_policies = from_children(joint_population)

    def __post_init__(self) -> None:
        as_child("mapping", self.mapping)
        object.__setattr__(self, "team_of", group_rule("team_of", self.team_of))

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return (self.mapping,)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        self.mapping.check(tuple(seats_by_group("team_of", self.team_of, agents)))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        teams = seats_by_group("team_of", self.team_of, draw.agents)
        team = np.empty(draw.num_seats, np.intp)
        for number, seats in enumerate(teams.values()):
            team[seats] = number
        return checked_assign(self.mapping, draw.child("teams", agents=tuple(teams)))[:, team]
