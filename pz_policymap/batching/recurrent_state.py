"""`RecurrentState`: the states of recurrent policies, one per row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer, row_numbers
from pz_policymap.batching.nested_arrays import (
    as_leaf,
    index_for,
    is_tensor,
    layout,
    library_of,
    mapped,
    on_host,
    rows_of,
    with_values,
)

Rows = NDArray[np.intp]


class RecurrentState:
    """The state of every row of a batch, for policies whose states may differ in shape.

    The state of a row belongs to its policy. It is set to `initial` when the row's episode begins and when another
    policy takes over the row. Inactive rows keep their state.

    Args:
        num_rows: Number of rows of the batches.
        initial: By policy id, the state of one row at the beginning of an episode, usually zeros. An array, a tensor,
            or a dict, tuple or list of them, without an axis for the rows. Policies that are missing or None are
            stateless.

    Raises:
        TypeError: If `num_rows` is not an integer.
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
        >>> memory.begin([False, False, True])  # the episode of the last row has ended: its next one starts from zero
        >>> groups.act([counts, counts], observations, memory).tolist()
        [2, 2, 0]
    """

    def __init__(self, num_rows: int, initial: Mapping[int, Any] | Sequence[Any]) -> None:
        count = integer("num_rows", num_rows, 1)
        pairs = initial.items() if isinstance(initial, Mapping) else enumerate(initial)
        self._initial = {policy: mapped(as_leaf, state) for policy, state in pairs if state is not None}
        self._layouts = {policy: layout(state) for policy, state in self._initial.items()}
        # A row has one policy at a time, so policies whose states have the same layout share their storage.
        self._storage: dict[Any, Any] = {}
        for policy, state in self._initial.items():
            self._storage.setdefault(self._layouts[policy], mapped(lambda leaf: _empty(leaf, count), state))
        self._owner = np.full(count, -1, np.int64)  # the policy whose state a row holds; -1: its episode has just begun

    def __repr__(self) -> str:
        return f"RecurrentState(num_rows={len(self._owner)}, policies={sorted(self._initial)})"

    def __contains__(self, policy: int) -> bool:
        return policy in self._initial

    def begin(self, rows: ArrayLike) -> None:
        """Resets the state of rows whose episode begins with the next observation.

        Args:
            rows: A boolean mask of all rows, or the distinct indices of some. Under SAME_STEP autoreset these are the
                rows that ended in the last step; under NEXT_STEP, those that ended in the step before it.

        Raises:
            ValueError: If a mask does not have one entry per row, or an index is out of range or repeated.
            TypeError: If `rows` is neither a boolean mask nor a list of integers.
        """
        self._owner[row_numbers("rows", on_host(rows), len(self._owner))] = -1

    def read(self, policy: int, rows: Rows) -> Any:
        """Returns the state of some rows of a policy, with the rows along the first axis: a copy."""
        fresh = np.flatnonzero(self._owner[rows] != policy)

        def read(stored: Any, initial: Any) -> Any:
            return with_values(rows_of(stored, index_for(stored, rows)), fresh, initial)

        return mapped(read, self._storage[self._layouts[policy]], self._initial[policy])

    def write(self, policy: int, rows: Rows, state: Any) -> None:
        """Stores the new state of some rows of a policy, detached from any gradient.

        Raises:
            ValueError: If its shape or dtype does not fit that of `read`; nothing is stored then.
        """

        def checked(leaf: Any, initial: Any) -> Any:
            array, shape = as_leaf(leaf), (len(rows), *initial.shape)
            if tuple(array.shape) != shape:
                raise ValueError(f"expected an array of shape {shape}, got {tuple(array.shape)}")
            if not (is_tensor(array) or is_tensor(initial) or np.can_cast(array.dtype, initial.dtype, "same_kind")):
                raise ValueError(f"expected an array of {initial.dtype}, got {array.dtype}")
            return array.detach() if is_tensor(array) else array

        def write(stored: Any, leaf: Any) -> Any:
            return with_values(stored, rows, leaf)

        try:
            values = mapped(checked, state, self._initial[policy])
        except ValueError as error:
            raise ValueError(f"the state of policy {policy} does not fit its initial one: {error}") from error
        shared = self._layouts[policy]
        self._storage[shared] = mapped(write, self._storage[shared], values)
        self._owner[rows] = policy


def _empty(leaf: Any, count: int) -> Any:
    shape = (count, *leaf.shape)
    return leaf.detach().new_empty(shape) if is_tensor(leaf) else library_of(leaf).empty(shape, leaf.dtype)
