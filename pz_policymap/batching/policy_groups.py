"""Rows of a batch <-> the policies that act on them.

`PolicyGroups` serves batches: observations with a row an agent. `act` serves the dicts of PettingZoo.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.batching.nested_arrays import (
    index_for,
    is_tensor,
    layout,
    mapped,
    on_host,
    stacked,
    unstacked,
    with_rows,
)
from pz_policymap.batching.recurrent_state import RecurrentState, Rows

_NARROW = [(np.dtype(f"u{size}"), 2 ** (8 * size) - 1) for size in (1, 2, 4)]

Policy = Callable[..., Any]
Policies = Mapping[int, Policy] | Sequence[Policy]
AgentID = TypeVar("AgentID", bound=Hashable)


class PolicyGroups:
    """Which rows of a batch each policy acts on: every row is one policy's, or nobody's.

    Iterating yields `(policy, rows)`, policies ascending; `rows` are the numbers of its rows, ascending. A policy
    without rows does not appear. A batch is a NumPy array, a torch tensor on any device, or a dict, tuple or list of
    batches; each array has a row an agent along its first axis.

    Args:
        policy_ids: The policy of every row, an integer array or tensor of any shape; of shape `(num_envs, num_seats)`,
            its rows are those of `policy_ids.reshape(-1)`. -1 where nobody acts.
        mask: Where somebody acts, booleans of the same shape, such as `infos["_policy_id"]`. None: everywhere that
            `policy_ids` is not -1.

    Attributes:
        num_rows: How many rows a batch has.
        policies: The policies that have rows, ascending.

    Raises:
        TypeError: If `policy_ids` are no integers, or `mask` no booleans.
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
        keys, highest, nobody = _sortable(ids.reshape(-1))
        if mask is not None:
            acting = on_host(mask)
            if acting.dtype != np.bool_:
                raise TypeError(f"mask must be booleans, got {acting.dtype}: {mask!r}")
            if acting.shape != ids.shape:
                raise ValueError(f"mask must have the shape of policy_ids, {ids.shape}, got {acting.shape}")
            keys = np.where(acting.reshape(-1), keys, keys.dtype.type(nobody))
        self.num_rows = len(keys)
        order = keys.argsort(kind="stable")
        policies, self._limits = _runs(keys, order, highest, nobody)
        self.policies = tuple(policies)
        self._order: Rows = order[: self._limits[-1]]  # the rows that are served, policy by policy
        self._tensors: dict[Any, Any] = {}  # index arrays on the devices that asked for them

    def __len__(self) -> int:
        return len(self.policies)

    def __iter__(self) -> Iterator[tuple[int, Rows]]:
        order = self._order
        for policy, start, stop in zip(self.policies, self._limits, self._limits[1:], strict=False):
            yield policy, order[start:stop]

    def gather(self, batch: Any) -> dict[int, Any]:
        """Returns each policy's rows of a batch, policies ascending.

        Raises:
            ValueError: If an array has not `num_rows` rows.

        Example:
            >>> PolicyGroups([1, 0, 1]).gather({"x": np.array([5, 6, 7])})
            {0: {'x': array([6])}, 1: {'x': array([5, 7])}}
        """
        ordered = mapped(self._take, with_rows(batch, self.num_rows))
        return {policy: mapped(lambda leaf, part=part: leaf[part], ordered) for policy, part in self._parts()}

    def scatter(self, batches: Mapping[int, Any]) -> Any:
        """Returns one batch of all rows from the batches of the policies: the inverse of `gather`.

        Args:
            batches: For each policy that has rows, a batch with as many; all of the same structure. Where some are
                arrays and some are tensors, the result is a tensor.

        Returns:
            Zeros in the rows that nobody acts on; None where nobody acts at all.

        Raises:
            KeyError: If a policy has rows but no batch.
            ValueError: If a batch has not as many rows as its policy, or does not fit to the others.

        Example:
            >>> PolicyGroups([1, 0, -1]).scatter({0: np.array([6]), 1: np.array([5])})
            array([5, 6, 0])
        """
        named = _chosen(batches, self.policies, "batches")
        parts = [_fitting(policy, named[policy], part.stop - part.start) for policy, part in self._parts()]
        if not parts:
            return None
        try:
            return mapped(self._put, *parts)
        except ValueError as error:
            raise ValueError(f"the batches of policies {list(self.policies)} do not fit together: {error}") from error

    def act(self, policies: Policies, observations: Any, memory: RecurrentState | None = None) -> Any:
        """Calls every policy that has rows once, with the observations of its rows, and returns all actions.

        Args:
            policies: By index, each `policy(observations) -> actions`; one that has a state in `memory` is
                `policy(observations, state) -> (actions, state)`.
            observations: A batch.
            memory: What recurrent policies remember; it is written once all of them have acted.

        Returns:
            The actions, a batch as `scatter` returns it.

        Raises:
            KeyError: If a policy that has rows is missing; none has been called then.
            ValueError: If a policy returns not a row for each of its rows.
        """
        called = _chosen(policies, self.policies, "policies")
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
        """Yields each policy and where its rows are in the order."""
        return zip(self.policies, map(slice, self._limits, self._limits[1:]), strict=True)

    def _take(self, leaf: Any) -> Any:
        return _rows_of(leaf, self._on(leaf, "order", self._order))

    def _put(self, *leaves: Any) -> Any:
        shapes = {tuple(leaf.shape[1:]) for leaf in leaves}
        if len(shapes) > 1:
            raise ValueError(f"rows differ in shape: {sorted(shapes)}")
        blank_shape = (1, *shapes.pop())
        tensor = next((leaf for leaf in leaves if is_tensor(leaf)), None)
        if tensor is None:
            ordered = np.concatenate([*leaves, np.zeros(blank_shape, leaves[0].dtype)])
        else:
            torch = sys.modules["torch"]
            parts = [torch.as_tensor(leaf, device=tensor.device) for leaf in leaves]
            ordered = torch.cat([*parts, parts[0].new_zeros(blank_shape)])
        return _rows_of(ordered, self._on(ordered, "places", self._places))

    @cached_property
    def _places(self) -> Rows:
        """Where each row is in the order; that of rows that nobody acts on, one past its end."""
        places = np.full(self.num_rows, len(self._order))
        places[self._order] = np.arange(len(self._order))
        return places

    def _on(self, leaf: Any, name: str, index: Rows) -> Any:
        """Returns an index array in the form that indexes this leaf, made once for each device."""
        if not is_tensor(leaf):
            return index
        key = name, leaf.device
        if key not in self._tensors:
            self._tensors[key] = index_for(leaf, index)
        return self._tensors[key]


