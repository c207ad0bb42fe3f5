"""The table behind `Payoff`: counts and sums of every ordered pair of policies, as functions of one array.

The array has shape `(num_policies, num_policies, columns)`, so that recording touches little memory. Counts are floats,
exact up to 2**53. A sum takes two columns, see `sums`. Only a ledger with decay has the last two columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.sums import added

Table = NDArray[np.float64]

WINS, DRAWS, JOINT_GAMES, EPISODES, RETURN, SQUARE, _RETURN_REST, _SQUARE_REST, DECAYED_WINS, DECAYED_DRAWS = range(10)
_COUNTS, _SUMS, _RESTS = slice(WINS, RETURN), slice(RETURN, _RETURN_REST), slice(_RETURN_REST, DECAYED_WINS)
_DECAYED = slice(DECAYED_WINS, DECAYED_DRAWS + 1)

MAX_SQUARE = 1e300  # squares of returns beyond 1e150 are cut, and the sum then says that it is out of range


def new_table(num_policies: int, decays: bool) -> Table:
    """Returns an empty table."""
    return np.zeros((num_policies, num_policies, DECAYED_DRAWS + 1 if decays else DECAYED_WINS))


def add_episode(
    table: Table,
    policies: NDArray[np.int64],
    played: NDArray[np.bool_],
    results: Table,
    means: list[float],
    several: list[bool],
    decay: float,
) -> None:
    """Adds one episode to the table, in one write.

    Args:
        table: The table, changed in place.
        policies: The k distinct policies of the episode, shape `(k,)`.
        played: Whether two policies had a game, shape `(k, k)`.
        results: 1 where the policy of the row won it, -1 where it lost, 0 otherwise, shape `(k, k)`.
        means: Mean return of each policy over its seats, k numbers.
        several: Whether each policy had several seats, k values.
        decay: Factor of the decayed counts of each pair with a game.
    """
    won, drawn = results > 0.0, played & (results == 0.0)
    shared = np.ones(played.shape)
    np.fill_diagonal(shared, several)
    values = np.array([(mean, min(mean * mean, MAX_SQUARE)) for mean in means])
    block = policies[:, None], policies
    entries = table[block]
    entries[..., WINS] += won
    entries[..., DRAWS] += drawn
    if len(policies) > 2 and played.sum() > 2:
        entries[..., JOINT_GAMES] += played
    entries[..., EPISODES] += shared
    sums = added(entries[..., _SUMS], entries[..., _RESTS], values[:, None] * shared[..., None])
    entries[..., _SUMS], entries[..., _RESTS] = sums
    if table.shape[2] > DECAYED_WINS:
        entries[..., _DECAYED] *= np.where(played, decay, 1.0)[..., None]
        entries[..., DECAYED_WINS] += won
        entries[..., DECAYED_DRAWS] += drawn
    table[block] = entries


def enlarged(table: Table, num_policies: int) -> Table:
    """Returns a copy of a table with room for `num_policies` policies."""
    larger = np.zeros((num_policies, num_policies, table.shape[2]))
    larger[: len(table), : len(table)] = table
    return larger


def merged(one: Table, other: Table) -> Table:
    """Returns the table of all episodes of two tables without decay."""
    table = enlarged(one, max(len(one), len(other)))
    mine = table[: len(other), : len(other)]
    sums, rests = added(mine[..., _SUMS], mine[..., _RESTS], other[..., _SUMS])
    sums, rests = added(sums, rests, other[..., _RESTS])
    mine += other
    mine[..., _SUMS], mine[..., _RESTS] = sums, rests
    return table


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
