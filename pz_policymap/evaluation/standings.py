"""`standings`: the games of each policy, all opponents together."""

from __future__ import annotations

import math
from typing import NamedTuple

from pz_policymap.results.payoff import Payoff


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
