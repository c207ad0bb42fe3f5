"""Sums of floats that do not depend on the order of addition.

A sum is a pair of floats: the rounded sum and the rounding error, about 106 bits together. While these bits suffice
(for a million numbers within nine orders of magnitude, they do), the pair does not depend on the order of the numbers,
nor on how they are split into partial sums.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])


def added(total: Number, rest: Number, value: Number) -> tuple[Number, Number]:
    """Adds a number, or an array of numbers, to the sum `total + rest`. Returns the new pair.

    Source: the error-free sum of Knuth (The Art of Computer Programming, volume 2, section 4.2.2, theorem B).

    Example:
        >>> total, rest = 0.0, 0.0
        >>> for _ in range(10):
        ...     total, rest = added(total, rest, 0.1)
        >>> total, sum([0.1] * 10)
        (1.0, 0.9999999999999999)
    """
    total, error = _error_free(total, value)
    return _error_free(total, rest + error)


def _error_free(a: Number, b: Number) -> tuple[Number, Number]:
    """Returns the rounded sum of two numbers and its rounding error."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
