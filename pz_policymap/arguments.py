"""Checks of arguments at the public boundary: each error names the argument, the expectation and the value."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_INDEX = 2**31 - 1  # policy ids are kept as int32


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Returns `value` as a plain int.

    Args:
        name: The name of the argument, for the error.
        value: An int or a NumPy integer; bools and floats are refused.
        minimum: The smallest value allowed.
        maximum: The largest value allowed, or None.

    Raises:
        TypeError: If `value` is not an integer.
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
    """Returns a view of an integer array, of any byte order, in which negative numbers are huge.

    Example:
        >>> unsigned(np.array([3, -1], ">i2")).tolist()
        [3, 65535]
    """
    return array.view(array.dtype.str.replace("i", "u"))


def boolean(name: str, value: Any) -> bool:
    """Returns `value`, True or False, as a plain bool; 0 and 1 are refused.

    Raises:
        TypeError: If it is not a bool.
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
        TypeError: If it is a string, a dict, or a set, whose order may differ between processes.
    """
    if isinstance(value, (str, bytes, set, frozenset, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a sequence, got {value!r}")
    return tuple(value)


def distinct_agents(name: str, value: Any) -> tuple[Hashable, ...]:
    """Returns at least one agent, all distinct and hashable, as a tuple, or raises an error."""
    agents = in_order(name, value)
    for agent in agents:
        if not isinstance(agent, Hashable):
            raise TypeError(f"{name} must be hashable, got {agent!r}")
    if not agents:
        raise ValueError(f"{name} must hold at least one agent, got none")
    if len(set(agents)) != len(agents):
        raise ValueError(f"{name} must be distinct, got {list(agents)}")
    return agents


def row_numbers(name: str, rows: ArrayLike, num_rows: int) -> NDArray[np.intp]:
    """Returns distinct row numbers, given as such or as a boolean mask of shape `(num_rows,)`.

    Raises:
        TypeError: If `rows` is neither.
        ValueError: If a mask has another shape, or if a number is out of range or repeated.
    """
    index = np.asarray(rows)
    if index.dtype == np.bool_:
        if index.shape != (num_rows,):
            raise ValueError(f"{name} must be a mask of shape ({num_rows},), got {index.shape}")
        return np.flatnonzero(index)
    if index.size == 0:
        return np.empty(0, np.intp)
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise TypeError(f"{name} must be integers or a boolean mask, got {rows!r}")
    if unsigned(index).max() >= num_rows:  # as unsigned numbers, negative ones are huge
        raise ValueError(f"{name} must be from 0 to {num_rows - 1}, got {rows!r}")
    if not (index[1:] > index[:-1]).all() and len(np.unique(index)) < len(index):
        raise ValueError(f"{name} must be distinct, got {rows!r}")
    return index.astype(np.intp, copy=False)


def seed_of(name: str, value: Any) -> int | tuple[int, ...]:
    """Returns a seed as `numpy.random.SeedSequence` takes it: a non-negative int, or a tuple of them."""
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
    """Returns whether a value holds several numbers; an array without axes is a single number."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0


def number(name: str, value: Any, minimum: float = -math.inf, maximum: float = math.inf) -> float:
    """Returns `value` as a plain float from `minimum` to `maximum`; infinity and NaN are refused.

    Raises:
        TypeError: If `value` is not a number.
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
    """Returns whether a value from a file equals mine; an array equals no value.

    Example:
        >>> equal(1.0, 1), equal([object()], ["red"])
        (True, False)
    """
    if isinstance(mine, (list, tuple)) and type(theirs) is type(mine):
        return len(theirs) == len(mine) and all(map(equal, theirs, mine))
    return not isinstance(theirs, np.ndarray) and bool(theirs == mine)
