"""`Payoff`: the ledger of results between policies.

This file is long because the ledger has many documented readings; the arithmetic stands in files of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer, number
from pz_policymap.results import pair_table as pairs
from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games
from pz_policymap.results.ledger import LOCK, MAX_ROWS, array_in, check_episode, check_settings, text_table
from pz_policymap.results.lineups import Lineups
from pz_policymap.results.ratings import Ratings, bradley_terry
from pz_policymap.results.win_rates import WinRates, clustered_win_rates

STATE_VERSION = 1

IntMatrix = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Counts(NamedTuple):
    """Games between policies; row i, column j is policy i against policy j, shape `(num_policies, num_policies)`.

    Attributes:
        wins: Games that i won.
        draws: Games without a winner.
        losses: Games that j won.
        games: All games.
    """

    wins: Matrix
    draws: Matrix
    losses: Matrix
    games: Matrix


class Payoff:
    """Results between the policies of a population, recorded as episodes end.

    A pair of different policies in one episode is one game: won, drawn or lost by the mean sign of the difference in
    return over the pairs of their seats on different sides (see `Episode.sides`). A policy against itself is not a
    game. The cost of recording does not depend on the number of policies.

    Args:
        num_policies: Size of the population, >= 1; see `grow`.
        decay: Factor by which the decayed counts of a pair are multiplied before each of its games, from 0 to 1. With
            0.99, about the last hundred games count. With 1, all games count alike, and ledgers can be merged.
        prior: Number of virtual wins, and as many losses, of every pair, >= 0. Win rates are then the means of a
            Beta(prior, prior) distribution: close to one half while there are few games.

    Raises:
        TypeError: If an argument is not a number.
        ValueError: If an argument is out of range.

    Example:
        >>> from pz_policymap import Episode, Payoff
        >>> payoff = Payoff(num_policies=3)
        >>> for _ in range(8):
        ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, -1.0]))
        >>> payoff.wins.tolist()
        [[0, 8, 0], [0, 0, 0], [0, 0, 0]]
        >>> payoff  # win rates
        Payoff(num_policies=3)
              0     1     2
        0     -  0.90     -
        1  0.10     -     -
        2     -     -     -
    """

    def __init__(self, num_policies: int, decay: float = 1.0, prior: float = 1.0) -> None:
        size = integer("num_policies", num_policies, 1)
        self.decay = number("decay", decay, 0.0, 1.0)
        self.prior = number("prior", prior, 0.0)
        self._table = pairs.new_table(size, self.decay != 1.0)
        self._lineups = Lineups()

    def __repr__(self) -> str:
        with LOCK:
            rates, met = self.win_rates, self.games > 0
        shown = range(min(len(rates), MAX_ROWS))
        more = ["..."] if len(rates) > MAX_ROWS else []
        rows = [["", *map(str, shown), *more]]
        rows += [[str(i), *(f"{rates[i, j]:.2f}" if met[i, j] else "-" for j in shown), *more] for i in shown]
        rows += [more * len(rows[0])] * len(more)
        settings = {"decay": (self.decay, 1.0), "prior": (self.prior, 1.0)}
        changed = [f", {name}={value:g}" for name, (value, default) in settings.items() if value != default]
        return text_table(f"Payoff(num_policies={len(rates)}{''.join(changed)})", rows)

    @property
    def num_policies(self) -> int:
        """Size of the population."""
        return len(self._table)

    @property
    def wins(self) -> IntMatrix:
        """Number of games i won against j, shape `(num_policies, num_policies)`."""
        return self._counted(pairs.WINS)

    @property
    def draws(self) -> IntMatrix:
        """Number of games of i and j without a winner."""
        return self._counted(pairs.DRAWS)

    @property
    def losses(self) -> IntMatrix:
        """Number of games i lost against j."""
        losses: IntMatrix = self.wins.T
        return losses

    @property
    def games(self) -> IntMatrix:
        """Number of games of i and j; 0 on the diagonal."""
        wins, draws = self._read(pairs.WINS, pairs.DRAWS)
        games: IntMatrix = (wins + wins.T + draws).astype(np.int64)
        return games

    def results_of(self, policy: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the wins of one policy, a draw counting half, and its games, against each policy; not decayed.

        It reads one row, and so takes less time than the matrices.
        """
        with LOCK:
            row, column = self._table[policy, :, : pairs.DRAWS + 1], self._table[:, policy, pairs.WINS]
            wins, draws = row[:, pairs.WINS], row[:, pairs.DRAWS]
            return wins + draws / 2.0, wins + draws + column

    @property
    def decayed(self) -> Counts:
        """The same four counts, in which old games count less; equal to them without decay."""
        wins, draws = self._read(*self._current)
        return Counts(wins, draws, wins.T, wins + wins.T + draws)

    @property
    def win_rates(self) -> Matrix:
        """Probability that i beats j, with a draw as half a win, from decayed games and the prior.

        `(wins + draws / 2 + prior) / (games + 2 prior)` above the diagonal, and 1 minus that below, so that
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
        """Number of episodes i and j shared, on any sides; on the diagonal, those in which i had several seats."""
        return self._counted(pairs.EPISODES)

    @property
    def mean_returns(self) -> Matrix:
        """The cross-play matrix: mean return of i in the episodes shared with j; NaN without such episodes.

        An episode counts once, with the mean over the seats of i. The diagonal is self-play: episodes in which i had
        several seats. Not decayed.
        """
        shared, total = self._read(pairs.EPISODES, pairs.RETURN)
        means: Matrix = np.full(shared.shape, np.nan)
        np.divide(total, shared, out=means, where=shared > 0.0)
        return means

    @property
    def mean_return_errors(self) -> Matrix:
        """Standard errors of `mean_returns`, with episodes as the independent unit; NaN below two episodes.

        The sample standard deviation over the square root of the number of episodes. Also NaN where a return beyond
        1e150 was recorded. Precise while the standard deviation is above a millionth of the mean.
        """
        shared, total, squares = self._read(pairs.EPISODES, pairs.RETURN, pairs.SQUARE)
        errors: Matrix = np.full(shared.shape, np.nan)
        known = (shared > 1.0) & (squares < pairs.MAX_SQUARE)
        count, sums = shared[known], total[known]
        variance = np.maximum(squares[known] - sums * (sums / count), 0.0) / (count - 1.0)
        errors[known] = np.sqrt(variance / count)
        return errors

    def overall_win_rates(self, confidence: float = 0.95) -> WinRates:
        """Returns the win rate of each policy over all its games, with intervals that count episodes as clusters.

        Not decayed and without the prior. The games of one episode are not independent of each other; different
        episodes are taken to be. See `clustered_win_rates`.

        Args:
            confidence: Probability that an interval covers the true win rate, above 0 and below 1.

        Example:
            >>> payoff = Payoff(num_policies=2)
            >>> for _ in range(10):
            ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
            >>> values, lows, highs, _ = payoff.overall_win_rates()
            >>> values.tolist(), lows.round(2).tolist(), highs.round(2).tolist()
            ([1.0, 0.0], [0.72, 0.0], [1.0, 0.28])
        """
        level = number("confidence", confidence, 0.0, 1.0)
        if not 0.0 < level < 1.0:
            raise ValueError(f"confidence must be above 0 and below 1, got {confidence!r}")
        with LOCK:
            wins, draws, joint = self._read(pairs.WINS, pairs.DRAWS, pairs.JOINT_GAMES)
            scores, games, joint = (counts.sum(axis=1) for counts in (wins + draws / 2.0, wins + wins.T + draws, joint))
            return clustered_win_rates(scores, games, joint, self._lineups, level)

    def ratings(self) -> Ratings:
        """Returns one Bradley-Terry rating per policy, with its standard error, in points of the Elo scale.

        A lead of d points stands for a win rate of `1 / (1 + 10**(-d / 400))`. The mean over the population is 0, and
        errors are those of the distance to that mean. Games are the decayed ones, and a draw is half a win for each
        side. Each policy is taken to have won and lost `prior` games against one more policy rated 0, so that ratings
        are finite; see `bradley_terry` for the sources.

        Errors count the games of one episode as one cluster. With decay they are an approximation: the errors of
        independent decayed games, times the ratio of clustered to independent errors over all games.

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
        with LOCK:
            wins, draws, joint = self._read(pairs.WINS, pairs.DRAWS, pairs.JOINT_GAMES)
            scores = wins + draws / 2.0
            clustered = bradley_terry(scores, self.prior, self._lineups, joint)
            if self.decay == 1.0:
                return clustered
            wins, draws = self._read(*self._current)
        values, errors = bradley_terry(wins + draws / 2.0, self.prior)
        independent = bradley_terry(scores, self.prior).errors
        ratio = np.divide(clustered.errors, independent, out=np.ones(len(wins)), where=independent > 0.0)
        return Ratings(values, errors * ratio)

    def scalars(self, prefix: str = "policy_") -> dict[str, float]:
        """Returns games, overall win rate and rating of each policy as a flat dict, for loggers of named numbers.

        Args:
            prefix: Text before the number of a policy: "policy_0/games", "policy_0/win_rate", "policy_0/rating",
                "policy_0/rating_error". Without games a policy has no win rate, and with `prior=0` no rating.
        """
        with LOCK:
            columns = {"games": self.games.sum(axis=1), "win_rate": self.overall_win_rates().values}
            if self.prior > 0.0:
                columns["rating"], columns["rating_error"] = self.ratings()
        return {
            f"{prefix}{policy}/{name}": float(values[policy])
            for policy in range(len(columns["games"]))
            for name, values in columns.items()
            if not math.isnan(values[policy])
        }

    def record(self, episode: Episode) -> None:
        """Adds the outcome of one episode.

        Raises:
            TypeError: If `episode` is not an `Episode`.
            ValueError: If a policy is not in this population; nothing has changed then.
        """
        check_episode(episode, self.num_policies)
        policies, seats, played, results = games(episode)
        returns: list[list[float]] = [[] for _ in policies]
        for position, value in zip(seats, episode.returns, strict=True):
            returns[position].append(value)
        means = [math.fsum(values) / len(values) for values in returns]
        several = [len(values) > 1 for values in returns]
        with LOCK:
            pairs.add_episode(self._table, policies, played, results, means, several, self.decay)
            if len(policies) > 2 and played.sum() > 2:  # several games; both orders of a pair count
                scores = (results.sum(axis=1) + played.sum(axis=1)) / 2.0  # games won plus half the draws
                self._lineups.record(tuple(policies.tolist()), played, scores)

    def grow(self, num_policies: int) -> None:
        """Makes room for a larger population. All results stay.

        Raises:
            TypeError: If `num_policies` is not an integer.
            ValueError: If it is below the present number.
        """
        with LOCK:
            size = integer("num_policies", num_policies, self.num_policies)
            self._table = pairs.enlarged(self._table, size)

    def forget(self, policy: int) -> None:
        """Removes all results of one policy, such as one whose parameters have been replaced.

        Games between other policies stay. Those from episodes with the forgotten policy no longer count as clusters of
        their own in standard errors, but are taken to vary as the other episodes do.

        Raises:
            TypeError: If `policy` is not an integer.
            ValueError: If it is not in this population.
        """
        with LOCK:
            index = integer("policy", policy, 0, self.num_policies - 1)
            self._lineups = self._lineups.without(index)
            self._table[index], self._table[:, index] = 0.0, 0.0

    def merge(self, other: Payoff) -> None:
        """Adds the results of another ledger of the same population, such as that of another worker.

        The result does not depend on the order of merges, to the last bit, and equals that of one ledger which recorded
        all episodes (see `sums` for the limits of mean returns). The smaller ledger grows.

        Raises:
            TypeError: If `other` is not a `Payoff`.
            ValueError: If one of the two decays, because decayed counts depend on the order of games. Let workers
                send episodes, and one ledger record them.
        """
        if not isinstance(other, Payoff):
            raise TypeError(f"other must be a Payoff, got {other!r}")
        if self.decay != 1.0 or other.decay != 1.0:
            raise ValueError(
                f"decay must be 1.0 in both ledgers, got {self.decay} and {other.decay}: decayed counts depend on the "
                f"order of games; let workers send episodes, which one ledger records"
            )
        with LOCK:  # copies first: an interrupted merge changes nothing
            table, lineups = pairs.merged(self._table, other._table), self._lineups.merged(other._lineups)
            self._table, self._lineups = table, lineups

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that must survive a restart, for `save`."""
        with LOCK:
            lineups, limit = self._lineups.state()
            table = self._table.copy()
        return {
            "version": STATE_VERSION,
            "decay": self.decay,
            "prior": self.prior,
            "lineups": lineups,
            "lineups_limit": limit,
            "table": table,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces the results of this ledger with saved ones. A smaller ledger grows to the saved size.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is not a dict.
            ValueError: If it has another version, decay or prior, or is damaged; nothing has changed then.
        """
        check_settings(state, {"version": STATE_VERSION, "decay": self.decay, "prior": self.prior})
        table, lineups = array_in(state, "table"), array_in(state, "lineups")
        pairs.check_table(table, self._table.shape[2])
        limit = state.get("lineups_limit")
        if lineups.dtype != np.float64 or lineups.ndim != 1 or not np.isfinite(lineups).all() or type(limit) is not int:
            raise ValueError(
                f"state does not fit: 'lineups' must be a vector of finite floats and 'lineups_limit' an integer, "
                f"got {lineups.dtype} of shape {lineups.shape} and {limit!r}"
            )
        loaded = Lineups.from_state(lineups, limit, len(table))
        with LOCK:
            self._table, self._lineups = pairs.enlarged(table, max(len(table), self.num_policies)), loaded

    @property
    def _current(self) -> tuple[int, int]:
        """The columns of the wins and draws that count at present."""
        return (pairs.WINS, pairs.DRAWS) if self.decay == 1.0 else (pairs.DECAYED_WINS, pairs.DECAYED_DRAWS)

    def _counted(self, column: int) -> IntMatrix:
        counts: IntMatrix = self._read(column)[0].astype(np.int64)
        return counts

    def _read(self, *columns: int) -> list[Matrix]:
        """Returns copies of these columns of all pairs, from the same moment."""
        with LOCK:
            return [self._table[..., column].copy() for column in columns]
