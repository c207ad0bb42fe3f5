"""Checks of what a user hands in: each error names the argument, what came and what was expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_INDEX = 2**31 - 1  # policy ids are kept as int32


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Returns `value` as a plain int.

    Args:
        name: What the argument is called, for the error.
        value: An int or a NumPy integer; bools and floats are refused.
        minimum: The smallest value allowed.
        maximum: The largest value allowed, or None.

    Raises:
        TypeError: If `value` is no integer.
        ValueError: If it is out of range.

    Example:
        >>> integer("num_envs", 3, minimum=1)
        3
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if number < minimum or (maximum is not None and number > maximum):
        limits = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise ValueError(f"{name} must be {limits}, got {number}")
    return number


def unsigned(array: NDArray[Any]) -> NDArray[Any]:
    """Returns a view of an array of integers, in any order of bytes, in which a negative one is a huge one.

    Example:
        >>> unsigned(np.array([3, -1], ">i2")).tolist()
        [3, 65535]
    """
    return array.view(array.dtype.str.replace("i", "u"))


def boolean(name: str, value: Any) -> bool:
    """Returns `value`, True or False, as a plain bool; what only counts as one is refused.

    Raises:
        TypeError: If it is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Returns `value`, which must be a string.

    Raises:
        TypeError: If it is not.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    return value


def in_order(name: str, value: Any) -> tuple[Any, ...]:
    """Returns a sequence as a tuple.

    Raises:
        TypeError: If it is a text, a dict, or a set, whose order may differ from process to process.
    """
    if isinstance(value, (str, bytes, set, frozenset, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a sequence, got {value!r}")
    return tuple(value)


def seed_of(name: str, value: Any) -> int | tuple[int, ...]:
    """Returns a seed as `numpy.random.SeedSequence` takes it: an int from 0, or a tuple of them."""
    if _holds_several(value):
        words = tuple(integer(f"{name}[{i}]", word, minimum=0) for i, word in enumerate(in_order(name, value)))
        if not words:
            raise ValueError(f"{name} must hold at least one integer, got {value!r}")
        return words
    return integer(name, value, minimum=0)


def population(name: str, value: int | Sequence[int]) -> int | tuple[int, ...]:
    """Returns policies given as a count, or as a list of distinct indices, in plain types.

    Example:
        >>> population("policies", 3), population("policies", [4, 6])
        (3, (4, 6))
    """
    if _holds_several(value):
        policies = tuple(integer(f"{name}[{i}]", p, 0, MAX_INDEX) for i, p in enumerate(in_order(name, value)))
        if not policies:
            raise ValueError(f"{name} must hold at least one policy, got {value!r}")
        if len(set(policies)) != len(policies):
            raise ValueError(f"{name} must be distinct, got {list(policies)}")
        return policies
    return integer(name, value, 1, MAX_INDEX)


def _holds_several(value: Any) -> bool:
    """Returns whether a value is to be taken apart; an array without axes is a single number."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0


def number(name: str, value: Any, minimum: float = -math.inf, maximum: float = math.inf) -> float:
    """Returns `value` as a plain float from `minimum` to `maximum`; infinity and NaN are refused.

    Raises:
        TypeError: If `value` is no number.
        ValueError: If it is out of range.

    Example:
        >>> number("decay", 1, minimum=0.0, maximum=1.0)
        1.0
    """
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    try:
        real = float(value)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})") from error
    if not (math.isfinite(real) and minimum <= real <= maximum):
        raise ValueError(f"{name} must be finite, from {minimum} to {maximum}, got {value!r}")
    return real


def equal(theirs: Any, mine: Any) -> bool:
    """Returns whether something that may come from anywhere is what is here; arrays are equal to nothing.

    Example:
        >>> equal(1.0, 1), equal([object()], ["red"])
        (True, False)
    """
    if isinstance(mine, (list, tuple)) and type(theirs) is type(mine):
        return len(theirs) == len(mine) and all(map(equal, theirs, mine))
    return not isinstance(theirs, np.ndarray) and bool(theirs == mine)
