"""Reads which rows a step ended from its done flags: NumPy, torch or JAX arrays, with at most one transfer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.batching.nested_arrays import array_for, held_by_host, library_of, on_host

Rows = NDArray[np.intp]
NO_ROWS: Rows = np.empty(0, np.intp)
ALL = "__all__"  # the key of flags for whole environments; RLlib's add it to any dict; it is never an agent


def done_rows(*ends: Any) -> Rows:
    """Returns the rows that ended, ascending.

    Args:
        *ends: Done flags, such as terminations and truncations, each of shape `(num_rows,)`. NaN counts as done.

    Example:
        >>> done_rows(np.array([False, True, False]), np.array([False, False, True])).tolist()
        [1, 2]
    """
    return _ended([ends])[0]


@dataclass(frozen=True)
class AgentFlags:
    """Reads done flags by agent or by environment, and returns the rows that ended.

    Row `i * num_agents + j` is seat j of environment i. An agent without flags has not ended.

    Attributes:
        env: The simulator. If it has a mask `reset_buf` of the environments that it has just reset, as those of Isaac
            Lab have, this mask is read and not the flags.
        agents: The agents in seat order.
        num_envs: Number of environments.

    Example:
        >>> read = AgentFlags(None, ("red", "blue"), num_envs=2)
        >>> read({"red": np.array([False, True]), "blue": np.array([False, False])}).tolist()
        [2]
        >>> read(np.array([False, True])).tolist()  # one flag per environment
        [2, 3]
    """

    env: Any
    agents: tuple[Hashable, ...]
    num_envs: int

    def __call__(self, *ends: Any) -> Rows:
        """Returns the rows that ended, ascending.

        Args:
            *ends: Each a dict from agent to flags, or flags for all agents. Shapes `(num_envs,)`.

        Raises:
            ValueError: If flags have another shape.
        """
        ends = self._read(ends)
        seats = len(self.agents)
        if not any(isinstance(flags, Mapping) for flags in ends):
            envs = _ended([ends], self.num_envs)[0]
            return (envs[:, np.newaxis] * seats + np.arange(seats)).reshape(-1) if len(envs) else NO_ROWS
        missing = np.zeros(self.num_envs, np.bool_)
        columns = [
            [flags.get(agent, missing) if isinstance(flags, Mapping) else flags for flags in ends]
            for agent in self.agents
        ]
        rows = [envs * seats + seat for seat, envs in enumerate(_ended(columns, self.num_envs)) if len(envs)]
        return np.sort(np.concatenate(rows)) if rows else NO_ROWS

    def is_whole(self, ends: Sequence[Any]) -> bool:
        """Returns whether the flags are for whole environments, which no agent survives."""
        return not any(isinstance(flags, Mapping) for flags in self._read(ends))

    def _read(self, ends: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the flags that say which agents, or else which environments, have ended."""
        reset = getattr(self.env, "reset_buf", None)
        if reset is not None:
            return (reset,)
        return tuple(flags.get(ALL, flags) if isinstance(flags, Mapping) else flags for flags in ends)


def _ended(columns: Sequence[Sequence[Any]], num_rows: int | None = None) -> list[Rows]:
    """Returns where any flag of each column is set. Flags on another device are joined there, and moved at once."""
    every = [flags for column in columns for flags in column]
    if all(isinstance(flags, np.ndarray) or held_by_host(flags) for flags in every):
        hosted = [[on_host(flags) for flags in column] for column in columns]
    else:
        library = library_of(*every)
        like = next(flags for flags in every if not held_by_host(flags))
        joined = [reduce(library.logical_or, [array_for(like, flags) for flags in column]) for column in columns]
        hosted = [[row] for row in on_host(library.stack(joined))]
    return [_where(column, num_rows) for column in hosted]


def _where(column: Sequence[NDArray[Any]], num_rows: int | None) -> Rows:
    for flags in column:
        if flags.shape != (len(flags) if num_rows is None else num_rows,):
            raise ValueError(f"done flags must have shape ({num_rows},), got {flags.shape}")
    # Unlike `any`, `argmax` (the first maximum) costs the same at 64 rows and at 16,384.
    if not any(flags[flags.argmax()] for flags in column):
        return NO_ROWS
    rows: Rows = np.logical_or.reduce(column).nonzero()[0]
    return rows
