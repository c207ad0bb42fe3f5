"""`PolicyMapping`: the rule that makes a draw, and the check of its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import MAX_INDEX, unsigned
from pz_policymap.mappings.representation import mapping_text, saved_text
from pz_policymap.randomness.draw import Draw

PolicyIds = NDArray[np.integer[Any]]
WeightsFunction = Callable[[], Any]
Ask = Callable[[WeightsFunction], Any]


def joint_population(sizes: Iterable[int | None]) -> int | None:
    """Returns the size of the population that several mappings draw from, or None if one of them has none.

    Example:
        >>> joint_population([2, 5]), joint_population([2, None])
        (5, None)
    """
    sizes = list(sizes)
    declared = [size for size in sizes if size is not None]
    return max(declared) if declared and len(declared) == len(sizes) else None


def smallest(sizes: Iterable[int | None]) -> int | None:
    """Returns the smallest of the sizes that are not None, or None."""
    return min((size for size in sizes if size is not None), default=None)


def from_children(combine: Callable[[Iterable[Any]], Any]) -> Any:
    """Returns a class attribute that combines those of the children, in the order of `children`.

    It is computed once per mapping, unless a class or an instance sets it.
    """
    return _FromChildren(combine)


class _FromChildren(cached_property[Any]):
    def __init__(self, combine: Callable[[Iterable[Any]], Any]) -> None:
        super().__init__(lambda mapping: combine(getattr(child, str(self.attrname)) for child in mapping.children))


class PolicyMapping(ABC):
    """Decides which policy controls which seat: one method for any number of environments.

    A mapping is immutable: it holds only settings, so its assignments are a pure function of `draw`.
    Subclass it for a custom rule, or pass a plain function to `wrap` (see `FromFunction`). The public attributes
    are its settings: they make its `repr`, by which a saved state recognizes it.

    Attributes:
        num_policies: Size of the population, or None if unknown; policies >= num_policies are errors.
        num_envs: Number of environments that the mapping spans, or None for any number.
        children: The mappings nested in this one. The attributes below are inherited from them.
        needs_env_index: Whether each environment needs an index.
        needs_seed: Whether all environments must share one pinned seed.
        needs_all_seats: Whether agents that join mid-episode would change the policies of the others.
        needs_focal: Whether it only works in the background of `Focal`, which passes it the focal policy.
        counts_blocks: Whether the blocks are a schedule: each episode is a block unless `resample_every` is given.
        reads_agents: Whether `assign` depends on the names of the agents, and not only on their number.
        reads_weights: Whether `bind` has callables to replace.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import Draw, PolicyMapping
        >>> class EvenSeats(PolicyMapping):
        ...     "Policy 0 in even seats, a random opponent in odd seats."
        ...     def __init__(self, num_policies: int) -> None:
        ...         self.num_policies = num_policies
        ...     def assign(self, draw: Draw) -> np.ndarray:
        ...         even = np.arange(draw.num_seats) % 2 == 0
        ...         return np.where(even, 0, 1 + draw.integers(self.num_policies - 1))
        >>> EvenSeats(4), EvenSeats(4).assign(Draw.at(0, ["a", "b", "c"], env_index=[0], episode=[0])).tolist()
        (EvenSeats(num_policies=4), [[0, 2, 0]])
    """

    num_policies: int | Any = None  # not `int | None`: a subclass that sets it computes with it
    num_envs: int | None = from_children(smallest)
    needs_env_index: bool = from_children(any)
    needs_seed: bool = from_children(any)
    needs_all_seats: bool = from_children(any)
    needs_focal: bool = from_children(any)
    counts_blocks: bool = from_children(any)
    reads_agents: bool = True
    reads_weights: bool = from_children(any)
    is_own = False  # whether it is a mapping of this package, whose policies need no check

    @property
    def children(self) -> tuple[PolicyMapping, ...]:
        """The mappings nested in this one."""
        return ()

    @abstractmethod
    def assign(self, draw: Draw) -> PolicyIds:
        """Returns the policy of every seat, an integer array of shape `(draw.num_envs, draw.num_seats)`.

        It must be a function of `draw` alone, row by row: the policies of one environment do not depend on which other
        environments are drawn in the same call.
        """

    def check(self, agents: tuple[Hashable, ...]) -> None:
        """Raises an error if the mapping cannot serve these agents, given in seat order."""
        for child in self.children:
            child.check(agents)

    def bind(self, ask: Ask) -> PolicyMapping:
        """Returns this mapping with every weights callable replaced by `ask(callable)`, in a fixed order.

        It is called once per draw, so that weights which change later do not touch the assignment in force. The default
        serves mappings that hold their children in attributes, directly or in dicts, lists or tuples.

        Raises:
            TypeError: If a child has weights to replace and is not held in such an attribute.
        """
        if not self.reads_weights:
            return self
        bound = copy(self)
        for name, value in vars(self).items():
            if isinstance(getattr(type(self), name, None), cached_property):
                del bound.__dict__[name]  # what was computed from the old children
            else:
                bound.__dict__[name] = _bound(value, ask)
        for old, new in zip(self.children, bound.children, strict=True):
            if old.reads_weights and new is old:
                raise TypeError(f"{type(self).__name__} must define bind, because its child {old!r} reads weights")
        return bound

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__repr__" not in cls.__dict__:  # a dataclass would write its own
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]
        if "bind" in cls.__dict__ and "reads_weights" not in cls.__dict__:
            cls.reads_weights = True
        cls.is_own = cls.__module__.startswith(f"{__package__}.")

    def __repr__(self) -> str:
        return mapping_text(self)


def as_child(name: str, mapping: Any) -> PolicyMapping:
    """Returns `mapping`, or raises a TypeError that names the argument if it is not a `PolicyMapping`."""
    if not isinstance(mapping, PolicyMapping):
        raise TypeError(f"{name} must be a PolicyMapping, got {mapping!r}")
    return mapping


def checked_assign(mapping: PolicyMapping, draw: Draw) -> NDArray[Any]:
    """Returns the policies that a mapping assigns, or raises an error that names mapping, draw and agent."""
    try:
        ids = np.asarray(mapping.assign(draw))
    except Exception as error:
        raise named_error(error, mapping, draw) from error
    if mapping.is_own:
        return ids
    if ids.shape != (draw.num_envs, draw.num_seats):
        short = ids.ndim == 2 and ids.shape[1] < draw.num_seats
        problem = (
            f"it must assign an array of shape (num_envs, num_seats) = {(draw.num_envs, draw.num_seats)}, "
            f"got {ids.shape}" + (f": nothing for agent {draw.agents[ids.shape[1]]!r}" if short else "")
        )
        raise named_error(ValueError(problem), mapping, draw)
    if ids.dtype.kind not in "iu":
        problem = f"it must assign integers, got {ids.flat[0]!r} ({ids.dtype}) for agent {draw.agents[0]!r}"
        raise named_error(TypeError(problem), mapping, draw)
    end = min(mapping.num_policies or MAX_INDEX + 1, MAX_INDEX + 1)
    if unsigned(ids).max() >= end:  # as unsigned numbers, negative ones are huge
        row, seat = np.argwhere((ids < 0) | (ids >= end))[0]
        problem = (
            f"it must assign policies from 0 to {end - 1}, got {ids[row, seat]} for agent {draw.agents[seat]!r} "
            f"of environment {draw.env_index[row]}"
        )
        raise named_error(ValueError(problem), mapping, draw)
    return ids


def named_error(error: Exception, mapping: PolicyMapping, draw: Draw) -> Exception:
    """Returns the error with mapping and draw in front: a TypeError stays one, anything else is a ValueError."""
    first, last = draw.env_index[0], draw.env_index[-1]
    envs = f"environment {first}" if draw.num_envs == 1 else f"environments {first} to {last}"
    kind = TypeError if isinstance(error, TypeError) else ValueError
    text = str(error) if isinstance(error, (TypeError, ValueError)) else repr(error)
    return kind(f"{saved_text(mapping)} failed at the draw of {envs}, episode {draw.episode[0]}: {text}")


def _bound(value: Any, ask: Ask) -> Any:
    """Returns an attribute with every mapping in it bound."""
    if isinstance(value, PolicyMapping):
        return value.bind(ask)
    if isinstance(value, Mapping):
        return {key: _bound(item, ask) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_bound(item, ask) for item in value)
    return value
