"""`PolicyStatistics`: how each policy fares, for selection and for logging."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer
from pz_policymap.results.episode import Episode
from pz_policymap.results.ledger import LOCK, array_in, check_episode, check_settings

STATE_VERSION = 1


class PolicyStatistics:
    """Episodes, steps, mean return and mean length of every policy, over its last episodes.

    In an episode that a policy plays in several seats, its return and length are the means over them.

    Args:
        num_policies: The size of the population, from 1; see `grow`.
        window: How many of a policy's last episodes the means are over, from 1.

    Attributes:
        window: As given.

    Raises:
        TypeError: If an argument is no integer.
        ValueError: If it is out of range.

    Example:
        >>> from pz_policymap import Episode, PolicyStatistics
        >>> statistics = PolicyStatistics(num_policies=3, window=100)
        >>> statistics.record(Episode(policies=[0, 2], returns=[1.0, -1.0], lengths=[5, 4]))
        >>> statistics.record(Episode(policies=[0, 0], returns=[0.0, 0.5], lengths=[7, 7]))
        >>> statistics.mean_return.tolist()
        [0.625, nan, -1.0]
        >>> statistics.scalars()["policy_0/steps"]
        19.0
    """

    def __init__(self, num_policies: int, window: int = 100) -> None:
        size = integer("num_policies", num_policies, 1)
        self.window = integer("window", window, 1)
        self._episodes = np.zeros(size, np.int64)
        self._steps = np.zeros(size, np.int64)
        self._recent = np.zeros((size, self.window, 2))  # return and length of the last episodes, in a ring

    @property
    def num_policies(self) -> int:
        """The size of the population."""
        return len(self._episodes)

    @property
    def episodes(self) -> NDArray[np.int64]:
        """How many episodes each policy took part in, shape `(num_policies,)`."""
        return np.array(self._episodes)

    @property
    def steps(self) -> NDArray[np.int64]:
        """How many steps each policy took, all its seats together: its share of the experience."""
        return np.array(self._steps)

    @property
    def mean_return(self) -> NDArray[np.float64]:
        """The mean return over each policy's last `window` episodes; NaN for one that has played none."""
        return self._mean(0)

    @property
    def mean_length(self) -> NDArray[np.float64]:
        """The mean length of the same episodes, in steps."""
        return self._mean(1)

    def scalars(self, prefix: str = "policy_") -> dict[str, float]:
        """Returns everything as a flat dict, for loggers that take names and numbers; means of nothing are left out.

        Args:
            prefix: What stands before a policy's number: "policy_0/episodes", "policy_0/steps",
                "policy_0/mean_return", "policy_0/mean_length".
        """
        with LOCK:  # all of the same moment
            columns = {
                "episodes": self._episodes.tolist(),
                "steps": self._steps.tolist(),
                "mean_return": self.mean_return.tolist(),
                "mean_length": self.mean_length.tolist(),
            }
        return {
            f"{prefix}{policy}/{name}": float(values[policy])
            for policy in range(len(columns["episodes"]))
            for name, values in columns.items()
            if not math.isnan(values[policy])
        }

    def record(self, episode: Episode) -> None:
        """Enters what an episode ended with.

        Raises:
            TypeError: If it is no `Episode`.
            ValueError: If a policy is not of this population; nothing has changed then.
        """
        check_episode(episode, self.num_policies)
        seats: dict[int, list[tuple[float, int]]] = {}
        for policy, value, length in zip(episode.policies, episode.returns, episode.lengths, strict=True):
            seats.setdefault(policy, []).append((value, length))
        means = {policy: math.fsum(value for value, _ in each) / len(each) for policy, each in seats.items()}
        steps = {policy: sum(length for _, length in each) for policy, each in seats.items()}
        with LOCK:
            for policy, each in seats.items():
                place = self._episodes[policy] % self.window
                self._recent[policy, place] = means[policy], steps[policy] / len(each)
                self._episodes[policy] += 1
                self._steps[policy] += steps[policy]

    def grow(self, num_policies: int) -> None:
        """Makes room for a larger population; what is known stays.

        Raises:
            TypeError: If `num_policies` is no integer.
            ValueError: If it is below the present number.
        """
        with LOCK:
            more = integer("num_policies", num_policies, self.num_policies) - self.num_policies
            self._episodes, self._steps, self._recent = (
                np.pad(self._episodes, (0, more)),
                np.pad(self._steps, (0, more)),
                np.pad(self._recent, ((0, more), (0, 0), (0, 0))),
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns all that must survive a restart, for `save`."""
        with LOCK:
            return {
                "version": STATE_VERSION,
                "window": self.window,
                "episodes": self._episodes.copy(),
                "steps": self._steps.copy(),
                "recent": self._recent.copy(),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what was saved in place of what is known, and grows to the saved size where it is smaller.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is no dict.
            ValueError: If it is of another version or window, or damaged; nothing has changed then.
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
                f"state does not fit: 'episodes' and 'steps' must be integers from 0 of shape (n,) and 'recent' finite "
                f"floats of shape (n, {self.window}, 2), got shapes {episodes.shape}, {steps.shape} and {recent.shape}"
            )
        with LOCK:
            size = max(size, self.num_policies)
            self._episodes, self._steps, self._recent = episodes, steps, recent
            self.grow(size)

    def _mean(self, column: int) -> NDArray[np.float64]:
        with LOCK:
            held, total = np.minimum(self._episodes, self.window), self._recent[..., column].sum(axis=1)
        means: NDArray[np.float64] = np.full(len(held), np.nan)
        np.divide(total, held, out=means, where=held > 0)
        return means
