"""Nested arrays: the common form of observations, actions and recurrent states in all frameworks.

Dicts, tuples, named tuples and lists are structure. Anything else is a leaf: a NumPy array, a value that NumPy converts
to an array, a torch tensor on any device, or a JAX array. Torch and JAX are never imported here; they are looked up
among the imported modules.
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


def is_jax(value: Any) -> bool:
    """Returns whether this is a JAX array."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def library_of(*leaves: Any) -> Any:
    """Returns the module whose functions combine these leaves: torch, jax.numpy or numpy."""
    if any(map(is_tensor, leaves)):
        return sys.modules["torch"]
    return sys.modules["jax.numpy"] if any(map(is_jax, leaves)) else np


def as_leaf(value: Any) -> Any:
    """Returns an array or a tensor unchanged, and anything else as a NumPy array."""
    return value if is_tensor(value) or is_jax(value) else np.asarray(value)


def on_host(value: Any) -> NDArray[Any]:
    """Returns an array, or a tensor on any device, as a NumPy array."""
    if is_tensor(value):
        value = value.detach().cpu()
    elif is_jax(value):
        value = sys.modules["jax"].device_get(value)
    return np.asarray(value)


def held_by_host(value: Any) -> bool:
    """Returns whether NumPy can read this value without a transfer from another device."""
    if is_tensor(value):
        return bool(value.device.type == "cpu")
    return not is_jax(value) or all(device.platform == "cpu" for device in value.devices())


def array_for(leaf: Any, array: Any) -> Any:
    """Returns an array as the kind that `leaf` is, on its device; one of that kind is returned unchanged.

    Example:
        >>> array_for(np.zeros(3), np.array([2, 0]))
        array([2, 0])
    """
    if is_tensor(leaf):
        if is_tensor(array):
            return array
        source = sys.modules["torch"].as_tensor(np.array(array))  # a copy: torch warns about read-only arrays
        return leaf.new_empty(source.shape, dtype=source.dtype).copy_(source)
    return sys.modules["jax"].device_put(array) if is_jax(leaf) else array


def index_for(leaf: Any, index: NDArray[Any]) -> Any:
    """Returns an integer array in the form that indexes this leaf, on the leaf's device."""
    return array_for(leaf, index.astype(np.int32) if is_jax(leaf) else index)


def rows_of(leaf: Any, index: Any) -> Any:
    """Returns some rows of a leaf, in the order of an index from `index_for`."""
    return leaf.index_select(0, index) if is_tensor(leaf) else leaf.take(index, axis=0)


def with_values(leaf: Any, index: NDArray[Any], values: Any) -> Any:
    """Returns a leaf with new values in some rows; unlike JAX arrays, others are written to and returned."""
    where = index_for(leaf, index)
    if is_jax(leaf):
        return leaf.at[where].set(values)
    leaf[where] = values
    return leaf


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Applies a function to the leaves of nested arrays and returns the same structure with its results.

    Args:
        function: Takes one leaf of each nested array.
        first: A nested array.
        others: Nested arrays of the same structure.

    Raises:
        ValueError: If a structure differs from that of `first`.

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


def first_leaf(value: Any) -> Any:
    """Returns the first leaf of nested arrays, or the value itself if it has none.

    Example:
        >>> first_leaf({"x": [np.zeros(1), np.ones(2)]})
        array([0.])
    """
    while isinstance(value, (Mapping, tuple, list)) and value:
        value = next(iter(value.values() if isinstance(value, Mapping) else value))
    return value


def layout(value: Any) -> Hashable:
    """Returns the structure, shapes, dtypes and devices of nested arrays, which must be equal for stacking.

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
        return library_of(*leaves).stack(leaves)

    return mapped(stack, *values)


def unstacked(value: Any, count: int) -> list[Any]:
    """Returns the rows of a nested array, the inverse of `stacked`.

    Raises:
        ValueError: If a leaf does not have `count` rows.

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
            hint = "" if array.shape else "; a list or a tuple is structure, so pass an array instead"
            raise ValueError(f"expected an array of {count} rows, got one of shape {tuple(array.shape)}{hint}")
        return array

    return mapped(checked, value)


def copied(value: Any) -> Any:
    """Returns a copy of nested containers and arrays; other leaves are shared.

    Environments write into arrays that they have returned, so anything kept beyond a call is copied.

    Example:
        >>> board = np.zeros(2)
        >>> kept = copied({"board": board, "clock": 3})
        >>> board[0] = 1
        >>> kept
        {'board': array([0., 0.]), 'clock': 3}
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value.clone() if is_tensor(value) else value


def _node(value: Any) -> Hashable:
    """Returns the kind of a node: the keys of a dict, type and length of a sequence, None for a leaf."""
    if isinstance(value, Mapping):
        return frozenset(value)
    return (type(value), len(value)) if isinstance(value, (tuple, list)) else None


def _named(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a dict of {list(value)}"
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else "an array"
