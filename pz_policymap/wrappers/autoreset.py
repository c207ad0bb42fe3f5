"""When episodes of a vector environment end and begin: its autoreset mode, and what its rows say.

A row is one seat of one environment; rows come in groups, the seats of one environment after those of the one before.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from gymnasium import vector
from numpy.typing import ArrayLike, NDArray

NOBODY: NDArray[np.intp] = np.empty(0, np.intp)


class Autoreset(Enum):
    """Gymnasium's `AutoresetMode`, which its version 1.0 does not have."""

    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


def declared_mode(env: vector.VectorEnv[Any, Any, Any], given: Any) -> Autoreset | None:
    """Returns how a vector environment resets itself, or None where neither it nor the caller says so.

    Args:
        env: Its `metadata["autoreset_mode"]` is what it declares.
        given: A mode or its value, such as "SameStep"; None: what the environment declares. A caller may disable
            what an environment declares, and otherwise must not contradict it.

    Raises:
        ValueError: If a mode is none of Gymnasium's three, or contradicts the other.
    """
    declared = _mode("env.metadata['autoreset_mode']", (env.metadata or {}).get("autoreset_mode"))
    asked = _mode("autoreset_mode", given)
    if asked not in (None, declared, Autoreset.DISABLED) and declared is not None:
        raise ValueError(f"autoreset_mode must be {declared.value!r}, as the environment declares, got {given!r}")
    return asked or declared


def undeclared_mode(env: vector.VectorEnv[Any, Any, Any], infos: Any) -> Autoreset:
    """Returns the mode of an environment that says nothing, from the infos of its first reset, or raises.

    Vector environments whose infos are a list are SuperSuit's, which reset in the same step. Gymnasium 1.0 knew the
    next step alone.
    """
    if isinstance(infos, list):
        return Autoreset.SAME_STEP
    if not hasattr(vector, "AutoresetMode"):
        return Autoreset.NEXT_STEP
    raise ValueError(
        f"autoreset_mode must be given, for {env} does not declare it in its metadata: "
        f"one of {[mode.value for mode in Autoreset]}"
    )


def _mode(name: str, value: Any) -> Autoreset | None:
    if value is None:
        return None
    try:
        return Autoreset(getattr(value, "value", value))
    except ValueError:
        allowed = [mode.value for mode in Autoreset]
        raise ValueError(
            f"{name} must be a gymnasium.vector.AutoresetMode or one of {allowed}, got {value!r}"
        ) from None


class Ends:
    """Which environments of a batch have ended: an episode is over when every row has ended once since it began.

    Args:
        num_envs: How many environments there are.
        num_seats: How many rows each of them has.

    Example:
        >>> ends = Ends(num_envs=2, num_seats=2)
        >>> ends.after([True, False, False, False], [False] * 4).tolist()  # one of its two rows
        []
        >>> ends.after([False, False, False, False], [False, True, False, True]).tolist()
        [0]
    """

    def __init__(self, num_envs: int, num_seats: int) -> None:
        self._num_seats = num_seats
        self._rows = np.zeros(num_envs * num_seats, np.bool_)  # which rows have ended since the episode began

    def after(self, terminations: ArrayLike, truncations: ArrayLike) -> NDArray[np.intp]:
        """Returns the environments whose episode is over after a step, in ascending order."""
        terminated, truncated = np.asarray(terminations), np.asarray(truncations)
        # The first maximum: unlike `any`, this costs the same at 64 rows and at 16,384.
        if not (terminated[terminated.argmax()] or truncated[truncated.argmax()]):
            return NOBODY
        rows: NDArray[np.intp] = np.logical_or(terminated, truncated).nonzero()[0]
        self._rows[rows] = True
        if self._num_seats == 1:
            return rows
        envs = np.unique(rows // self._num_seats)
        over: NDArray[np.intp] = envs[self._by_env(self._rows)[envs].all(axis=1)]
        return over

    def begin(self, envs: NDArray[Any] | None) -> None:
        """Begins the next episode of these environments (None: of all)."""
        if envs is None:
            self._rows[:] = False
        else:
            self._by_env(self._rows)[envs] = False

    def rows_of(self, envs: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns which rows are those of these environments, shape `(num_rows,)`."""
        rows = np.zeros(len(self._rows), np.bool_)
        self._by_env(rows)[envs] = True
        return rows

    def over(self) -> NDArray[np.bool_]:
        """Returns which environments have ended and not begun anew, shape `(num_envs,)`."""
        over: NDArray[np.bool_] = np.logical_and.reduce(self._rows.reshape(-1, self._num_seats), axis=1)
        return over

    def _by_env(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns a view of the rows by environment; one axis is faster where it is enough."""
        return rows if self._num_seats == 1 else rows.reshape(-1, self._num_seats)
