"""`RecurrentState`: what recurrent policies remember, kept per row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer
from pz_policymap.batching.nested_arrays import as_leaf, index_for, is_tensor, layout, mapped, on_host

Rows = NDArray[np.intp]


class RecurrentState:
    """The state of every row of a batch, for policies whose states may differ in shape.

    A row's state is its policy's. It starts from `initial` where the row's episode begins, and where another policy
    takes the row over. Rows that nobody acts on for a while keep theirs.

    Args:
        num_rows: How many rows the batches have.
        initial: For each policy that has a state, by index, the state of one row when its episode begins: zeros, as a
            rule. An array, a tensor, or a dict, tuple or list of them, without an axis for the rows. A policy that is
            left out, or None, has no state.

    Raises:
        TypeError: If `num_rows` is no integer.
        ValueError: If it is less than 1.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import PolicyGroups, RecurrentState
        >>> def counts(observations, state):
        ...     return state, state + 1
        >>> groups, memory = PolicyGroups([0, 1, 0]), RecurrentState(3, {0: np.zeros((), int), 1: np.zeros((), int)})
        >>> observations = np.zeros((3, 5))
        >>> [groups.act([counts, counts], observations, memory).tolist() for step in range(2)]
        [[0, 0, 0], [1, 1, 1]]
        >>> memory.begin([False, False, True])  # the last row's episode is over: the next one starts from zero
        >>> groups.act([counts, counts], observations, memory).tolist()
        [2, 2, 0]
    """

    def __init__(self, num_rows: int, initial: Mapping[int, Any] | Sequence[Any]) -> None:
        count = integer("num_rows", num_rows, 1)
        pairs = initial.items() if isinstance(initial, Mapping) else enumerate(initial)
        self._initial = {policy: mapped(as_leaf, state) for policy, state in pairs if state is not None}
        self._layouts = {policy: layout(state) for policy, state in self._initial.items()}
        # A row has one policy at a time, so policies whose states look alike share the room.
        self._room: dict[Any, Any] = {}
        for policy, state in self._initial.items():
            self._room.setdefault(self._layouts[policy], mapped(lambda leaf: _empty(leaf, count), state))
        self._owner = np.full(count, -1, np.int64)  # whose state a row holds; -1: its episode has just begun

    def __contains__(self, policy: int) -> bool:
        return policy in self._initial

    def begin(self, rows: ArrayLike) -> None:
        """Forgets the state of rows whose episode begins with the next observation.

        Args:
            rows: A boolean mask of all rows, or the numbers of some. Under SAME_STEP autoreset these are the rows that
                ended in the last step; under NEXT_STEP, those that ended in the step before it.

        Raises:
            ValueError: If a mask does not have one entry a row, or a number is out of range.
            TypeError: If `rows` are neither booleans nor integers.
        """
        index = on_host(rows)
        if index.dtype == np.bool_ and index.shape != self._owner.shape:
            raise ValueError(f"rows must be a mask of shape {self._owner.shape}, got {index.shape}")
        if index.size and index.dtype.kind not in "iub":
            raise TypeError(f"rows must be integers or a boolean mask, got {rows!r}")
        if index.dtype != np.bool_ and index.size and (index.min() < 0 or index.max() >= len(self._owner)):
            raise ValueError(f"rows must be from 0 to {len(self._owner) - 1}, got {rows!r}")
        if index.size:
            self._owner[index] = -1

    def read(self, policy: int, rows: Rows) -> Any:
        """Returns the state of some rows of a policy, with the rows along the first axis: a copy."""
        fresh = self._owner[rows] != policy

        def read(room: Any, initial: Any) -> Any:
            state = room[index_for(room, rows)]
            state[index_for(room, fresh)] = initial
            return state

        return mapped(read, self._room[self._layouts[policy]], self._initial[policy])

    def write(self, policy: int, rows: Rows, state: Any) -> None:
        """Keeps the new state of some rows of a policy, cut from any gradient.

        Raises:
            ValueError: If it does not have the shape and the kind of numbers of what `read` returns; nothing is kept
                then.
        """

        def checked(leaf: Any, initial: Any) -> Any:
            array, shape = as_leaf(leaf), (len(rows), *initial.shape)
            if tuple(array.shape) != shape:
                raise ValueError(f"expected an array of shape {shape}, got {tuple(array.shape)}")
            if (
                not is_tensor(array)
                and not is_tensor(initial)
                and not np.can_cast(array.dtype, initial.dtype, "same_kind")
            ):
                raise ValueError(f"expected an array of {initial.dtype}, got {array.dtype}")
            return array.detach() if is_tensor(array) else array

        def write(room: Any, leaf: Any) -> None:
            room[index_for(room, rows)] = leaf

        try:
            values = mapped(checked, state, self._initial[policy])
        except ValueError as error:
            raise ValueError(f"the state of policy {policy} does not fit its initial one: {error}") from error
        mapped(write, self._room[self._layouts[policy]], values)
        self._owner[rows] = policy


def _empty(leaf: Any, count: int) -> Any:
    shape = (count, *leaf.shape)
    return leaf.detach().new_empty(shape) if is_tensor(leaf) else np.empty(shape, leaf.dtype)
