"""How often each policy played and what it got, over all episodes: three numbers a policy, however many there are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode


class Totals:
    """Episodes and mean return of every policy; `PolicyStatistics` without a window.

    Args:
        num_policies: The size of the population.

    Attributes:
        episodes: How many episodes each policy took part in.
    """

    def __init__(self, num_policies: int) -> None:
        self.episodes = np.zeros(num_policies, np.int64)
        self._returns = np.zeros(num_policies)

    @property
    def mean_return(self) -> NDArray[np.float64]:
        """The mean return of each policy; NaN for one that has played none."""
        means: NDArray[np.float64] = np.full(len(self.episodes), np.nan)
        np.divide(self._returns, self.episodes, out=means, where=self.episodes > 0)
        return means

    def record(self, episode: Episode) -> None:
        """Enters an episode; a policy in several seats gets their mean.

        Example:
            >>> totals = Totals(num_policies=3)
            >>> totals.record(Episode(policies=[0, 0, 2], returns=[1.0, 2.0, -1.0]))
            >>> totals.mean_return.tolist()
            [1.5, nan, -1.0]
        """
        seats: dict[int, list[float]] = {}
        for policy, value in zip(episode.policies, episode.returns, strict=True):
            seats.setdefault(policy, []).append(value)
        for policy, values in seats.items():
            self.episodes[policy] += 1
            self._returns[policy] += math.fsum(values) / len(values)
