"""`Payoff`: the ledger of results between policies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer, number
from pz_policymap.results.checks import array_in, check_episode, check_settings
from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games
from pz_policymap.results.lock import LOCK
from pz_policymap.results.ratings import Ratings, bradley_terry
from pz_policymap.results.sums import added

STATE_VERSION = 1

IntMatrix = NDArray[np.int64]
Matrix = NDArray[np.float64]

# What is kept of every ordered pair of policies, side by side, so that recording touches little memory. Counts are
# floats, exact up to 2**53. The last two exist in a ledger with decay alone.
_WINS, _DRAWS, _EPISODES, _RETURN, _REST, _DECAYED_WINS, _DECAYED_DRAWS = range(7)
_COUNTS = slice(_WINS, _EPISODES + 1)


class Counts(NamedTuple):
    """Games between policies; row i, column j is what i had against j, each of shape `(num_policies, num_policies)`.

    Attributes:
        wins: Games that i won.
        draws: Games that nobody won.
        losses: Games that j won.
        games: All of them.
    """

    wins: Matrix
    draws: Matrix
    losses: Matrix
    games: Matrix


class Payoff:
    """Results between the policies of a population, as episodes end.

    A pair of different policies in an episode is one game, won, drawn or lost by the mean sign of the difference in
    return over the pairs of their seats on different sides (see `Episode.sides`). A policy against itself is no game.
    Recording costs the same however many policies there are.

    Args:
        num_policies: The size of the population, from 1; see `grow`.
        decay: What the decayed counts of a pair are multiplied by before each of its games, from 0 to 1: with 0.99 the
            last hundred games or so count. 1: nothing is ever forgotten, and ledgers can be merged.
        prior: How many wins, and as many losses, every pair is taken to have had beforehand, from 0: win rates are
            the means of a Beta(prior, prior) distribution, so that a few games prove little and none are one half.

    Raises:
        TypeError: If an argument is no number.
        ValueError: If it is out of range.

    Example:
        >>> from pz_policymap import Episode, Payoff
        >>> payoff = Payoff(num_policies=3)
        >>> for _ in range(8):
        ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, -1.0]))
        >>> payoff.wins.tolist()
        [[0, 8, 0], [0, 0, 0], [0, 0, 0]]
        >>> payoff.win_rates.tolist()
        [[0.5, 0.9, 0.5], [0.09999999999999998, 0.5, 0.5], [0.5, 0.5, 0.5]]
    """

    def __init__(self, num_policies: int, decay: float = 1.0, prior: float = 1.0) -> None:
        size = integer("num_policies", num_policies, 1)
        self.decay = number("decay", decay, 0.0, 1.0)
        self.prior = number("prior", prior, 0.0)
        self._table = np.zeros((size, size, _DECAYED_WINS if self.decay == 1.0 else _DECAYED_DRAWS + 1))

    @property
    def num_policies(self) -> int:
        """The size of the population."""
        return len(self._table)

    @property
    def wins(self) -> IntMatrix:
        """How many games i won against j, shape `(num_policies, num_policies)`."""
        return self._counted(_WINS)

    @property
    def draws(self) -> IntMatrix:
        """How many games of i and j nobody won."""
        return self._counted(_DRAWS)

    @property
    def losses(self) -> IntMatrix:
        """How many games i lost against j."""
        losses: IntMatrix = self.wins.T
        return losses

    @property
    def games(self) -> IntMatrix:
        """How many games i and j had; a policy has none with itself."""
        wins, draws = self._read(_WINS, _DRAWS)
        games: IntMatrix = (wins + wins.T + draws).astype(np.int64)
        return games

    @property
    def decayed(self) -> Counts:
        """The same four with old games counting less; without decay they are the raw ones."""
        first = _WINS if self.decay == 1.0 else _DECAYED_WINS
        wins, draws = self._read(first, first + 1)
        return Counts(wins, draws, wins.T, wins + wins.T + draws)

    @property
    def win_rates(self) -> Matrix:
        """How likely i beats j, a draw being half a win: decayed games and the prior, shape as `wins`.

        `(wins + draws / 2 + prior) / (games + 2 prior)` above the diagonal, and what is missing to 1 below, so that
        `win_rates + win_rates.T` is exactly 1. Pairs without games, and the diagonal, are one half.
        """
        wins, draws, _, played = self.decayed
        total = played + 2.0 * self.prior
        rates = np.full_like(wins, 0.5)
        np.divide(wins + draws / 2.0 + self.prior, total, out=rates, where=total > 0.0)
        below = np.tri(len(rates), k=-1, dtype=np.bool_)
        np.subtract(1.0, rates.T, out=rates, where=below)
        return rates

    @property
    def episodes(self) -> IntMatrix:
        """How many episodes i and j shared, on whichever sides; on the diagonal, those where i had several seats."""
        return self._counted(_EPISODES)

    @property
    def mean_returns(self) -> Matrix:
        """The cross-play matrix: the mean return of i in the episodes that j shared; NaN where there were none.

        An episode counts once, with the mean over the seats of i. The diagonal is self-play: episodes in which i had
        several seats. Not decayed.
        """
        shared, total = self._read(_EPISODES, _RETURN)
        means: Matrix = np.full(shared.shape, np.nan)
        np.divide(total, shared, out=means, where=shared > 0.0)
        return means

    def ratings(self) -> Ratings:
        """Returns one number a policy, by Bradley-Terry, with its standard error, in points of Elo's scale.

        A lead of d points stands for a win rate of `1 / (1 + 10**(-d / 400))`. The mean over the population is 0, and
        the errors are those of the distance to that mean. Games are the decayed ones, a draw is half a win each. So
        that somebody who won or lost everything has a finite rating, each policy is taken to have won and lost
        `prior` games against one more policy rated 0; see `bradley_terry` for the sources.

        Raises:
            ValueError: If `prior` is 0, or so small beside the games that rounding loses it.

        Example:
            >>> payoff = Payoff(num_policies=2)
            >>> for _ in range(10):
            ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
            >>> ratings = payoff.ratings()
            >>> ratings.values.round().tolist(), ratings.errors.round().tolist()
            ([239.0, -239.0], [102.0, 102.0])
        """
        wins, draws, _, _ = self.decayed
        return bradley_terry(wins + draws / 2.0, self.prior)

    def record(self, episode: Episode) -> None:
        """Enters what an episode ended with.

        Raises:
            TypeError: If it is no `Episode`.
            ValueError: If a policy is not of this population; nothing has changed then.
        """
        check_episode(episode, self.num_policies)
        policies, seats, played, results = games(episode)
        returns: list[list[float]] = [[] for _ in policies]
        for position, value in zip(seats, episode.returns, strict=True):
            returns[position].append(value)
        shared = np.ones(played.shape)
        np.fill_diagonal(shared, [len(values) > 1 for values in returns])
        means = np.array([math.fsum(values) / len(values) for values in returns])
        won, drawn = results > 0.0, played & (results == 0.0)

        block, more = (policies[:, None], policies), means[:, None] * shared
        with LOCK:
            entries = self._table[block]
            entries[..., _WINS] += won
            entries[..., _DRAWS] += drawn
            entries[..., _EPISODES] += shared
            entries[..., _RETURN], entries[..., _REST] = added(entries[..., _RETURN], entries[..., _REST], more)
            if self.decay != 1.0:
                entries[..., _DECAYED_WINS:] *= np.where(played, self.decay, 1.0)[..., None]
                entries[..., _DECAYED_WINS] += won
                entries[..., _DECAYED_DRAWS] += drawn
            self._table[block] = entries

    def grow(self, num_policies: int) -> None:
        """Makes room for a larger population; what is known stays.

        Raises:
            TypeError: If `num_policies` is no integer.
            ValueError: If it is below the present number.
        """
        with LOCK:
            size = integer("num_policies", num_policies, self.num_policies)
            self._table = _enlarged(self._table, size)

    def merge(self, other: Payoff) -> None:
        """Adds the results of another ledger of the same population, such as another worker's.

        The outcome is the same, to the last bit, in whatever order ledgers are merged, and the same as if one ledger
        had recorded all episodes (see `sums` for the limits of mean returns). The smaller ledger grows.

        Raises:
            TypeError: If `other` is no ledger.
            ValueError: If one of the two decays, for then the order of games matters: let workers send episodes,
                which one ledger records.
        """
        if not isinstance(other, Payoff):
            raise TypeError(f"other must be a Payoff, got {other!r}")
        if self.decay != 1.0 or other.decay != 1.0:
            raise ValueError(
                f"decay must be 1.0 in both ledgers, got {self.decay} and {other.decay}: decayed counts depend on the "
                f"order of games; let workers send episodes, which one ledger records"
            )
        with LOCK:  # into a copy: a merge that is interrupted has changed nothing
            table, theirs = _enlarged(self._table, max(self.num_policies, other.num_policies)), other._table
            mine = table[: other.num_policies, : other.num_policies]
            total, rest = added(mine[..., _RETURN], mine[..., _REST], theirs[..., _RETURN])
            total, rest = added(total, rest, theirs[..., _REST])
            mine += theirs
            mine[..., _RETURN], mine[..., _REST] = total, rest
            self._table = table

    def state_dict(self) -> dict[str, Any]:
        """Returns all that must survive a restart, for `save`."""
        with LOCK:
            table = self._table.copy()
        return {"version": STATE_VERSION, "decay": self.decay, "prior": self.prior, "table": table}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what was saved in place of what this ledger holds, which grows to the saved size where it is smaller.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is no dict.
            ValueError: If it is of another version, or of a ledger with another decay or prior, or damaged; nothing
                has changed then.
        """
        check_settings(state, {"version": STATE_VERSION, "decay": self.decay, "prior": self.prior})
        table = array_in(state, "table")
        size, width = len(table) if table.ndim else 0, self._table.shape[2]
        if (
            table.dtype != np.float64
            or not size
            or table.shape != (size, size, width)
            or not np.isfinite(table).all()
            or (table[..., _COUNTS] < 0.0).any()
            or (table[..., _COUNTS] % 1.0).any()
            or (table[..., _DECAYED_WINS:] < 0.0).any()
        ):
            raise ValueError(
                f"state does not fit: 'table' must be counts and finite sums of shape (n, n, {width}), "
                f"got {table.dtype} of shape {table.shape}"
            )
        with LOCK:
            self._table = _enlarged(table, max(size, self.num_policies))

    def _counted(self, entry: int) -> IntMatrix:
        counts: IntMatrix = self._read(entry)[0].astype(np.int64)
        return counts

    def _read(self, *entries: int) -> list[Matrix]:
        """Returns copies of these entries of all pairs, of one and the same moment."""
        with LOCK:
            return [self._table[..., entry].copy() for entry in entries]


def _enlarged(table: Matrix, size: int) -> Matrix:
    """Returns a copy of a table with room for so many policies."""
    larger = np.zeros((size, size, table.shape[2]))
    larger[: len(table), : len(table)] = table
    return larger
