"""Nested arrays: what observations, actions and recurrent states of any framework are made of.

Dicts, tuples, named tuples and lists are structure; anything else is a leaf: a NumPy array or what NumPy makes one of,
or a torch tensor on any device. Torch is never imported here: where it is not, there are no tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_tensor(value: Any) -> bool:
    """Returns whether this is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_leaf(value: Any) -> Any:
    """Returns a tensor as it is, and anything else as a NumPy array."""
    return value if is_tensor(value) else np.asarray(value)


def on_host(value: Any) -> NDArray[Any]:
    """Returns an array, or a tensor wherever it is, as a NumPy array."""
    return np.asarray(value.cpu() if is_tensor(value) else value)


def index_for(leaf: Any, index: Any) -> Any:
    """Returns an index array in the form that indexes this leaf: as it is, or as a tensor on the leaf's device."""
    return sys.modules["torch"].as_tensor(index, device=leaf.device) if is_tensor(leaf) else index


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Returns the same structure with `function` of the leaves in each place of it.

    Args:
        function: Takes one leaf of each.
        first: A nested array.
        others: Nested arrays of the same structure.

    Raises:
        ValueError: If a structure is not that of `first`.

    Example:
        >>> mapped(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
        {'x': 11, 'y': (22, 33)}
    """
    for other in others:
        if _node(other) != _node(first):
            raise ValueError(f"structures differ: {_named(first)} and {_named(other)}")
    if isinstance(first, Mapping):
        return {key: mapped(function, item, *(other[key] for other in others)) for key, item in first.items()}
    if isinstance(first, (tuple, list)):
        items = [mapped(function, *those) for those in zip(first, *others, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    return function(first, *others)


def layout(value: Any) -> Hashable:
    """Returns what nested arrays must have in common to be stacked: structure, shapes, types and devices.

    Example:
        >>> layout({"x": np.zeros(3)}) == layout({"x": np.ones(3)}), layout(np.zeros(3)) == layout(np.zeros(4))
        (True, False)
    """
    if isinstance(value, Mapping):
        return frozenset((key, layout(item)) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return (type(value), *map(layout, value))
    leaf = as_leaf(value)
    return tuple(leaf.shape), leaf.dtype, getattr(leaf, "device", None)


def stacked(values: Sequence[Any]) -> Any:
    """Returns nested arrays of one layout as one, with a new first axis.

    Example:
        >>> stacked([{"x": 1}, {"x": 2}])
        {'x': array([1, 2])}
    """

    def stack(*leaves: Any) -> Any:
        return sys.modules["torch"].stack(leaves) if is_tensor(leaves[0]) else np.stack(leaves)

    return mapped(stack, *values)


def unstacked(value: Any, count: int) -> list[Any]:
    """Returns the rows of a nested array, the inverse of `stacked`.

    Raises:
        ValueError: If a leaf has not `count` rows.

    Example:
        >>> unstacked({"x": np.array([[1, 2], [3, 4]])}, 2)
        [{'x': array([1, 2])}, {'x': array([3, 4])}]
    """
    whole = with_rows(value, count)
    return [mapped(lambda leaf, row=row: leaf[row], whole) for row in range(count)]


def with_rows(value: Any, count: int) -> Any:
    """Returns a nested array whose leaves all have `count` rows along their first axis, or raises a ValueError."""

    def checked(leaf: Any) -> Any:
        array = as_leaf(leaf)
        if not array.shape or array.shape[0] != count:
            hint = "" if array.shape else "; a list or a tuple is structure, so hand in an array of its numbers"
            raise ValueError(f"expected an array of {count} rows, got one of shape {tuple(array.shape)}{hint}")
        return array

    return mapped(checked, value)


def _node(value: Any) -> Hashable:
    """What tells one place of a structure from another."""
    if isinstance(value, Mapping):
        return frozenset(value)
    return (type(value), len(value)) if isinstance(value, (tuple, list)) else None


def _named(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a dict of {list(value)}"
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else "an array"
