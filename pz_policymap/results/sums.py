"""Sums of floats that do not depend on the order of adding.

A sum is kept as two floats, the rounded one and what rounding lost, some 106 bits together. As long as they hold every
bit (a million numbers within nine orders of magnitude of one another do), the pair is the same in whatever order the
numbers came, and whichever sums of parts were added.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])


def added(total: Number, rest: Number, value: Number) -> tuple[Number, Number]:
    """Returns the sum `total + rest` and one more number, floats or arrays of them, again as a pair.

    Source: the error-free sum of Knuth (The Art of Computer Programming, volume 2, section 4.2.2, theorem B).

    Example:
        >>> total, rest = 0.0, 0.0
        >>> for _ in range(10):
        ...     total, rest = added(total, rest, 0.1)
        >>> total, sum([0.1] * 10)
        (1.0, 0.9999999999999999)
    """
    total, lost = _exact(total, value)
    return _exact(total, rest + lost)


def _exact(a: Number, b: Number) -> tuple[Number, Number]:
    """Returns the rounded sum of two numbers, and what rounding lost."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
