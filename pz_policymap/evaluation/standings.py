"""Win counts of policies over all opponents, and the confidence interval of a win rate."""

from __future__ import annotations

import math
from typing import NamedTuple

from pz_policymap.results.payoff import Payoff

Z95 = 1.959963984540054  # the 0.975 quantile of the normal distribution


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


def wilson(wins: float, trials: int, z: float = Z95) -> tuple[float, float]:
    """Returns the score interval of a rate (Wilson 1927, "Probable inference, the law of succession").

    A trial may count any number from 0 to 1, such as one half for a draw. Such trials vary less than wins and losses,
    so the interval is then wider than it need be.

    Args:
        wins: The sum over all trials, from 0 to `trials`.
        trials: Number of independent trials, >= 0.
        z: The normal quantile: 1.96 for 95%.

    Returns:
        Lower and upper bound; NaN without trials.

    Example:
        >>> [round(limit, 3) for limit in wilson(8, 10)]
        [0.49, 0.943]
    """
    if not trials:
        return math.nan, math.nan
    rate, extra = wins / trials, z * z / trials
    centre = rate + extra / 2.0
    spread = z * math.sqrt(max(0.0, rate * (1.0 - rate) + extra / 4.0) / trials)
    return max(0.0, (centre - spread) / (1.0 + extra)), min(1.0, (centre + spread) / (1.0 + extra))


def interval_text(interval: tuple[float, float]) -> str:
    """Returns an interval for a table, "0.49 to 0.94"."""
    low, high = interval
    return "-" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
