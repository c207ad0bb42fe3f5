"""Tracks the beginnings and ends of episodes in a vector environment, for tagging and for recording.

A row is one seat of one environment. Rows come in groups: the seats of environment 0, then those of environment 1, ...
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer
from pz_policymap.assigner_state import NEVER
from pz_policymap.batching.nested_arrays import on_host
from pz_policymap.wrappers.autoreset import Autoreset, declared_mode, undeclared_mode
from pz_policymap.wrappers.done_flags import NO_ROWS, Rows, done_rows

MASK = "reset_mask"  # the key in reset's options that selects the rows to reset

Envs = NDArray[np.intp]  # indices of environments, from 0, ascending
NO_ENVS: Envs = NO_ROWS


class StepChange(NamedTuple):
    """What one step changed, in this order.

    Attributes:
        reset: In NEXT_STEP, the environments that the step reset, because the step before had ended their episode.
        rows: The rows that ended.
        over: The environments whose episode ended.
        restarted: In SAME_STEP, those of them that were reset at once: all.
    """

    reset: Envs
    rows: Rows
    over: Envs
    restarted: Envs


NO_CHANGE = StepChange(NO_ENVS, NO_ENVS, NO_ENVS, NO_ENVS)


class VectorEpisodes:
    """Tracks which environments begin and end an episode at each step, in any autoreset mode.

    The episode of an environment ends when each of its rows has ended at least once since the episode began.

    Args:
        num_envs: Number of environments, >= 1.
        num_seats: Number of rows per environment, >= 1.
        autoreset: The mode, or None until the first reset reveals it.
        by_hand: Whether only the caller ends episodes; rows may end and respawn within one.
        length: Number of steps of every episode, >= 1; done flags are then not read. None: they are read.
        read: Returns the rows that ended, given the done flags of a step.

    Attributes:
        num_envs: As above, like all that follow.
        autoreset: As above.
        by_hand: As above.
        length: As above.
        ended: The rows that have ended since their episode began, shape `(num_rows,)`.
        latest: The done flags of the latest step, and the rows that ended in it.
        inner: The episodes of a wrapper inside, if any; flags that it has read are not read again.

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

    def __init__(
        self,
        num_envs: int,
        num_seats: int,
        autoreset: Autoreset | None,
        by_hand: bool = False,
        length: int | None = None,
        read: Callable[..., Rows] = done_rows,
    ) -> None:
        self.num_envs = num_envs
        self.autoreset = autoreset
        self.by_hand = by_hand
        self.length = None if length is None else integer("episode_length", length, 1)
        self.ended = np.zeros(num_envs * num_seats, np.bool_)
        self.inner: VectorEpisodes | None = None
        self._num_seats = num_seats
        self._due = NO_ENVS  # in NEXT_STEP: the environments that the next step resets
        self._read = read
        self.latest: tuple[tuple[Any, ...], Rows] = (), NO_ROWS
        self._step = 0
        self._ends_at = np.full(num_envs, self.length or 0, np.int64)  # the last step of each episode
        self._next_end = self.length or NEVER  # the earliest of them

    @classmethod
    def of(cls, env: Any, num_envs: int, num_seats: int, autoreset_mode: Any, **settings: Any) -> VectorEpisodes:
        """Returns the episodes of an environment.

        Args:
            env: Declares its mode or not.
            num_envs: As in the constructor.
            num_seats: As in the constructor.
            autoreset_mode: The caller's; "Disabled" for an environment that does not declare it means `by_hand`.
            **settings: `length` and `read` of the constructor.

        Raises:
            TypeError, ValueError: As in `declared_mode`, or if the length is not an integer >= 1.
        """
        mode = declared_mode(env, autoreset_mode)
        by_hand = mode is Autoreset.DISABLED and declared_mode(env, None) is not Autoreset.DISABLED
        return cls(num_envs, num_seats, mode, by_hand and settings.get("length") is None, **settings)

    def continue_from(self, other: VectorEpisodes) -> None:
        """Takes over which rows have ended, and how many steps remain, from the episodes of as many environments."""
        self.ended, self._due = other.ended.copy(), other._due
        self._step, self._ends_at, self._next_end = other._step, other._ends_at.copy(), other._next_end

    def settle_mode(self, env: Any, infos: Any) -> None:
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
        if self.length is not None:
            self._ends_at[slice(None) if envs is None else envs] = self._step + self.length
            self._next_end = int(self._ends_at[self._ends_at > self._step].min(initial=NEVER))

    def after_step(self, *ends: Any) -> StepChange:
        """Returns what a step changed, given its done flags."""
        self._step += 1
        reset = self._due
        if len(reset):
            self.begin(reset)
        rows = self._rows_of(ends)
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

    def _rows_of(self, ends: tuple[Any, ...]) -> Rows:
        """Returns the rows that ended in this step."""
        if self.length is not None:
            if self._step < self._next_end:
                return NO_ROWS
            rows = np.flatnonzero(self.mask_of(np.flatnonzero(self._ends_at == self._step)))
            self._next_end = int(self._ends_at[self._ends_at > self._step].min(initial=NEVER))
            return rows
        if self.inner is not None:
            seen, rows = self.inner.latest
            if len(seen) == len(ends) and all(map(operator.is_, seen, ends)):
                return rows
        rows = self._read(*ends)
        self.latest = ends, rows
        return rows

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
            TypeError, ValueError: As in `mask_on_host`, or if it selects only some rows of an environment.
        """
        groups = mask_on_host(mask, len(self.ended)).reshape(-1, self._num_seats)
        if (groups != groups[:, :1]).any():
            raise ValueError(
                f"options[{MASK!r}] must select the {self._num_seats} rows of an environment together, got {mask!r}"
            )
        return np.flatnonzero(groups[:, 0])

    def _by_env(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns a view of the rows by environment; with one seat, one axis is faster."""
        return rows if self._num_seats == 1 else rows.reshape(-1, self._num_seats)


def mask_on_host(mask: Any, count: int) -> NDArray[np.bool_]:
    """Returns a `reset_mask`, an array or a tensor, as a NumPy array of shape `(count,)`.

    Raises:
        TypeError: If it is not a boolean array.
        ValueError: If it has another shape.
    """
    array = on_host(mask)
    if array.dtype != np.bool_:
        raise TypeError(f"options[{MASK!r}] must be a boolean array, got {mask!r}")
    if array.shape != (count,):
        raise ValueError(f"options[{MASK!r}] must have shape {(count,)}, got {array.shape}")
    return array
