"""Which team or role an agent belongs to: told by a dict, by a function, or by the agent's name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

GroupOf = Mapping[Any, Hashable] | Callable[[Any], Hashable] | Literal["prefix"]


def group_rule(name: str, rule: GroupOf) -> GroupOf:
    """Returns `rule` where it is one, dicts copied.

    Args:
        name: What the argument is called, for the error: `team_of`, `role_of`.
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


def seats_by_group(name: str, rule: GroupOf, agents: tuple[Any, ...]) -> dict[Hashable, list[int]]:
    """Returns the seats of every group, groups in the order of their first seat.

    An agent at the end therefore joins the end of its group, and a new group comes last.

    Raises:
        TypeError: If the group of an agent cannot be a key, or if an agent without a name is asked for its prefix.
        ValueError: If an agent has no group.

    Example:
        >>> seats_by_group("role_of", "prefix", ("adversary_0", "agent_0", "agent_1"))
        {'adversary': [0], 'agent': [1, 2]}
    """
    seats: dict[Hashable, list[int]] = {}
    for seat, agent in enumerate(agents):
        seats.setdefault(_group(name, rule, agent), []).append(seat)
    return seats


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
    """Returns the agent's name without the number at its end: "adversary" for "adversary_0"."""
    if not isinstance(agent, str):
        raise TypeError(
            f"{name}='prefix' needs agents that are strings, got {agent!r}; give a dict or a function instead"
        )
    prefix, _, number = agent.rpartition("_")
    return prefix if prefix and number.isdecimal() else agent
