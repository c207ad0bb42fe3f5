"""`PolicyStatistics`: recent returns and lengths of each policy, for selection and for logging."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer
from pz_policymap.results.episode import Episode
from pz_policymap.results.ledger import (
    LOCK,
    MAX_ROWS,
    array_in,
    check_episode,
    check_settings,
    flat_scalars,
    text_table,
)

STATE_VERSION = 1

_COLUMNS = ("episodes", "steps", "mean_return", "mean_length")


class PolicyStatistics:
    """Number of episodes and steps of each policy, and mean return and length of its last episodes.

    If a policy controls several seats in an episode, its return and length are the means over them.

    Args:
        num_policies: Size of the population, >= 1; see `grow`.
        window: Number of a policy's last episodes that the means are taken over, >= 1.

    Attributes:
        window: As given.

    Raises:
        TypeError: If an argument is not an integer.
        ValueError: If it is out of range.

    Example:
        >>> from pz_policymap import Episode, PolicyStatistics
        >>> statistics = PolicyStatistics(num_policies=3, window=100)
        >>> statistics.record(Episode(policies=[0, 2], returns=[1.0, -1.0], lengths=[5, 4]))
        >>> statistics.record(Episode(policies=[0, 0], returns=[0.0, 0.5], lengths=[7, 7]))
        >>> statistics.mean_return.tolist()
        [0.625, nan, -1.0]
        >>> statistics
        PolicyStatistics(num_policies=3, window=100)
        policy  episodes  steps  mean_return  mean_length
             0         2     19        0.625            6
             1         0      0            -            -
             2         1      4           -1            4
    """

    def __init__(self, num_policies: int, window: int = 100) -> None:
        size = integer("num_policies", num_policies, 1)
        self.window = integer("window", window, 1)
        self._episodes = np.zeros(size, np.int64)
        self._steps = np.zeros(size, np.int64)
        self._recent = np.zeros((size, self.window, 2))  # return and length of the last episodes, as a ring buffer

    def __repr__(self) -> str:
        columns = self._columns()
        size = len(columns["episodes"])
        rows = [["policy", *_COLUMNS]]
        for policy in range(min(size, MAX_ROWS)):
            values = [columns[name][policy] for name in _COLUMNS]
            rows.append([str(policy), *("-" if math.isnan(value) else f"{value:.10g}" for value in values)])
        rows += [["..."] * len(rows[0])] * (size > MAX_ROWS)
        return f"PolicyStatistics(num_policies={size}, window={self.window})\n{text_table(rows)}"

    @property
    def num_policies(self) -> int:
        """Size of the population."""
        return len(self._episodes)

    @property
    def episodes(self) -> NDArray[np.int64]:
        """Number of episodes of each policy, shape `(num_policies,)`."""
        return np.array(self._episodes)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Number of steps of each policy, summed over its seats: its share of the experience."""
        return np.array(self._steps)

    @property
    def mean_return(self) -> NDArray[np.float64]:
        """Mean return over each policy's last `window` episodes; NaN for a policy without episodes."""
        return self._mean(0)

    @property
    def mean_length(self) -> NDArray[np.float64]:
        """Mean length of the same episodes, in steps."""
        return self._mean(1)

    def scalars(self, prefix: str = "policy_") -> dict[str, float]:
        """Returns all numbers as a flat dict, for loggers of named numbers. Means without episodes are left out.

        Args:
            prefix: Text before the number of a policy: "policy_0/episodes", "policy_0/steps",
                "policy_0/mean_return", "policy_0/mean_length".
        """
        return flat_scalars(prefix, self._columns())

    def record(self, episode: Episode) -> None:
        """Adds the outcome of one episode.

        Raises:
            TypeError: If `episode` is not an `Episode`.
            ValueError: If a policy is not in this population; nothing has changed then.
        """
        check_episode(episode, self.num_policies)
        steps: dict[int, list[int]] = {}
        for policy, length in zip(episode.policies, episode.lengths, strict=True):
            steps.setdefault(policy, []).append(length)
        with LOCK:
            for policy, mean_return in episode.mean_returns.items():
                place, total = self._episodes[policy] % self.window, sum(steps[policy])
                self._recent[policy, place] = mean_return, total / len(steps[policy])
                self._episodes[policy] += 1
                self._steps[policy] += total

    def grow(self, num_policies: int) -> None:
        """Makes room for a larger population. All numbers stay.

        Raises:
            TypeError: If `num_policies` is not an integer.
            ValueError: If it is below the present number.
        """
        with LOCK:
            more = integer("num_policies", num_policies, self.num_policies) - self.num_policies
            self._episodes, self._steps, self._recent = (
                np.pad(self._episodes, (0, more)),
                np.pad(self._steps, (0, more)),
                np.pad(self._recent, ((0, more), (0, 0), (0, 0))),
            )

    def forget(self, policy: int) -> None:
        """Removes all numbers of one policy, such as one whose parameters have been replaced.

        Raises:
            TypeError: If `policy` is not an integer.
            ValueError: If it is not in this population.
        """
        with LOCK:
            index = integer("policy", policy, 0, self.num_policies - 1)
            self._episodes[index], self._steps[index], self._recent[index] = 0, 0, 0.0

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to save in a checkpoint, for `save`."""
        with LOCK:
            return {
                "version": STATE_VERSION,
                "window": self.window,
                "episodes": self._episodes.copy(),
                "steps": self._steps.copy(),
                "recent": self._recent.copy(),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces the numbers with saved ones. Fewer policies grow to the saved number.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is not a dict.
            ValueError: If it has another version or window, or is damaged; nothing has changed then.
        """
        check_settings(state, {"version": STATE_VERSION, "window": self.window})
        episodes, steps, recent = (array_in(state, name) for name in ("episodes", "steps", "recent"))
        size = episodes.size
        if (
            [episodes.dtype, steps.dtype, recent.dtype] != [np.int64, np.int64, np.float64]
            or [episodes.shape, steps.shape, recent.shape] != [(size,), (size,), (size, self.window, 2)]
            or not size
            or not np.isfinite(recent).all()
            or min(episodes.min(), steps.min()) < 0
        ):
            raise ValueError(
                f"state does not fit: 'episodes' and 'steps' must be integers >= 0 of shape (n,) and 'recent' finite "
                f"floats of shape (n, {self.window}, 2), got shapes {episodes.shape}, {steps.shape} and {recent.shape}"
            )
        with LOCK:
            size = max(size, self.num_policies)
            self._episodes, self._steps, self._recent = episodes, steps, recent
            self.grow(size)

    def _columns(self) -> dict[str, list[float]]:
        """Returns all numbers by name, from the same moment."""
        with LOCK:
            return {name: getattr(self, name).tolist() for name in _COLUMNS}

    def _mean(self, column: int) -> NDArray[np.float64]:
        with LOCK:
            held, total = np.minimum(self._episodes, self.window), self._recent[..., column].sum(axis=1)
        means: NDArray[np.float64] = np.full(len(held), np.nan)
        np.divide(total, held, out=means, where=held > 0)
        return means