def act(
    policies: Policies,
    observations: Mapping[AgentID, Any],
    infos: Mapping[AgentID, Mapping[str, Any]],
    agents: Iterable[AgentID] | None = None,
    info_key: str = "policy_id",
) -> dict[AgentID, Any]:
    """Asks the policies that the infos name for everybody's action.

    Agents of one policy are stacked into one call if their observations have the same structure, shapes and types;
    otherwise the policy is called for one after the other, with a batch of one.

    A policy is called as `policy(observations)`, with a batch whose arrays have a row an agent. If its signature (of a
    torch module: that of `forward`) names one of these parameters, it is handed that too:

    - `infos`: the list of the agents' infos, in the order of the rows.
    - `action_mask`: the agents' masks, stacked, from `info["action_mask"]` or else from
      `observation["action_mask"]`; None where there are none.

    Args:
        policies: The policies by index, a sequence or a mapping.
        observations: As the environment returns them.
        infos: The same; each names its agent's policy. An agent with -1 does not act.
        agents: Who acts, `env.agents` as a rule: those that have just ended are among the observations, too. None: all
            of the observations.
        info_key: The key of the policy in the infos.

    Returns:
        The action of each agent, in the order of `agents`.

    Raises:
        KeyError: If a policy is missing, or an agent's observation, info or policy is; no policy has been called then.
        ValueError: If a policy returns not a row an agent.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import act
        >>> def first(observations):
        ...     return np.zeros(len(observations), int)
        >>> def best_allowed(observations, action_mask):
        ...     return np.argmax(observations * action_mask, axis=1)
        >>> observations = {agent: np.array([3.0, 2.0, 1.0]) for agent in ("red", "blue", "green")}
        >>> infos = {agent: {"policy_id": 1, "action_mask": np.array([0, 1, 1])} for agent in observations}
        >>> infos["blue"]["policy_id"] = 0
        >>> {agent: int(action) for agent, action in act([first, best_allowed], observations, infos).items()}
        {'red': 1, 'blue': 0, 'green': 1}
    """
    acting = list(observations if agents is None else agents)
    served: dict[int, list[AgentID]] = {}
    for agent in acting:
        policy = _policy_of(agent, observations, infos, info_key)
        if policy >= 0:
            served.setdefault(policy, []).append(agent)
    called = _chosen(policies, sorted(served), "policies")
    actions: dict[AgentID, Any] = {}
    for policy, those in sorted(served.items()):
        wanted = _parameters(called[policy])
        views = {agent: _view(observations[agent], infos[agent], wanted) for agent in those}
        alike = len(those) == 1 or len({layout(view) for view in views.values()}) == 1
        for together in [those] if alike else [[agent] for agent in those]:
            inputs = stacked([views[agent] for agent in together])
            if "infos" in wanted:
                inputs["infos"] = [infos[agent] for agent in together]
            if "action_mask" in wanted:
                inputs.setdefault("action_mask", None)
            answer = called[policy](inputs.pop("observations"), **inputs)
            rows = unstacked(_fitting(policy, answer, len(together)), len(together))
            actions.update(zip(together, rows, strict=True))
    return {agent: actions[agent] for agent in acting if agent in actions}


