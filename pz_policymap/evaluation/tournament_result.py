"""`TournamentResult`: ratings, win rates and returns of the entrants of a tournament."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.evaluation.standings import Standing, interval_text, standings, wilson
from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.ratings import Ratings


class MeanReturns(NamedTuple):
    """Mean return per entrant; a game counts once, with the mean over the seats of the entrant.

    Attributes:
        values: The means, shape `(num_entrants,)`; NaN without games.
        errors: Their standard errors; NaN for fewer than two games.
    """

    values: NDArray[np.float64]
    errors: NDArray[np.float64]


class TournamentResult:
    """The games of a tournament; the policy id of an entrant is its position in `names`.

    Args:
        names: The entrants.
        games: The episodes, each with the entrant that forfeited it, if any.
        reasons: The first error of each entrant that forfeited a game in this run.

    Attributes:
        names: The entrants.
        episodes: The games.
        forfeits: Number of forfeited games per name, without those who forfeited none.
        reasons: As given.
    """

    def __init__(
        self, names: Sequence[str], games: Sequence[tuple[Episode, str | None]], reasons: Mapping[str, str]
    ) -> None:
        self.names = tuple(names)
        self.episodes = tuple(episode for episode, _ in games)
        self.forfeits = dict(Counter(loser for _, loser in games if loser is not None))
        self.reasons = dict(reasons)
        self._played = tuple(episode for episode, loser in games if loser is None)

    @cached_property
    def payoff(self) -> Payoff:
        """The ledger of all games, forfeits included."""
        payoff = Payoff(len(self.names))
        for episode in self.episodes:
            payoff.record(episode)
        return payoff

    def ratings(self) -> Ratings:
        """Returns a rating per entrant with standard errors; see `Payoff.ratings`."""
        return self.payoff.ratings()

    @cached_property
    def mean_returns(self) -> MeanReturns:
        """The mean return of every entrant with its standard error, without forfeited games."""
        values: list[list[float]] = [[] for _ in self.names]
        for episode in self._played:
            for policy, mean in _means(episode.policies, episode.returns).items():
                values[policy].append(mean)
        means = [math.fsum(mine) / len(mine) if mine else math.nan for mine in values]
        errors = [np.std(mine, ddof=1) / math.sqrt(len(mine)) if len(mine) > 1 else math.nan for mine in values]
        return MeanReturns(np.array(means), np.array(errors, np.float64))

    @cached_property
    def standings(self) -> list[Standing]:
        """Games, wins, draws, losses and win rate of every entrant."""
        return standings(self.payoff)

    @cached_property
    def intervals(self) -> list[tuple[float, float]]:
        """The 95% interval of every win rate (Wilson 1927).

        An episode counts as one trial with its mean score, however many opponents it has: games of the same episode are
        not independent.
        """
        sums, trials = [0.0] * len(self.names), [0] * len(self.names)
        for episode in self.episodes:
            policies, _, played, results = games(episode)
            for row, policy in enumerate(policies.tolist()):
                if count := int(played[row].sum()):
                    sums[policy] += (count + float(results[row].sum())) / (2.0 * count)
                    trials[policy] += 1
        return [wilson(wins, count) for wins, count in zip(sums, trials, strict=True)]

    @property
    def order(self) -> list[int]:
        """The entrants by rating, best first."""
        order: list[int] = np.argsort(-self.ratings().values, kind="stable").tolist()
        return order

    def __repr__(self) -> str:
        heading = ("name", "rating", "error", "games", "wins", "draws", "losses", "win rate", "95% interval", "return")
        ratings, means = self.ratings(), self.mean_returns.values
        rows: list[tuple[str, ...]] = [heading]
        for policy in self.order:
            standing = self.standings[policy]
            counts = (standing.games, standing.wins, standing.draws, standing.losses)
            rows.append(
                (
                    self.names[policy],
                    f"{ratings.values[policy]:+.0f}",
                    f"{ratings.errors[policy]:.0f}",
                    *map(str, counts),
                    f"{standing.win_rate:.2f}",
                    interval_text(self.intervals[policy]),
                    f"{means[policy]:.2f}",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
        lines = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([f"{len(self.episodes)} games of {len(self.names)} entrants", *lines])


def _means(policies: Sequence[int], returns: Sequence[float]) -> dict[int, float]:
    """Returns the mean return of every policy of an episode."""
    seats: dict[int, list[float]] = {}
    for policy, value in zip(policies, returns, strict=True):
        seats.setdefault(policy, []).append(value)
    return {policy: math.fsum(values) / len(values) for policy, values in seats.items()}
