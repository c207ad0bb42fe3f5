"""A seeded permutation of any size, evaluated at a point: nothing is built, shuffled or stored.

The swap-or-not shuffle (Hoang, Morris and Rogaway 2012, "An enciphering scheme based on a card shuffle"): each round
pairs every position x with (pivot - x) mod size, and swaps the two if a bit is set. The bit is a hash of the larger
position, so it is the same for both, and each round is its own inverse. The result is a bijection for every size. It
shuffles small sizes as well as large ones, unlike a Feistel network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.randomness.philox import IntArray, Words

_ROUNDS = 32  # in each round, two neighbours stay neighbours with probability 1/2
_WEYL, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_HALF, _TOP_BIT = np.uint64(32), np.uint64(63)


def permuted(positions: NDArray[np.integer[Any]], size: int, keys: Words) -> IntArray:
    """Returns the images of these positions under a permutation of `range(size)`.

    Args:
        positions: Integers from 0 to `size - 1`, of any shape but `()`.
        size: An integer from 1 to 2**63.
        keys: Random 64-bit words that select the permutation; their shape broadcasts with that of `positions`.

    Raises:
        ValueError: If a position is out of range.

    Example:
        >>> keys = np.array([[1], [2]], np.uint64)
        >>> permuted(np.arange(5), 5, keys).tolist()
        [[4, 2, 1, 0, 3], [1, 3, 4, 2, 0]]
    """
    place = np.broadcast_to(positions, np.broadcast_shapes(positions.shape, keys.shape)).astype(np.uint64)
    if place.size and place.max() >= size:  # a negative position is a huge one
        raise ValueError(f"positions must be from 0 to {size - 1}, got {positions.min()} to {positions.max()}")
    rounds = np.arange(1, _ROUNDS + 1, dtype=np.uint64).reshape(-1, *(1,) * place.ndim)
    pivots = _mixed(keys + rounds * _WEYL)
    modulus = np.uint64(size)
    for pivot, start in zip(pivots, pivots % modulus, strict=True):
        partner = start - place
        partner += (partner > modulus) * modulus  # a negative difference is a huge one
        swap = (np.maximum(place, partner) ^ pivot) * _FIRST
        swap ^= swap >> _HALF
        swap *= _SECOND
        place = np.where(swap >> _TOP_BIT, partner, place)
    return place.astype(np.int64)


def _mixed(words: Words) -> Words:
    """Applies the finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on all bits."""
    words = (words ^ words >> np.uint64(30)) * _FIRST
    words = (words ^ words >> np.uint64(27)) * _SECOND
    mixed: Words = words ^ words >> np.uint64(31)
    return mixed
