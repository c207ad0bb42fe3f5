"""`PolicyGroups`: groups the rows of a batch by the policy that acts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX
from pz_policymap.batching.nested_arrays import (
    array_for,
    index_for,
    library_of,
    mapped,
    on_host,
    rows_of,
    with_rows,
)
from pz_policymap.batching.recurrent_state import RecurrentState, Rows

_NARROW = [(np.dtype(f"u{size}"), 2 ** (8 * size) - 1) for size in (1, 2, 4)]

Policy = Callable[..., Any]
Policies = Mapping[int, Policy] | Sequence[Policy]


class PolicyGroups:
    """Groups the rows of a batch by policy, so that each policy is called once.

    Iterating yields `(policy, rows)` with policies ascending; `rows` holds the indices of its rows, ascending. A policy
    without rows does not appear. A batch is a NumPy array, a torch tensor on any device, a JAX array, or a dict, tuple
    or list of batches. Each array has one row per agent along its first axis, and stays on its device.

    Args:
        policy_ids: The policy of every row, an integer array or tensor of any shape. -1 marks an inactive row. Shape
            `(num_envs, num_seats)` is flattened as in `policy_ids.reshape(-1)`.
        mask: Which rows are active, booleans of the same shape, such as `infos["_policy_id"]`. None: all rows whose
            `policy_ids` is not -1.

    Attributes:
        num_rows: Number of rows of a batch.
        policies: The policies that have rows, ascending.

    Raises:
        TypeError: If `policy_ids` is not an integer array, or `mask` is not boolean.
        ValueError: If a policy is out of range, or if the shapes differ.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import PolicyGroups
        >>> groups = PolicyGroups([2, 0, 2, -1])
        >>> [(policy, rows.tolist()) for policy, rows in groups]
        [(0, [1]), (2, [0, 2])]
        >>> policies = {0: lambda observations: -observations, 2: lambda observations: 10 * observations}
        >>> groups.act(policies, np.array([1, 2, 3, 4])).tolist()
        [10, -2, 30, 0]
    """

    def __init__(self, policy_ids: ArrayLike, mask: ArrayLike | None = None) -> None:
        ids = on_host(policy_ids)
        if ids.dtype.kind not in "iu" and ids.size:
            raise TypeError(f"policy_ids must be integers, got {ids.dtype}: {policy_ids!r}")
        keys, highest, inactive = _sortable(ids.reshape(-1))
        if mask is not None:
            acting = on_host(mask)
            if acting.dtype != np.bool_:
                raise TypeError(f"mask must be booleans, got {acting.dtype}: {mask!r}")
            if acting.shape != ids.shape:
                raise ValueError(f"mask must have the shape of policy_ids, {ids.shape}, got {acting.shape}")
            keys = np.where(acting.reshape(-1), keys, keys.dtype.type(inactive))
        self.num_rows = len(keys)
        order = keys.argsort(kind="stable")
        policies, self._limits = _runs(keys, order, highest, inactive)
        self.policies = tuple(policies)
        self._order: Rows = order[: self._limits[-1]]  # the active rows, policy by policy
        self._indices: dict[Any, Any] = {}  # index arrays by device

    def __repr__(self) -> str:
        return f"PolicyGroups(num_rows={self.num_rows}, policies={list(self.policies)})"

    def __len__(self) -> int:
        return len(self.policies)

    def __iter__(self) -> Iterator[tuple[int, Rows]]:
        order = self._order
        for policy, start, stop in zip(self.policies, self._limits, self._limits[1:], strict=False):
            yield policy, order[start:stop]

    def gather(self, batch: Any) -> dict[int, Any]:
        """Returns each policy's rows of a batch, policies ascending.

        Raises:
            ValueError: If an array does not have `num_rows` rows.

        Example:
            >>> PolicyGroups([1, 0, 1]).gather({"x": np.array([5, 6, 7])})
            {0: {'x': array([6])}, 1: {'x': array([5, 7])}}
        """
        ordered = mapped(self._take, with_rows(batch, self.num_rows))
        return {policy: mapped(lambda leaf, part=part: leaf[part], ordered) for policy, part in self._parts()}

    def scatter(self, batches: Mapping[int, Any]) -> Any:
        """Combines the batches of the policies into one batch of all rows: the inverse of `gather`.

        Args:
            batches: One batch per policy that has rows, with as many rows; all of the same structure. If NumPy's
                arrays are mixed with those of torch or JAX, the result is one of the latter.

        Returns:
            The combined batch, with zeros in inactive rows; None if all rows are inactive.

        Raises:
            KeyError: If a policy has rows but no batch.
            ValueError: If a batch and its policy differ in their number of rows, or if batches differ in structure.

        Example:
            >>> PolicyGroups([1, 0, -1]).scatter({0: np.array([6]), 1: np.array([5])})
            array([5, 6, 0])
        """
        named = entries_of(batches, self.policies, "batches")
        parts = [checked_batch(policy, named[policy], part.stop - part.start) for policy, part in self._parts()]
        if not parts:
            return None
        try:
            return mapped(self._put, *parts)
        except ValueError as error:
            raise ValueError(f"the batches of policies {list(self.policies)} do not fit together: {error}") from error

    def act(self, policies: Policies, observations: Any, memory: RecurrentState | None = None) -> Any:
        """Calls every policy that has rows once, with the observations of its rows, and returns all actions.

        Args:
            policies: By policy id, each `policy(observations) -> actions`. A policy with a state in `memory` is called
                as `policy(observations, state) -> (actions, state)`.
            observations: A batch.
            memory: The state of recurrent policies, updated after all policies have acted.

        Returns:
            The actions, combined as in `scatter`.

        Raises:
            KeyError: If a policy that has rows is missing; no policy has been called then.
            ValueError: If a policy does not return one row per row of its batch.
        """
        called = entries_of(policies, self.policies, "policies")
        batches = self.gather(observations)
        actions, states = {}, {}
        for policy, rows in self:
            if memory is not None and policy in memory:
                actions[policy], states[policy] = called[policy](batches[policy], memory.read(policy, rows))
            else:
                actions[policy] = called[policy](batches[policy])
        whole = self.scatter(actions)
        if memory is not None:
            for policy, rows in self:
                if policy in states:
                    memory.write(policy, rows, states[policy])
        return whole

    def _parts(self) -> Iterator[tuple[int, slice]]:
        """Yields each policy and the slice of its rows in the order."""
        return zip(self.policies, map(slice, self._limits, self._limits[1:]), strict=True)

    def _take(self, leaf: Any) -> Any:
        return rows_of(leaf, self._on(leaf, "order", self._order))

    def _put(self, *leaves: Any) -> Any:
        shapes = {tuple(leaf.shape[1:]) for leaf in leaves}
        if len(shapes) > 1:
            raise ValueError(f"rows differ in shape: {sorted(shapes)}")
        library = library_of(*leaves)
        parts: list[Any] = list(leaves)
        if library is not np:
            like = next(leaf for leaf in leaves if not isinstance(leaf, np.ndarray))
            parts = [array_for(like, leaf) for leaf in leaves]
        ordered = library.concatenate([*parts, library.zeros_like(parts[0][:1])])
        return rows_of(ordered, self._on(ordered, "places", self._places))

    @cached_property
    def _places(self) -> Rows:
        """The position of each row in the order; inactive rows are one past its end."""
        places = np.full(self.num_rows, len(self._order))
        places[self._order] = np.arange(len(self._order))
        return places

    def _on(self, leaf: Any, name: str, index: Rows) -> Any:
        """Returns an index array in the form that indexes this leaf, converted once per device."""
        if isinstance(leaf, np.ndarray):
            return index
        key = name, type(leaf), leaf.device
        if key not in self._indices:
            self._indices[key] = index_for(leaf, index)
        return self._indices[key]


def entries_of(given: Mapping[int, Any] | Sequence[Any], policies: Iterable[int], name: str) -> dict[int, Any]:
    """Returns the entries of these policies, or raises a KeyError that names the missing one."""
    held = given if isinstance(given, Mapping) else range(len(given))
    for policy in policies:
        if policy not in held:
            raise KeyError(f"{name} must hold every policy that acts, got none for policy {policy} in {list(held)}")
    return {policy: given[policy] for policy in policies}


def checked_batch(policy: int, batch: Any, count: int) -> Any:
    """Returns the batch of a policy, or raises a ValueError if its number of rows is not `count`."""
    try:
        return with_rows(batch, count)
    except ValueError as error:
        raise ValueError(f"policy {policy} must return one row per row of its batch: {error}") from error


def _sortable(ids: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Returns policy ids in the narrowest type, the highest of them, and the number that replaces -1.

    NumPy sorts numbers of 8 and 16 bits by radix, in a third of the time.
    """
    lowest, highest = (int(ids.min()), int(ids.max())) if ids.size else (-1, -1)
    if lowest < -1 or highest > MAX_INDEX:
        wrong = lowest if lowest < -1 else highest
        raise ValueError(f"policy_ids must be from 0 to {MAX_INDEX}, or -1 for an inactive row, got {wrong}")
    narrow, inactive = next(pair for pair in _NARROW if highest < pair[1])
    return ids.astype(narrow), highest, inactive


def _runs(keys: NDArray[Any], order: Rows, highest: int, inactive: int) -> tuple[list[int], list[int]]:
    """Returns the policies that have rows, ascending, and the limits of their runs of rows in the order."""
    if highest < 256:  # looking up each policy is faster than comparing all neighbours
        candidates = np.arange(highest + 2, dtype=keys.dtype)
        candidates[-1] = inactive
        starts = keys.searchsorted(candidates, sorter=order)
        found = (starts[1:] > starts[:-1]).nonzero()[0]
        return candidates[found].tolist(), [*starts[found].tolist(), int(starts[-1])]
    ordered = keys[order]
    limits = [0, *((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(order)]
    policies = ordered[limits[:-1]].tolist()
    if policies[-1] == inactive:
        policies.pop(), limits.pop()
    return policies, limits
