"""`Payoff`: the ledger of results between policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pz_policymap.arguments import integer, number
from pz_policymap.results import pair_table as pairs
from pz_policymap.results.episode import Episode
from pz_policymap.results.game_counts import GameCounts, IntMatrix, Matrix
from pz_policymap.results.intervals import Intervals, clustered_wilson, confidence_of, mean_errors, mean_intervals
from pz_policymap.results.ledger import LOCK, MAX_ROWS, check_episode, check_settings, flat_scalars, text_table
from pz_policymap.results.pair_table import PairTable
from pz_policymap.results.ratings import Ratings, bradley_terry, decayed_ratings

STATE_VERSION = 1


class Payoff(GameCounts):
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
        super().__init__(
            PairTable.empty(integer("num_policies", num_policies, 1), decay != 1.0),
            number("decay", decay, 0.0, 1.0),
            number("prior", prior, 0.0),
        )

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
        return f"Payoff(num_policies={len(rates)}{''.join(changed)})\n{text_table(rows)}"

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
        shared, sums, _ = self._returns()
        means: Matrix = np.divide(sums, shared, out=np.full(shared.shape, np.nan), where=shared > 0.0)
        return means

    @property
    def mean_return_errors(self) -> Matrix:
        """Standard errors of `mean_returns`, with episodes as the independent unit; NaN below two episodes.

        The sample standard deviation over the square root of the number of episodes. Also NaN where a return beyond
        1e150 was recorded. Precise while the standard deviation is above a millionth of the mean.
        """
        return mean_errors(*self._returns())

    def mean_return_intervals(self, confidence: float = 0.95) -> Intervals:
        """Returns `mean_returns` with Student's confidence intervals, which count episodes.

        Args:
            confidence: Probability that an interval covers the true mean, above 0 and below 1.

        Returns:
            Arrays of shape `(num_policies, num_policies)`; limits are NaN where `mean_return_errors` are.

        Raises:
            TypeError: If `confidence` is not a number.
            ValueError: If it is out of range.
        """
        level = confidence_of(confidence)
        return mean_intervals(*self._returns(), confidence=level)

    def overall_win_rates(self, confidence: float = 0.95) -> Intervals:
        """Returns the win rate of each policy over all its games, with intervals that count episodes as clusters.

        Not decayed and without the prior. The games of one episode are not independent of each other; different
        episodes are taken to be. See `clustered_wilson` for the formulas. A draw counts half; such scores vary
        less than wins and losses, which makes the interval wide. `units` is the number of episodes.

        Args:
            confidence: Probability that an interval covers the true win rate, above 0 and below 1.

        Returns:
            Arrays of shape `(num_policies,)`; NaN without games.

        Raises:
            TypeError: If `confidence` is not a number.
            ValueError: If it is out of range.

        Example:
            >>> payoff = Payoff(num_policies=2)
            >>> for _ in range(10):
            ...     payoff.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
            >>> rates = payoff.overall_win_rates()
            >>> rates.values.tolist(), rates.lows.round(2).tolist(), rates.highs.round(2).tolist()
            ([1.0, 0.0], [0.72, 0.0], [1.0, 0.28])
            >>> rates.units.tolist()
            [10.0, 10.0]
        """
        level = confidence_of(confidence)
        with LOCK:
            wins, draws, joint = self._read(pairs.WINS, pairs.DRAWS, pairs.JOINT_GAMES)
            scores, games, joint = (counts.sum(axis=1) for counts in (wins + draws / 2.0, wins + wins.T + draws, joint))
            rates = np.divide(scores, games, out=np.full(len(games), np.nan), where=games > 0.0)
            squares, units = self._table.lineups.deviations(np.nan_to_num(rates), games, joint)
        return clustered_wilson(rates, games, squares, units, level)

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
            if self.decay == 1.0:
                return bradley_terry(scores, self.prior, self._table.lineups, joint)
            wins, draws = self._read(*self._current)
            return decayed_ratings(wins + draws / 2.0, scores, self.prior, self._table.lineups, joint)

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
        return flat_scalars(prefix, columns)

    def record(self, episode: Episode) -> None:
        """Adds the outcome of one episode.

        Raises:
            TypeError: If `episode` is not an `Episode`.
            ValueError: If a policy is not in this population; nothing has changed then.
        """
        check_episode(episode, self.num_policies)
        with LOCK:
            self._table.record(episode, self.decay)

    def grow(self, num_policies: int) -> None:
        """Makes room for a larger population. All results stay.

        Raises:
            TypeError: If `num_policies` is not an integer.
            ValueError: If it is below the present number.
        """
        with LOCK:
            size = integer("num_policies", num_policies, self.num_policies)
            self._table = self._table.grown(size)

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
            self._table = self._table.without(index)

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
        with LOCK:
            self._table = self._table.merged(other._table)  # a copy, so that an interrupted merge changes nothing

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to save in a checkpoint, for `save`."""
        with LOCK:
            return {**self._settings, **self._table.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces the results of this ledger with saved ones. A smaller ledger grows to the saved size.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is not a dict.
            ValueError: If it has another version, decay or prior, or is damaged; nothing has changed then.
        """
        check_settings(state, self._settings)
        loaded = PairTable.from_state(state, self.decay != 1.0)
        with LOCK:
            self._table = loaded.grown(max(len(loaded.values), self.num_policies))

    @property
    def _settings(self) -> dict[str, Any]:
        """Settings that must be equal in the ledger that saved a state and the one that loads it."""
        return {"version": STATE_VERSION, "decay": self.decay, "prior": self.prior}

    def _returns(self) -> tuple[Matrix, Matrix, Matrix]:
        """Returns the number of episodes, the sums of returns and of their squares, infinite where they were cut."""
        shared, sums, squares = self._read(pairs.EPISODES, pairs.RETURN, pairs.SQUARE)
        squares[squares >= pairs.MAX_SQUARE] = np.inf
        return shared, sums, squares
