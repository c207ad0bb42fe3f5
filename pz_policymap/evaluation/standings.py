"""How policies did against the others: games, win rates with their intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

from pz_policymap.results.payoff import Payoff

Z95 = 1.959963984540054  # the normal distribution's quantile at 0.975


class Standing(NamedTuple):
    """What one policy has won.

    Attributes:
        games: Pairs with another policy in an episode.
        wins: Games won.
        draws: Games that nobody won.
        losses: Games lost.
        win_rate: A draw being half a win; NaN without games.
        interval: Where the win rate lies with 95% confidence.
    """

    games: int
    wins: int
    draws: int
    losses: int
    win_rate: float
    interval: tuple[float, float]


def standings(payoff: Payoff) -> list[Standing]:
    """Returns what every policy has won, all opponents together.

    Example:
        >>> from pz_policymap import Episode, Payoff
        >>> payoff = Payoff(num_policies=2)
        >>> for _ in range(10):
        ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
        >>> standing = standings(payoff)[0]
        >>> standing.win_rate, round(standing.interval[0], 2)
        (1.0, 0.72)
    """
    totals = [counts.sum(axis=1).tolist() for counts in (payoff.games, payoff.wins, payoff.draws, payoff.losses)]
    result = []
    for games, wins, draws, losses in zip(*totals, strict=True):
        won = wins + draws / 2.0
        rate = won / games if games else math.nan
        result.append(Standing(games, wins, draws, losses, rate, wilson(won, games)))
    return result


def wilson(wins: float, games: int, z: float = Z95) -> tuple[float, float]:
    """Returns the score interval of a win rate (Wilson 1927, "Probable inference, the law of succession").

    A draw counts half; as half results vary less than wins and losses do, the interval is then wider than it need be.

    Args:
        wins: Games won, from 0 to `games`.
        games: How many there were; without any, nothing is known.
        z: The normal quantile: 1.96 for 95%.

    Example:
        >>> [round(limit, 3) for limit in wilson(8, 10)]
        [0.49, 0.943]
    """
    if not games:
        return math.nan, math.nan
    rate, extra = wins / games, z * z / games
    centre = rate + extra / 2.0
    spread = z * math.sqrt((rate * (1.0 - rate) + extra / 4.0) / games)
    return max(0.0, (centre - spread) / (1.0 + extra)), min(1.0, (centre + spread) / (1.0 + extra))


def interval_text(interval: tuple[float, float]) -> str:
    """Returns an interval for a table, "0.49 to 0.94"."""
    low, high = interval
    return "-" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
