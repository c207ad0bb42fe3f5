"""The team or role of each agent, given by a dict, by a function, or by the name of the agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Literal

GroupOf = Mapping[Any, Hashable] | Callable[[Any], Hashable] | Literal["prefix"]

_NUMBER = re.compile(r"[\W_]*\d+\Z")  # at the end of red_0, red0, red-0 and "red 0"


def group_rule(name: str, rule: GroupOf) -> GroupOf:
    """Returns `rule`, a dict as a copy, or raises an error if it is not a rule.

    Args:
        name: The name of the argument, for the error: `team_of`, `role_of`.
        rule: A dict from agent to group, a function of an agent, or "prefix".

    Raises:
        TypeError: If it is none of these.
        ValueError: If it is another string.
    """
    if isinstance(rule, Mapping):
        return dict(rule)
    if rule == "prefix" or callable(rule):
        return rule
    kind = ValueError if isinstance(rule, str) else TypeError
    raise kind(f"{name} must be a dict from agent to group, a function of an agent, or 'prefix', got {rule!r}")


def seats_by_group(
    name: str, rule: GroupOf, agents: tuple[Any, ...], known: Collection[Hashable] = ()
) -> dict[Hashable, list[int]]:
    """Returns the seats of every group, groups in the order of their first seat.

    An agent at the end therefore joins the end of its group, and a new group comes last.

    Args:
        name: The name of the argument, for errors.
        rule: What `group_rule` returned.
        agents: The agents in seat order.
        known: Groups that may be the whole name of an agent.

    Raises:
        TypeError: If a group cannot be a key, or if "prefix" meets an agent that is not a string.
        ValueError: If an agent has no group; if "prefix" meets several agents, and names without a number at their end.

    Example:
        >>> seats_by_group("role_of", "prefix", ("adversary_0", "agent_0", "agent_1"))
        {'adversary': [0], 'agent': [1, 2]}
    """
    seats: dict[Hashable, list[int]] = {}
    for seat, agent in enumerate(agents):
        seats.setdefault(_group(name, rule, agent), []).append(seat)
    if rule == "prefix" and len(agents) > 1:  # a group of one may be meant: one adversary_0 against one agent_0
        unnumbered = [agent for agent in agents if agent in seats and agent not in known]
        if unnumbered:
            raise ValueError(
                f"{name}='prefix' needs names with a number at their end, such as red_0 and red_1, got {unnumbered}; "
                f"pass a dict or a function instead"
            )
    return seats


def group_of_each_seat(name: str, rule: GroupOf, agents: tuple[Any, ...]) -> list[Hashable]:
    """Returns the group of every seat; arguments and errors as in `seats_by_group`.

    Example:
        >>> group_of_each_seat("team_of", "prefix", ("red_0", "blue_0", "red_1"))
        ['red', 'blue', 'red']
    """
    by_seat = {seat: group for group, seats in seats_by_group(name, rule, agents).items() for seat in seats}
    return [by_seat[seat] for seat in range(len(agents))]


def _group(name: str, rule: GroupOf, agent: Any) -> Hashable:
    """Returns the group of one agent, or raises."""
    if isinstance(rule, str):
        return _prefix(name, agent)
    if isinstance(rule, Mapping):
        group = rule.get(agent)
        if group is None:
            raise ValueError(f"{name} must name a group for every agent, got none for {agent!r} in {rule}")
    else:
        try:
            group = rule(agent)
        except Exception as error:
            raise ValueError(
                f"{name} must be a function of an agent, but it failed for {agent!r}: {error!r}"
            ) from error
        if group is None:
            raise ValueError(f"{name} must return a group for every agent, got None for {agent!r}")
    try:
        hash(group)
    except TypeError as error:
        raise TypeError(f"{name} must give groups that can be keys, got {group!r} for agent {agent!r}") from error
    return group


def _prefix(name: str, agent: Any) -> str:
    """Returns the name of an agent without the number at its end: "adversary" for "adversary_0"."""
    if not isinstance(agent, str):
        raise TypeError(
            f"{name}='prefix' needs agents that are strings, got {agent!r}; pass a dict or a function instead"
        )
    return _NUMBER.sub("", agent) or agent
