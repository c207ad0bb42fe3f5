"""Games and returns of each policy, all opponents together."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.payoff import Payoff

Vector = NDArray[np.float64]


class Standing(NamedTuple):
    """The games of one policy.

    Attributes:
        games: Pairs with another policy in an episode.
        wins: Games won.
        draws: Games without a winner.
        losses: Games lost.
        win_rate: Wins and half the draws, divided by the games; NaN without games.
    """

    games: int
    wins: int
    draws: int
    losses: int
    win_rate: float


def standings(payoff: Payoff) -> list[Standing]:
    """Returns the games of every policy, all opponents together.

    Example:
        >>> from pz_policymap import Episode, Payoff
        >>> payoff = Payoff(num_policies=2)
        >>> for _ in range(10):
        ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
        >>> standings(payoff)[0]
        Standing(games=10, wins=10, draws=0, losses=0, win_rate=1.0)
    """
    totals = [counts.sum(axis=1).tolist() for counts in (payoff.games, payoff.wins, payoff.draws, payoff.losses)]
    return [
        Standing(games, wins, draws, losses, (wins + draws / 2.0) / games if games else math.nan)
        for games, wins, draws, losses in zip(*totals, strict=True)
    ]


class MeanReturns(NamedTuple):
    """Mean return per policy; an episode counts once, with the mean over the seats of the policy.

    Attributes:
        values: The means, shape `(num_policies,)`; NaN without episodes.
        errors: Their standard errors; NaN for fewer than two episodes.
        episodes: Number of episodes.
    """

    values: Vector
    errors: Vector
    episodes: NDArray[np.int64]


class RunningMeans:
    """Means and standard errors of numbers by policy, in one pass (Welford 1962).

    Args:
        num_policies: Number of policies.

    Example:
        >>> means = RunningMeans(1)
        >>> for value in (1.0, 2.0, 3.0):
        ...     means.add(0, value)
        >>> means.result().values.item(), means.result().errors.round(3).item()
        (2.0, 0.577)
    """

    def __init__(self, num_policies: int) -> None:
        self._sums = [(0, 0.0, 0.0)] * num_policies  # count, mean, sum of squared distances to the mean

    def add(self, policy: int, value: float) -> None:
        """Adds a number."""
        count, mean, squares = self._sums[policy]
        moved = mean + (value - mean) / (count + 1)
        self._sums[policy] = count + 1, moved, squares + (value - mean) * (value - moved)

    def result(self) -> MeanReturns:
        """Returns the means and their standard errors."""
        return MeanReturns(
            np.array([mean if count else math.nan for count, mean, _ in self._sums]),
            np.array([math.sqrt(q / (n - 1) / n) if n > 1 else math.nan for n, _, q in self._sums]),
            np.array([count for count, _, _ in self._sums]),
        )


class CrossPlay(NamedTuple):
    """How each policy fares with copies of itself, and with others; each of shape `(num_policies,)`.

    Attributes:
        self_play: Mean returns and errors over the episodes in which the policy controls every seat.
        cross_play: Mean returns and errors over its other episodes.
        gap: Self-play minus cross-play; positive if it relies on partners that act as it does.
        gap_errors: Standard errors of `gap`.
        worst_partners: The policy with which its mean return is lowest; -1 without partners.
        worst_returns: Its mean return with that partner; NaN without partners.
    """

    self_play: MeanReturns
    cross_play: MeanReturns
    gap: Vector
    gap_errors: Vector
    worst_partners: NDArray[np.intp]
    worst_returns: Vector
