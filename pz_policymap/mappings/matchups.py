"""Matchups by number: their count, and the policies of each one in lexicographic order.

There are four kinds: seats matter or not, and a policy may meet itself or not. All are computed by arithmetic.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pz_policymap.randomness.philox import IntArray


def count_matchups(num_policies: int, num_seats: int, ordered_seats: bool, self_matches: bool) -> int:
    """Returns the number of matchups.

    Args:
        num_policies: Number of policies, >= 1.
        num_seats: Number of seats, >= 1.
        ordered_seats: Whether the same policies in other seats are another matchup.
        self_matches: Whether a policy may control several seats.

    Example:
        >>> count_matchups(50, 4, ordered_seats=True, self_matches=True)
        6250000
    """
    if ordered_seats:
        return num_policies**num_seats if self_matches else math.perm(num_policies, num_seats)
    return math.comb(num_policies + num_seats - 1 if self_matches else num_policies, num_seats)


def matchups(numbers: IntArray, num_policies: int, num_seats: int, ordered_seats: bool, self_matches: bool) -> IntArray:
    """Returns the policies of the matchups with these numbers, shape `(len(numbers), num_seats)`.

    Args:
        numbers: Matchup numbers, >= 0, shape `(n,)`; there must be at most 2**63 matchups.
        num_policies: Number of policies, >= 1.
        num_seats: Number of seats, >= 1.
        ordered_seats: If False, the policies of a matchup are in ascending order.
        self_matches: If False, `num_seats` must be at most `num_policies`.

    Example:
        >>> matchups(np.arange(4), 3, 2, ordered_seats=False, self_matches=True).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 1]]
    """
    if not ordered_seats:
        # A multiset of policies is a set of numbers once seat i is raised by i.
        raised = np.arange(num_seats) if self_matches else np.zeros(num_seats, np.int64)
        return _combinations(numbers, num_policies + int(raised[-1]), num_seats) - raised
    policies = np.empty((len(numbers), num_seats), np.int64)
    for seat in reversed(range(num_seats)):
        numbers, policies[:, seat] = np.divmod(numbers, num_policies if self_matches else num_policies - seat)
    if not self_matches:
        # So far a seat holds a rank among the policies that earlier seats have not taken.
        for seat in range(1, num_seats):
            for taken in np.sort(policies[:, :seat], axis=1).T:
                policies[:, seat] += policies[:, seat] >= taken
    return policies


def _combinations(numbers: IntArray, size: int, length: int) -> IntArray:
    """Returns the subsets of `range(size)` of that length with these numbers, each in ascending order.

    Uses the combinatorial number system (Lehmer 1964): a number is a sum of binomials (c_k choose k) with decreasing k,
    each c_k the greatest that fits. That system counts in reverse order and from the largest element.
    """
    columns = _binomials(size, length)
    left = math.comb(size, length) - 1 - numbers
    chosen = np.empty((len(numbers), length), np.int64)
    for seat, column in enumerate(reversed(columns[1:])):
        greatest = np.searchsorted(column, left, side="right") - 1
        left = left - column[greatest]
        chosen[:, seat] = size - 1 - greatest
    return chosen


@lru_cache(maxsize=16)
def _binomials(size: int, length: int) -> tuple[IntArray, ...]:
    """Returns (c choose k) for all c that can occur at k, k from 0 to `length`: columns of Pascal's triangle."""
    columns = [np.ones(size - length, np.int64)]
    for _ in range(length):
        columns.append(np.append(0, np.cumsum(columns[-1])))
    return tuple(columns)
