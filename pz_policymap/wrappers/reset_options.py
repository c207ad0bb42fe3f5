"""Reads a forced matchup from reset's options, for all wrappers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.batching.nested_arrays import on_host

FORCED = "policy_ids"  # the key in reset's options that forces a matchup
AS_DRAWN = -1  # in a forced matchup: this seat keeps the policy that was drawn


def taken(options: dict[str, Any] | None, *keys: str) -> tuple[list[Any], dict[str, Any] | None]:
    """Returns the values of these keys in reset's options, and a copy for the environment without a forced matchup.

    The environment may remove entries from its copy; the caller's dict does not change.

    Example:
        >>> taken({"policy_ids": 3, "reset_mask": "m"}, "policy_ids", "reset_mask")
        ([3, 'm'], {'reset_mask': 'm'})
    """
    if options is None:
        return [None for _ in keys], None
    rest = {key: value for key, value in options.items() if key != FORCED}
    return [options.get(key) for key in keys], rest if rest or FORCED not in options else None


def forced_matchup(forced: Any, assigner: PolicyAssigner, agents: Sequence[Hashable]) -> NDArray[np.int32]:
    """Returns the forced policy of each seat, `AS_DRAWN` where none is forced, shape `(num_envs, num_seats)`.

    Args:
        forced: A policy for all seats, a dict from agent to policy, or one integer per seat of each environment, -1
            as drawn, shape `(num_envs * num_seats,)` or `(num_envs, num_seats)`.
        assigner: Of the environments.
        agents: The agents of one environment in seat order.

    Raises:
        TypeError: If `forced` has another type.
        ValueError: If a policy is not in the population, or if the number of integers is wrong.
        KeyError: If an agent is not among `agents`.

    Example:
        >>> from pz_policymap import PolicyAssigner
        >>> agents = ["red", "blue"]
        >>> forced_matchup({"blue": 3}, PolicyAssigner(4, agents, num_envs=2), agents).tolist()
        [[-1, 3], [-1, 3]]
    """
    size = assigner.mapping.num_policies
    highest = MAX_INDEX if size is None else size - 1
    name = f"options[{FORCED!r}]"
    matchup = np.full((assigner.num_envs, len(agents)), AS_DRAWN, np.int32)
    if isinstance(forced, Mapping):
        check_agents(forced, agents)
        for agent, policy in forced.items():
            matchup[:, agents.index(agent)] = integer(f"{name}[{agent!r}]", policy, 0, highest)
        return matchup
    if not getattr(forced, "shape", np.shape(forced)):
        matchup[:] = integer(name, forced, 0, highest)
        return matchup
    seats = on_host(forced)
    if seats.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a policy, a dict from agent to policy or integers, got {forced!r}")
    if seats.shape not in ((matchup.size,), matchup.shape):
        raise ValueError(f"{name} must hold one policy per seat, {matchup.size} in all, got shape {seats.shape}")
    if seats.min() < AS_DRAWN or seats.max() > highest:
        raise ValueError(f"{name} must hold policies from 0 to {highest}, or -1, got {forced!r}")
    matchup[:] = seats.reshape(matchup.shape)
    return matchup


def check_agents(forced: Mapping[Any, Any], agents: Sequence[Hashable]) -> None:
    """Raises a KeyError if a forced matchup names an agent that is not there."""
    for agent in forced:
        if agent not in agents:
            raise KeyError(f"options[{FORCED!r}] names {agent!r}, which is not among {list(agents)}")
