"""`GameCounts`: counts of games between policies and their win rates, the first part of `Payoff`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results import pair_table as pairs
from pz_policymap.results.ledger import LOCK

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


class GameCounts:
    """Counts of games and win rates, read from a table.

    Args:
        table: The storage.
        decay: As in `Payoff`.
        prior: As in `Payoff`.

    Attributes:
        decay: As given.
        prior: As given.
    """

    def __init__(self, table: pairs.PairTable, decay: float, prior: float) -> None:
        self._table, self.decay, self.prior = table, decay, prior

    @property
    def num_policies(self) -> int:
        """Size of the population."""
        return len(self._table.values)

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

    def results_of(self, policy: int) -> tuple[Matrix, Matrix]:
        """Returns the wins of one policy, a draw counting half, and its games, against each policy; not decayed.

        It reads one row, and so takes less time than the matrices.
        """
        wins, draws, losses = self._row(policy, pairs.WINS, pairs.DRAWS)
        return wins + draws / 2.0, wins + draws + losses

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
        rates = self._posterior_means(wins, draws, played)
        below = np.tri(len(rates), k=-1, dtype=np.bool_)
        np.subtract(1.0, rates.T, out=rates, where=below)
        return rates

    def win_rates_of(self, policy: int) -> Matrix:
        """Returns the row of `win_rates` of one policy, in less time than the matrix, shape `(num_policies,)`."""
        wins, draws, losses = self._row(policy, *self._current)
        above = np.arange(len(wins)) > policy
        rates = self._posterior_means(np.where(above, wins, losses), draws, wins + losses + draws)
        return np.where(above, rates, 1.0 - rates)

    def _posterior_means(self, wins: Matrix, draws: Matrix, games: Matrix) -> Matrix:
        """Returns win rates with the prior; one half without games and prior."""
        total, rates = games + 2.0 * self.prior, np.full_like(wins, 0.5)
        np.divide(wins + draws / 2.0 + self.prior, total, out=rates, where=total > 0.0)
        return rates

    @property
    def _current(self) -> tuple[int, int]:
        """The columns of the wins and draws that count at present."""
        return (pairs.WINS, pairs.DRAWS) if self.decay == 1.0 else (pairs.DECAYED_WINS, pairs.DECAYED_DRAWS)

    def _counted(self, column: int) -> IntMatrix:
        counts: IntMatrix = self._read(column)[0].astype(np.int64)
        return counts

    def _row(self, policy: int, wins: int, draws: int) -> tuple[Matrix, Matrix, Matrix]:
        """Returns copies of the wins, draws and losses of one policy, given the columns of wins and draws."""
        with LOCK:
            row, column = self._table.values[policy], self._table.values[:, policy]
            return row[:, wins].copy(), row[:, draws].copy(), column[:, wins].copy()

    def _read(self, *columns: int) -> list[Matrix]:
        """Returns copies of these columns of all pairs, from the same moment."""
        with LOCK:
            return [self._table.values[..., column].copy() for column in columns]
