"""`PairTable`: the storage of `Payoff`, with counts and sums of every ordered pair of policies.

One array of shape `(num_policies, num_policies, columns)` holds them, so that recording touches little memory. Counts
are floats, exact up to 2**53. A sum takes two columns, see `sums`. Only a ledger with decay has the last two columns.
Joint scores of episodes with several games are kept beside it, see `lineups`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games
from pz_policymap.results.ledger import array_in
from pz_policymap.results.lineups import Lineups
from pz_policymap.results.sums import added

Table = NDArray[np.float64]

# JOINT_GAMES: those in episodes with several games.
WINS, DRAWS, JOINT_GAMES, EPISODES, RETURN, SQUARE, _RETURN_REST, _SQUARE_REST, DECAYED_WINS, DECAYED_DRAWS = range(10)
_COUNTS, _SUMS, _RESTS = slice(WINS, RETURN), slice(RETURN, _RETURN_REST), slice(_RETURN_REST, DECAYED_WINS)
_DECAYED = slice(DECAYED_WINS, DECAYED_DRAWS + 1)

MAX_SQUARE = 1e300  # squares of returns beyond 1e150 are cut, which marks the sum as out of range


class PairTable:
    """Counts and sums by pair of policies.

    Args:
        values: The array.
        lineups: Joint scores of episodes with several games.

    Attributes:
        values: As given.
        lineups: As given.
    """

    def __init__(self, values: Table, lineups: Lineups) -> None:
        self.values, self.lineups = values, lineups

    @classmethod
    def empty(cls, num_policies: int, decays: bool) -> PairTable:
        """Returns a table without episodes."""
        columns = DECAYED_DRAWS + 1 if decays else DECAYED_WINS
        return cls(np.zeros((num_policies, num_policies, columns)), Lineups())

    def record(self, episode: Episode, decay: float) -> None:
        """Adds one episode, in one write. `decay` is the factor of the decayed counts of each pair with a game."""
        policies, seats, played, results = games(episode)
        means = [mean for _, mean in sorted(episode.mean_returns.items())]
        squares = [min(mean * mean, MAX_SQUARE) for mean in means]

        k, met, result = len(policies), played.ravel(), results.ravel()
        several_games = k > 2 and np.count_nonzero(met) > 2  # both orders of a pair count
        cells = (policies[:, None] * len(self.values) + policies).ravel()
        rows = self.values.reshape(-1, self.values.shape[2])
        entries = rows[cells]
        change = np.ones((k * k, _COUNTS.stop))
        change[:, WINS] = result > 0.0
        change[:, DRAWS] = met ^ (result != 0.0)
        change[:, JOINT_GAMES] = met if several_games else 0.0
        change[:: k + 1, EPISODES] = np.bincount(seats) > 1
        entries[:, _COUNTS] += change
        terms = np.array([means, squares]).T.repeat(k, axis=0) * change[:, EPISODES, None]
        entries[:, _SUMS], entries[:, _RESTS] = added(entries[:, _SUMS], entries[:, _RESTS], terms)
        if rows.shape[1] > DECAYED_WINS:
            entries[met, DECAYED_WINS:] *= decay
            entries[:, DECAYED_WINS:] += change[:, : DRAWS + 1]
        rows[cells] = entries
        if several_games:
            scores = (results.sum(axis=1) + played.sum(axis=1)) / 2.0  # games won plus half the draws
            self.lineups.record(tuple(policies.tolist()), played, scores)

    def grown(self, num_policies: int) -> PairTable:
        """Returns a copy with room for `num_policies` policies; the lineups are shared."""
        size, _, columns = self.values.shape
        larger = np.zeros((num_policies, num_policies, columns))
        larger[:size, :size] = self.values
        return PairTable(larger, self.lineups)

    def without(self, policy: int) -> PairTable:
        """Returns a copy without the results of one policy."""
        values = self.values.copy()
        values[policy], values[:, policy] = 0.0, 0.0
        return PairTable(values, self.lineups.without(policy))

    def merged(self, other: PairTable) -> PairTable:
        """Returns the table of all episodes of two tables without decay."""
        union = self.grown(max(len(self.values), len(other.values)))
        mine, theirs = union.values[: len(other.values), : len(other.values)], other.values
        sums, rests = added(mine[..., _SUMS], mine[..., _RESTS], theirs[..., _SUMS])
        sums, rests = added(sums, rests, theirs[..., _RESTS])
        mine += theirs
        mine[..., _SUMS], mine[..., _RESTS] = sums, rests
        return PairTable(union.values, self.lineups.merged(other.lineups))

    def state(self) -> dict[str, Any]:
        """Returns copies of everything in plain types."""
        lineups, limit = self.lineups.state()
        return {"lineups": lineups, "lineups_limit": limit, "table": self.values.copy()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], decays: bool) -> PairTable:
        """Returns the table of a state.

        Raises:
            ValueError: If the state is damaged.
        """
        values = array_in(state, "table")
        check_table(values, DECAYED_DRAWS + 1 if decays else DECAYED_WINS)
        return cls(values, Lineups.from_state(array_in(state, "lineups"), state.get("lineups_limit"), len(values)))


def check_table(table: NDArray[Any], columns: int) -> None:
    """Raises an error if an array from a loaded state is not a table with this number of columns.

    Raises:
        ValueError: If the type, the shape or a number is wrong.
    """
    size = len(table) if table.ndim else 0
    fits = table.dtype == np.float64 and size > 0 and table.shape == (size, size, columns)
    if fits:
        counts, decayed = table[..., _COUNTS], table[..., _DECAYED]
        fits = bool(np.isfinite(table).all() and (counts >= 0).all() and (decayed >= 0).all())
        fits = fits and not np.mod(counts, 1.0).any()
    if not fits:
        raise ValueError(
            f"state does not fit: 'table' must be counts and finite sums of shape (n, n, {columns}), "
            f"got {table.dtype} of shape {table.shape}"
        )
