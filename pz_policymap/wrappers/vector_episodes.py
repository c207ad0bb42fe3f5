"""When the episodes of a vector environment begin and end; used for tagging and for recording.

A row is one seat of one environment. Rows come in groups: the seats of environment 0, then those of environment 1, ...
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from pz_policymap.batching.nested_arrays import is_tensor, on_host
from pz_policymap.wrappers.autoreset import Autoreset, declared_mode, undeclared_mode

MASK = "reset_mask"  # the key in reset's options that selects the rows to reset

Envs = NDArray[np.intp]  # indices of environments, from 0, ascending
NO_ENVS: Envs = np.empty(0, np.intp)


class StepChange(NamedTuple):
    """What one step changed, in this order.

    Attributes:
        reset: In NEXT_STEP, the environments that the step reset, because the step before had ended their episode.
        rows: The rows that ended.
        over: The environments whose episode ended.
        restarted: In SAME_STEP, those of them that were reset at once: all.
    """

    reset: Envs
    rows: NDArray[np.intp]
    over: Envs
    restarted: Envs


NO_CHANGE = StepChange(NO_ENVS, NO_ENVS, NO_ENVS, NO_ENVS)


class VectorEpisodes:
    """Tells which environments begin and end an episode at each step, in any autoreset mode.

    The episode of an environment ends when each of its rows has ended at least once since the episode began.

    Args:
        num_envs: Number of environments, >= 1.
        num_seats: Number of rows per environment, >= 1.
        autoreset: The mode, or None until the first reset reveals it.
        by_hand: Whether only the caller knows when an episode ends: rows end and respawn while it goes on.

    Attributes:
        num_envs: As above.
        autoreset: As above.
        by_hand: As above.
        ended: The rows that have ended since their episode began, shape `(num_rows,)`.

    Example:
        >>> episodes = VectorEpisodes(num_envs=2, num_seats=2, autoreset=Autoreset.NEXT_STEP)
        >>> nothing = [False, False, False, False]
        >>> episodes.after_step([True, False, False, False], nothing).over.tolist()  # one of its two rows
        []
        >>> episodes.after_step(nothing, [False, True, False, True]).over.tolist()
        [0]
        >>> episodes.after_step(nothing, nothing).reset.tolist()
        [0]
    """

    def __init__(self, num_envs: int, num_seats: int, autoreset: Autoreset | None, by_hand: bool = False) -> None:
        self.num_envs = num_envs
        self.autoreset = autoreset
        self.by_hand = by_hand
        self.ended = np.zeros(num_envs * num_seats, np.bool_)
        self._num_seats = num_seats
        self._due = NO_ENVS  # in NEXT_STEP: the environments that the next step resets

    @classmethod
    def of(cls, env: VectorEnv[Any, Any, Any], num_seats: int, autoreset_mode: Any) -> VectorEpisodes:
        """Returns the episodes of a vector environment.

        Args:
            env: Declares its mode or not.
            num_seats: Number of rows per environment.
            autoreset_mode: The caller's; "Disabled" for an environment that resets itself means `by_hand`.

        Raises:
            ValueError: As in `declared_mode`.
        """
        mode = declared_mode(env, autoreset_mode)
        by_hand = mode is Autoreset.DISABLED and declared_mode(env, None) is not Autoreset.DISABLED
        return cls(env.num_envs // num_seats, num_seats, mode, by_hand)

    def settle_mode(self, env: VectorEnv[Any, Any, Any], infos: Any) -> None:
        """Takes the mode from the infos of the first reset where it is not known yet, or raises a ValueError."""
        if self.autoreset is None:
            self.autoreset = undeclared_mode(env, infos)

    def begin(self, envs: Envs | None) -> None:
        """Begins the next episode of these environments (None: of all)."""
        if envs is None:
            self.ended[:] = False
        else:
            self._by_env(self.ended)[envs] = False
        if envs is None or envs is self._due:
            self._due = NO_ENVS
        elif len(self._due):
            self._due = np.setdiff1d(self._due, envs)

    def after_step(self, terminations: Any, truncations: Any) -> StepChange:
        """Returns what a step changed, given its done flags, arrays or tensors of shape `(num_rows,)`."""
        reset = self._due
        if len(reset):
            self.begin(reset)
        rows = _done_rows(terminations, truncations)
        if not len(rows):
            return StepChange(reset, rows, NO_ENVS, NO_ENVS) if len(reset) else NO_CHANGE
        self.ended[rows] = True
        over = rows
        if self._num_seats > 1:
            envs = np.unique(rows // self._num_seats)
            over = envs[self._by_env(self.ended)[envs].all(axis=1)]
        if self.autoreset is Autoreset.NEXT_STEP:
            self._due = over
        if self.autoreset is not Autoreset.SAME_STEP:
            return StepChange(reset, rows, over, NO_ENVS)
        self.begin(over)
        return StepChange(reset, rows, over, over)

    def over(self) -> NDArray[np.bool_]:
        """Returns which environments have ended and have not begun another episode, shape `(num_envs,)`."""
        over: NDArray[np.bool_] = np.logical_and.reduce(self.ended.reshape(-1, self._num_seats), axis=1)
        return over

    def mask_of(self, envs: Envs) -> NDArray[np.bool_]:
        """Returns a mask of the rows of these environments, shape `(num_rows,)`."""
        rows = np.zeros(len(self.ended), np.bool_)
        self._by_env(rows)[envs] = True
        return rows

    def masked(self, mask: Any) -> Envs:
        """Returns the environments that a `reset_mask` of shape `(num_rows,)` selects.

        Raises:
            TypeError: If it is not a boolean array.
            ValueError: If it has another shape, or selects only some rows of an environment.
        """
        name, rows = f"options[{MASK!r}]", on_host(mask)
        if rows.dtype != np.bool_:
            raise TypeError(f"{name} must be a boolean array, got {mask!r}")
        if rows.shape != self.ended.shape:
            raise ValueError(f"{name} must have shape {self.ended.shape}, got {rows.shape}")
        groups = rows.reshape(-1, self._num_seats)
        if (groups != groups[:, :1]).any():
            raise ValueError(f"{name} must select the {self._num_seats} rows of an environment together, got {mask!r}")
        return np.flatnonzero(groups[:, 0])

    def _by_env(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns a view of the rows by environment; with one seat, one axis is faster."""
        return rows if self._num_seats == 1 else rows.reshape(-1, self._num_seats)


