"""Checks of what the pictures are given: each error names the argument, what came and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer

LONGEST = 24  # characters of a name: room must be left for the picture


def check_axes(axes: Any) -> None:
    """Refuses what is no matplotlib `Axes`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `axes` is no `Axes`.
    """
    try:
        from matplotlib.axes import Axes  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError("plots need matplotlib: python -m pip install 'pz-policymap[plot]'") from error
    if not isinstance(axes, Axes):
        raise TypeError(f"axes must be a matplotlib Axes, got {axes!r}")


def names_of(name: str, values: Iterable[Any] | None, count: int, owner: str) -> list[str]:
    """Returns one name each, as they are written in a picture; None: the numbers from 0.

    A long name keeps its beginning and its end. If that makes two the same, each has its number before it.

    Example:
        >>> names_of("agents", ["adversary_0", "a_very_long_name_of_an_adversary_1"], 2, "a seat")
        ['adversary_0', 'a_very_long_…_adversary_1']
    """
    if values is None:
        return [str(i) for i in range(count)]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence, one name {owner}, got {values!r}")
    names = [" ".join(str(value).split()) for value in values]
    if len(names) != count:
        raise ValueError(f"{name} must hold {count} names, one {owner}, got {len(names)}: {names}")
    half = LONGEST // 2
    short = [value if len(value) <= LONGEST + 1 else f"{value[:half]}…{value[-half:]}" for value in names]
    if len(set(short)) < len(set(names)):
        short = [f"{i} {value}" for i, value in enumerate(short)]
    return [value.replace("$", r"\$") for value in short]  # else matplotlib would take it for a formula


def order_of(order: Sequence[int] | None, by: NDArray[np.float64]) -> NDArray[np.intp]:
    """Returns policies from the first to be shown to the last: as given, or the highest of `by` first."""
    if order is None:
        return np.argsort(-by, kind="stable")
    if isinstance(order, (str, bytes)) or not isinstance(order, Iterable):
        raise TypeError(f"order must be a sequence of policies, got {order!r}")
    policies = [integer(f"order[{i}]", policy, 0, len(by) - 1) for i, policy in enumerate(order)]
    if not policies or len(set(policies)) != len(policies):
        raise ValueError(f"order must hold distinct policies, at least one, got {policies}")
    return np.array(policies)


def amounts(name: str, value: ArrayLike, count: int | None = None) -> NDArray[np.float64]:
    """Returns one number a policy, none negative and not all 0, as floats.

    Args:
        name: What the argument is called, for the error.
        value: The numbers.
        count: How many policies there must be; None: at least one.

    Example:
        >>> amounts("counts", [3, 1]).tolist()
        [3.0, 1.0]
    """
    try:
        array: NDArray[np.float64] = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, one a policy, got {value!r}") from error
    if array.ndim != 1 or not array.size or (count is not None and array.size != count):
        shape = "(num_policies,)" if count is None else f"({count},)"
        raise ValueError(f"{name} must have the shape {shape}, one number a policy, got shape {array.shape}")
    if not (np.isfinite(array) & (array >= 0.0)).all() or not array.any():
        raise ValueError(f"{name} must be finite, not negative and not all 0, got {array}")
    return array
