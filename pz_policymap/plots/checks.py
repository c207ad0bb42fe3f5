"""Checks and conversions of the arguments that several pictures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer

LONGEST = 24  # characters of a name: the picture needs the rest of the width


def names_of(name: str, values: Iterable[Any] | None, count: int) -> list[str]:
    """Returns `count` names as a picture shows them. None: the numbers from 0.

    A long name keeps its beginning and its end. If two names become equal, each is preceded by its number.

    Args:
        name: Name of the argument, for errors.
        values: The names, or None.
        count: Number of names expected.

    Raises:
        ValueError: If there are more or fewer names.

    Example:
        >>> names_of("agents", ["adversary_0", "a_very_long_name_of_an_adversary_1"], 2)
        ['adversary_0', 'a_very_long_…_adversary_1']
    """
    if values is None:
        return [str(i) for i in range(count)]
    names = [" ".join(str(value).split()) for value in values]
    if len(names) != count:
        raise ValueError(f"{name} must hold {count} names, got {len(names)}: {names}")
    half = LONGEST // 2
    short = [value if len(value) <= LONGEST + 1 else f"{value[:half]}…{value[-half:]}" for value in names]
    if len(set(short)) < len(set(names)):
        short = [f"{i} {value}" for i, value in enumerate(short)]
    return [value.replace("$", r"\$") for value in short]  # matplotlib reads "$x$" as a formula


def order_of(order: Sequence[int] | None, by: NDArray[np.float64]) -> NDArray[np.intp]:
    """Returns the policies to show, first to last. None: all of them, the highest value of `by` first.

    Raises:
        ValueError: If `order` is empty, repeats a policy, or holds a policy that does not exist.
    """
    if order is None:
        return np.argsort(-by, kind="stable")
    policies = [integer(f"order[{i}]", policy, 0, len(by) - 1) for i, policy in enumerate(order)]
    if not policies or len(set(policies)) != len(policies):
        raise ValueError(f"order must hold distinct policies, at least one, got {policies}")
    return np.array(policies)


def shares_of(name: str, values: ArrayLike, count: int | None = None) -> NDArray[np.float64]:
    """Returns the values divided by their sum.

    Args:
        name: Name of the argument, for errors.
        values: One number >= 0 per policy, not all 0, shape `(num_policies,)`.
        count: Number of policies expected. None: at least one.

    Raises:
        ValueError: If the shape or a value is wrong.

    Example:
        >>> shares_of("counts", [3, 1]).tolist()
        [0.75, 0.25]
    """
    array: NDArray[np.float64] = np.asarray(values, np.float64)
    if array.ndim != 1 or not array.size or array.size != (count or array.size):
        shape = f"({count or 'num_policies'},)"
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not (np.isfinite(array) & (array >= 0.0)).all() or not array.any():
        raise ValueError(f"{name} must be finite numbers >= 0, not all 0, got {array}")
    shares: NDArray[np.float64] = array / array.sum()
    return shares