def selected_envs(envs: Any, num_envs: int) -> NDArray[Any]:
    """Returns environments given as a boolean mask of shape `(num_envs,)` or as indices, as distinct indices.

    Raises:
        TypeError: If they are neither.
        ValueError: If the mask has another shape, or if an index is out of range or occurs twice.
    """
    chosen = np.asarray(envs)
    if chosen.dtype == np.bool_:
        if chosen.shape != (num_envs,):
            raise ValueError(f"envs must be a mask of shape ({num_envs},), one per environment, got {chosen.shape}")
        return np.flatnonzero(chosen)
    if chosen.size == 0:
        return NO_ENVS
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise TypeError(f"envs must be integers or a boolean mask, got {envs!r}")
    if chosen.min() < 0 or chosen.max() >= num_envs or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"envs must be distinct indices from 0 to {num_envs - 1}, got {envs!r}")
    return chosen.astype(np.intp)


def _done_rows(terminations: Any, truncations: Any) -> NDArray[np.intp]:
    """Returns the rows that ended, ascending. Two tensors are joined first, so that one array goes to the host."""
    if not (isinstance(terminations, np.ndarray) and isinstance(truncations, np.ndarray)):
        if is_tensor(terminations) and is_tensor(truncations):
            return np.flatnonzero(on_host(terminations.logical_or(truncations)))
        terminations, truncations = on_host(terminations), on_host(truncations)
    # Unlike `any`, `argmax` (the first maximum) costs the same at 64 rows and at 16,384.
    if not (terminations[terminations.argmax()] or truncations[truncations.argmax()]):
        return NO_ENVS
    rows: NDArray[np.intp] = np.logical_or(terminations, truncations).nonzero()[0]
    return rows
