"""`TournamentResult`: ratings, win rates and returns of the entrants of a tournament."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.evaluation.game_table import Episodes, GameTable
from pz_policymap.evaluation.result_plot import figure_of
from pz_policymap.evaluation.result_table import (
    html_table,
    note_texts,
    pair_rows,
    plain_dict,
    standings_rows,
)
from pz_policymap.evaluation.results_file import merged_file
from pz_policymap.evaluation.standings import Standing, standings
from pz_policymap.mappings.groups import GroupOf, group_of_each_seat, group_rule
from pz_policymap.results.clustered_results import ClusteredResults, policy_results, seat_results
from pz_policymap.results.cooperation import Cooperation, cooperation
from pz_policymap.results.intervals import Intervals
from pz_policymap.results.ledger import text_table
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.ratings import Ratings, clustered_ratings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sides_of(team_of: GroupOf | None, agents: Sequence[Any]) -> list[Hashable]:
    """Returns the team of every seat; None: every seat is a team of its own."""
    if team_of is None:
        return list(range(len(agents)))
    return group_of_each_seat("team_of", group_rule("team_of", team_of), tuple(agents))


class TournamentResult:
    """The games of a tournament; the policy id of an entrant is its position in `names`.

    `print` shows the standings, `plot` draws them. If no game was won, as in a cooperative environment, returns in
    self-play and cross-play take the place of ratings.

    Args:
        names: The entrants.
        table: Finished games, those of other entrants included.
        sides: The team of every seat.

    Attributes:
        names: The entrants.
        episodes: The games among them, sorted by their names and repetition.
    """

    def __init__(self, names: Sequence[str], table: GameTable, sides: Sequence[Hashable]) -> None:
        self.names = tuple(names)
        self._table, self._order = table, table.in_order(names)
        self.episodes = Episodes(table, self._order, self.names, sides)

    @cached_property
    def payoff(self) -> Payoff:
        """The ledger of all games, forfeits included."""
        payoff = Payoff(len(self.names))
        for episode in self.episodes:
            payoff.record(episode)
        return payoff

    def ratings(self) -> Ratings:
        """Returns one rating per entrant, as `Payoff.ratings` does, with standard errors that count independent units.

        Games of the same entrants under the same environment seed are one unit, and identical games are another.
        """
        return self._ratings

    @cached_property
    def _ratings(self) -> Ratings:
        return clustered_ratings(self.episodes, len(self.names), self._clusters)

    @cached_property
    def win_rates(self) -> Intervals:
        """The win rate of every entrant with its 95% interval, forfeits included; see `pm.policy_results`.

        Units are those of `ratings`.
        """
        return self._policy_results.win_rates

    @cached_property
    def _policy_results(self) -> ClusteredResults:
        return policy_results(self.episodes, len(self.names), clusters=self._clusters)

    @cached_property
    def standings(self) -> list[Standing]:
        """Games, wins, draws, losses and win rate of every entrant."""
        return standings(self.payoff)

    @cached_property
    def mean_returns(self) -> Intervals:
        """The mean return of every entrant with its standard error and interval, without forfeited games.

        Units are those of `ratings`.
        """
        if not self.forfeits:
            return self._policy_results.mean_returns
        return policy_results(self._completed, len(self.names), clusters=self._completed_clusters).mean_returns

    def cooperation(self) -> Cooperation:
        """Returns self-play and cross-play returns, their gaps, and the worst partner of each entrant.

        For cooperative games; play these with `self_matches=True`. See `pm.cooperation`.
        """
        return cooperation(self._completed, len(self.names), clusters=self._completed_clusters)

    def seats(self, name: str | None = None) -> ClusteredResults:
        """Returns win rates and returns by seat, such as whether moving first wins; see `pm.seat_results`.

        Args:
            name: Only the seats that this entrant controlled. None: all.

        Raises:
            ValueError: If `name` is not an entrant.
        """
        if name is not None and name not in self.names:
            raise ValueError(f"name must be one of {', '.join(self.names)}, got {name!r}")
        policy = None if name is None else self.names.index(name)
        return seat_results(self._completed, policy=policy, clusters=self._completed_clusters)

    @cached_property
    def _completed(self) -> Episodes:
        """The games that were not forfeited."""
        return self.episodes[~self._forfeited]

    @cached_property
    def _identical(self) -> dict[tuple[str, ...], int]:
        """The matchups whose games are all identical, with the number of their games."""
        return self._table.identical(self._order)

    @cached_property
    def _clusters(self) -> list[Hashable]:
        """The independent unit that each game belongs to."""
        return self._table.clusters(self._order, self._identical)

    @cached_property
    def _completed_clusters(self) -> list[Hashable]:
        return list(compress(self._clusters, ~self._forfeited))

    @cached_property
    def _forfeited(self) -> NDArray[np.bool_]:
        return self._table.forfeited(self._order)

    @cached_property
    def reasons(self) -> dict[str, str]:
        """The first error of each entrant that forfeited a game."""
        games = [self._table.finished(index) for index in self._order[self._forfeited][::-1].tolist()]
        return {str(game.forfeit): game.reason for game in games}

    @cached_property
    def forfeits(self) -> dict[str, int]:
        """Number of forfeited games by name, for entrants that forfeited any."""
        games = [self._table.finished(index) for index in self._order[self._forfeited].tolist()]
        return dict(Counter(str(game.forfeit) for game in games))

    @cached_property
    def competitive(self) -> bool:
        """Whether any game was won."""
        return bool(self.payoff.wins.any())

    @cached_property
    def order(self) -> list[int]:
        """The entrants, best first: by rating, or by mean return if no game was won."""
        means = np.nan_to_num(self.mean_returns.values, nan=-np.inf)
        values = self.ratings().values if self.competitive else means
        order: list[int] = np.argsort(-values, kind="stable").tolist()
        return order

    @cached_property
    def notes(self) -> list[str]:
        """Warnings about unreliable numbers: identical games, too few games, forfeits."""
        return note_texts(self, self._identical)

    def _title(self) -> str:
        return f"{len(self.episodes)} games of {len(self.names)} entrants"

    def __repr__(self) -> str:
        return "\n".join(
            [self._title(), text_table(standings_rows(self), words=1), *(f"Note: {note}" for note in self.notes)]
        )

    def _repr_html_(self) -> str:
        return html_table(self._title(), standings_rows(self), self.notes)

    def pairs(self) -> str:
        """Returns a table of all pairs: win rates, or mean returns if no game was won. The best entrants come first."""
        return text_table(pair_rows(self), words=1)

    def as_dict(self) -> dict[str, Any]:
        """Returns all numbers in plain types, best entrants first, for JSON; unknown ones are NaN."""
        return plain_dict(self)

    def plot(self) -> Figure:
        """Returns a matplotlib figure: win rates and ratings, or mean returns of all pairs if no game was won.

        Save it by `figure.savefig("result.png")`. Needs the extra `plot`.
        """
        return figure_of(self)


def read_tournament(
    *paths: str | os.PathLike[str], into: str | os.PathLike[str] | None = None, team_of: GroupOf | None = None
) -> TournamentResult:
    """Reads the results files of one tournament, such as those of its shards, without playing.

    Args:
        *paths: Files that `tournament(results=...)` wrote, for the same environment and seed.
        into: A file to write all games to, sorted, so that its bytes do not depend on shards; None: none. It may be
            one of `paths`, and `tournament` can resume from it.
        team_of: As in `tournament`.

    Returns:
        The games of all entrants, whose names are sorted.

    Raises:
        ValueError: If no path is given, if a file is not a results file, if settings or the versions of an entrant
            differ, or if a game ended differently in two files.
        OSError: If a file cannot be read or written.
    """
    if not paths:
        raise ValueError("paths must be at least one results file, got none")
    games = merged_file(paths, into).games
    return TournamentResult(sorted(games.names), games, sides_of(team_of, games.agents))
