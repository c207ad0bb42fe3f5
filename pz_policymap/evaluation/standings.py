"""Games and returns of each policy, all opponents together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode
from pz_policymap.results.intervals import ratio_sums
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
        errors: Their standard errors; NaN for fewer than two units.
        units: Number of independent units: episodes, or groups of them that share an environment seed.
    """

    values: Vector
    errors: Vector
    units: Vector


def mean_returns(episodes: Iterable[Episode], clusters: Iterable[Hashable], num_policies: int) -> MeanReturns:
    """Returns mean returns with standard errors of a ratio estimate (Cochran 1977, "Sampling techniques").

    Args:
        episodes: The episodes.
        clusters: A label per episode; episodes with equal labels are one unit.
        num_policies: Size of the population.
    """
    sums: list[dict[Hashable, tuple[float, int]]] = [{} for _ in range(num_policies)]  # and number of episodes
    for episode, cluster in zip(episodes, clusters, strict=True):
        seats: dict[int, list[float]] = {}
        for policy, value in zip(episode.policies, episode.returns, strict=True):
            seats.setdefault(policy, []).append(value)
        for policy, values in seats.items():
            total, count = sums[policy].get(cluster, (0.0, 0))
            sums[policy][cluster] = total + math.fsum(values) / len(values), count + 1
    tables = [np.array(list(by_cluster.values()), np.float64).reshape(-1, 2) for by_cluster in sums]
    rows = [np.concatenate(ratio_sums(table[:, :1], table[:, 1:])) for table in tables]
    means, totals, squares, units = np.array(rows).T
    errors = np.divide(np.sqrt(squares), totals, out=np.full(num_policies, np.nan), where=units > 1.0)
    return MeanReturns(means, errors, units)
