"""A matchup that is forced through reset's options, for the wrappers of Gymnasium environments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.wrappers.pettingzoo_tags import FORCED

AS_DRAWN = -1  # in a forced matchup: this seat plays the policy that was drawn


def forced_matchup(forced: Any, assigner: PolicyAssigner, agents: Sequence[Hashable]) -> NDArray[np.int32]:
    """Returns the policy that each seat is made to play, `AS_DRAWN` for a seat that is not, shape `(num_envs, seats)`.

    Args:
        forced: A policy for all seats, a dict from agent to policy, or an integer array of one policy a row, where
            -1 is as drawn.
        assigner: Knows the environments and the population.
        agents: Who has a row in each of the environments.

    Raises:
        TypeError: If it is none of these.
        ValueError: If a policy is not of the population, or if the array has not one entry a row.
        KeyError: If an agent is not there.

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
        for agent, policy in forced.items():
            if agent not in agents:
                raise KeyError(f"{name} names {agent!r}, which is not among {list(agents)}")
            matchup[:, agents.index(agent)] = integer(f"{name}[{agent!r}]", policy, 0, highest)
        return matchup
    if np.ndim(forced) == 0:
        matchup[:] = integer(name, forced, 0, highest)
        return matchup
    rows = np.asarray(forced)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a policy, a dict from agent to policy or integers, got {forced!r}")
    if rows.shape != (matchup.size,):
        raise ValueError(f"{name} must hold one policy a row, {matchup.size} in all, got shape {rows.shape}")
    if rows.min() < AS_DRAWN or rows.max() > highest:
        raise ValueError(f"{name} must hold policies from 0 to {highest}, or -1, got {forced!r}")
    matchup[:] = rows.reshape(matchup.shape)
    return matchup


def taken(options: dict[str, Any] | None, *keys: str) -> tuple[list[Any], dict[str, Any] | None]:
    """Returns what reset's options hold under these keys, and a copy for the environment without a forced matchup.

    The environment may take what it understands out of its copy; the caller's dict stays as it is.

    Example:
        >>> taken({"policy_ids": 3, "reset_mask": "m"}, "policy_ids", "reset_mask")
        ([3, 'm'], {'reset_mask': 'm'})
    """
    if options is None:
        return [None for _ in keys], None
    rest = {key: value for key, value in options.items() if key != FORCED}
    return [options.get(key) for key in keys], rest if rest or FORCED not in options else None
