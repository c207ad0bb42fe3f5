"""The episodes at which assignments are resampled: pure arithmetic on episode numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer

RESAMPLE_EVERY = 10  # episodes between resamples, unless the mapping is a schedule


@dataclass(frozen=True)
class Cadence:
    """A draw at every episode `e` where `e % resample_every == 0` or `e < warmup_episodes`.

    Args:
        resample_every: Number of episodes between resamples, >= 1.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.

    Raises:
        TypeError: If an argument is not an integer.
        ValueError: If it is out of range.

    Example:
        >>> cadence = Cadence(resample_every=4, warmup_episodes=2)
        >>> episodes = np.arange(9)
        >>> cadence.due(episodes).astype(int).tolist()
        [1, 1, 0, 0, 1, 0, 0, 0, 1]
        >>> cadence.block(episodes).tolist()
        [0, 1, 1, 1, 2, 2, 2, 2, 3]
    """

    resample_every: int = RESAMPLE_EVERY
    warmup_episodes: int = 0

    def __post_init__(self) -> None:
        every = integer("resample_every", self.resample_every, 1, 2**62)
        warmup = integer("warmup_episodes", self.warmup_episodes, 0, 2**62)
        object.__setattr__(self, "resample_every", every)
        object.__setattr__(self, "warmup_episodes", warmup)

    def due(self, episode: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether each episode begins with a draw."""
        every, warmup = self.resample_every, self.warmup_episodes
        if every == 1:
            return episode >= 0
        due: NDArray[np.bool_] = episode // every * every == episode  # NumPy divides faster than it takes remainders
        return due | (episode < warmup) if warmup else due

    def draw_episode(self, episode: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the episode at which the assignment of each episode was drawn."""
        every, warmup = self.resample_every, self.warmup_episodes
        return np.where(episode < warmup, episode, np.maximum(episode // every * every, warmup - 1))

    def block(self, episode: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the number of the block that each episode belongs to: the draws up to it, less one."""
        every, warmup = self.resample_every, self.warmup_episodes
        after = warmup + episode // every - (warmup - 1) // every - 1
        return np.where(episode < warmup, episode, after)
