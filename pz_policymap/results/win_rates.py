"""Win rates over all opponents, with intervals that count episodes, not games."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.lineups import Lineups

Vector = NDArray[np.float64]


class WinRates(NamedTuple):
    """Win rates with confidence intervals, NaN without games; each of shape `(num_policies,)`.

    Attributes:
        values: Games won plus half the draws, over all games.
        lows: Lower limits of the intervals.
        highs: Upper limits of the intervals.
        effective_games: Number of independent games that would be as informative, at most the number of games.
    """

    values: Vector
    lows: Vector
    highs: Vector
    effective_games: Vector


def clustered_win_rates(
    scores: Vector, games: Vector, joint_games: Vector, lineups: Lineups, confidence: float = 0.95
) -> WinRates:
    """Returns win rates with score intervals (Wilson 1927), in which the games of one episode are one cluster.

    The number of games is divided by the design effect (Kish 1965): the variance of the win rate with episodes as
    clusters, over its variance if games were independent. A policy that won or lost every game has as many effective
    games as episodes. A draw counts half; such scores vary less than wins and losses, which makes the interval wide.

    Args:
        scores: Games won plus half the draws, shape `(num_policies,)`.
        games: Number of games, shape `(num_policies,)`.
        joint_games: Number of these in episodes with several games, shape `(num_policies,)`.
        lineups: Scores by episode, of the episodes that held several games, or of a sample of them.
        confidence: Probability that an interval covers the true win rate, above 0 and below 1.
    """
    rates = np.divide(scores, games, out=np.full(len(games), np.nan), where=games > 0.0)
    kept = lineups.by_policy(np.nan_to_num(rates))
    scale = np.divide(joint_games, kept.games, out=np.zeros(len(games)), where=kept.games > 0.0)
    single = np.where(kept.games > 0.0, games - joint_games, games)
    independent = rates * (1.0 - rates)
    small = np.divide(kept.episodes, kept.episodes - 1.0, out=np.ones(len(games)), where=kept.episodes > 1.0)
    clustered = independent * single + scale * small * kept.squares
    effective = single + scale * kept.episodes  # the number of episodes
    varies = clustered > 0.0
    np.divide(independent * games**2, clustered, out=effective, where=varies)
    effective = np.minimum(effective, games)
    return WinRates(rates, *wilson(rates, effective, confidence), effective)


def wilson(rates: Vector, games: Vector, confidence: float = 0.95) -> tuple[Vector, Vector]:
    """Returns the limits of the score interval of win rates (Wilson 1927, "Probable inference").

    Args:
        rates: Win rates from 0 to 1; NaN where there are no games.
        games: Number of games of each.
        confidence: Probability that an interval covers the true win rate.

    Example:
        >>> low, high = wilson(np.array([0.8]), np.array([10.0]))
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.49], [0.943])
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    extra = np.divide(z * z, games, out=np.full(len(games), np.nan), where=games > 0.0)
    centre = rates + extra / 2.0
    spread = np.sqrt(extra * (rates * (1.0 - rates) + extra / 4.0))
    return np.maximum(0.0, (centre - spread) / (1.0 + extra)), np.minimum(1.0, (centre + spread) / (1.0 + extra))