def mask_of(observation: Any, info: Mapping[str, Any]) -> Any:
    """Returns the action mask that an info or an observation holds, or None."""
    nested = observation if isinstance(observation, Mapping) else {}
    return info.get("action_mask", nested.get("action_mask"))


def _policy_of(agent: Any, observations: Mapping[Any, Any], infos: Mapping[Any, Any], info_key: str) -> int:
    """Returns the policy that an agent's info names, or raises where the agent cannot be served."""
    for name, given in (("observations", observations), ("infos", infos)):
        if agent not in given:
            raise KeyError(f"{name} must hold every agent that acts, got none for {agent!r} in {list(given)}")
    if info_key not in infos[agent]:
        raise KeyError(f"the info of {agent!r} must name its policy as {info_key!r}, got {dict(infos[agent])}")
    return integer(f"infos[{agent!r}][{info_key!r}]", infos[agent][info_key], minimum=-1)


def _view(observation: Any, info: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, Any]:
    """Returns what a policy sees of one agent, as far as it is stacked with that of others."""
    mask = mask_of(observation, info) if "action_mask" in wanted else None
    return {"observations": observation} if mask is None else {"observations": observation, "action_mask": mask}


def _parameters(policy: Policy) -> frozenset[str]:
    """Returns the names of a policy's parameters; of a torch module's `forward`, as its call hides them."""
    try:
        return frozenset(inspect.signature(getattr(policy, "forward", policy)).parameters)
    except (TypeError, ValueError):  # some functions written in C have none
        return frozenset()


def _rows_of(leaf: Any, index: Any) -> Any:
    """Returns some rows of a leaf, in the order of the index."""
    return leaf.index_select(0, index) if is_tensor(leaf) else leaf.take(index, axis=0)


def _chosen(given: Mapping[int, Any] | Sequence[Any], policies: Iterable[int], name: str) -> dict[int, Any]:
    """Returns what is given for these policies, or raises before anything is done with any of it."""
    held = given if isinstance(given, Mapping) else range(len(given))
    for policy in policies:
        if policy not in held:
            raise KeyError(f"{name} must hold every policy that acts, got none for policy {policy} in {list(held)}")
    return {policy: given[policy] for policy in policies}


def _fitting(policy: int, batch: Any, count: int) -> Any:
    """Returns the batch of a policy, or raises where it has not as many rows as the policy."""
    try:
        return with_rows(batch, count)
    except ValueError as error:
        raise ValueError(f"policy {policy} must return a row for each of its rows: {error}") from error


def _sortable(ids: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Returns policies in the narrowest type, the highest of them, and nobody (-1) in that type: its highest number.

    NumPy sorts numbers of 8 and 16 bits by radix, in a third of the time.
    """
    lowest, highest = (int(ids.min()), int(ids.max())) if ids.size else (-1, -1)
    if lowest < -1 or highest > MAX_INDEX:
        wrong = lowest if lowest < -1 else highest
        raise ValueError(f"policy_ids must be from 0 to {MAX_INDEX}, or -1 where nobody acts, got {wrong}")
    narrow, nobody = next(pair for pair in _NARROW if highest < pair[1])
    return ids.astype(narrow), highest, nobody


def _runs(keys: NDArray[Any], order: Rows, highest: int, nobody: int) -> tuple[list[int], list[int]]:
    """Returns the policies that have rows, ascending, and where the rows of each begin in the order, and of nobody."""
    if highest < 256:  # so few that it is quicker to look for each of them than at every row
        candidates = np.arange(highest + 2, dtype=keys.dtype)
        candidates[-1] = nobody
        starts = keys.searchsorted(candidates, sorter=order)
        served = (starts[1:] > starts[:-1]).nonzero()[0]
        return candidates[served].tolist(), [*starts[served].tolist(), int(starts[-1])]
    ordered = keys[order]
    limits = [0, *((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(order)]
    policies = ordered[limits[:-1]].tolist()
    if policies[-1] == nobody:
        policies.pop(), limits.pop()
    return policies, limits
