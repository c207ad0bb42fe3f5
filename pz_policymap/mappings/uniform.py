"""`Uniform`: every policy equally likely; `FromPopulation`: the base of mappings over one population."""

# Annotations are evaluated here, because dataclasses of other modules inherit the one of `policies`.
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.arguments import boolean, population
from pz_policymap.mappings.base import PolicyIds, PolicyMapping
from pz_policymap.randomness.draw import Draw

_DECK_SIZES = 2**22  # total size of the decks held at a time, over all environments


@dataclass(frozen=True)
class FromPopulation(PolicyMapping):
    """A mapping over policies given as a count or as a list of indices."""

    policies: int | Sequence[int]

    reads_agents = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "policies", population("policies", self.policies))

    @property
    @override
    def num_policies(self) -> int | None:  # type: ignore[override]
        return self.policies if isinstance(self.policies, int) else None

    @cached_property
    def size(self) -> int:
        """Number of policies."""
        return self.policies if isinstance(self.policies, int) else len(self.policies)

    def indices(self, picks: PolicyIds) -> PolicyIds:
        """Returns the index of each policy, given its position from 0 to `size - 1`."""
        return picks if isinstance(self.policies, int) else self._table[picks]

    @cached_property
    def _table(self) -> NDArray[np.int32]:
        """The indices of a population given as a list."""
        return np.array(self.policies, np.int32)


@dataclass(frozen=True)
class Uniform(FromPopulation):
    """Every seat is controlled by a policy drawn uniformly from the population.

    Args:
        policies: Number of policies, or a list of policy indices.
        mix: Whether each seat of an environment is drawn independently. If False, one policy controls all seats.
        replace: Whether a policy may control several seats of an environment. If False, there must be at least one
            policy per seat.

    Raises:
        TypeError: If `policies` holds a non-integer, or if `mix` or `replace` is not a bool.
        ValueError: If `policies` is 0 or empty, if an index is negative or repeated, or if `replace=False` comes with
            `mix=False`. With `replace=False`, also if an environment has more seats than there are policies.

    Example:
        >>> from pz_policymap import Draw, Uniform
        >>> draw = Draw.at(0, ["a", "b", "c"], env_index=[0, 1], episode=[0, 0])
        >>> Uniform(4).assign(draw).tolist()
        [[0, 2, 2], [0, 0, 1]]
        >>> Uniform([5, 6, 7], replace=False).assign(draw).tolist()
        [[5, 7, 6], [5, 6, 7]]
    """

    mix: bool = True
    replace: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mix", "replace"):
            object.__setattr__(self, name, boolean(name, getattr(self, name)))
        if not self.mix and not self.replace:
            raise ValueError("mix=False gives every seat the same policy, which replace=False forbids")

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        if not self.replace and len(agents) > self.size:
            raise ValueError(
                f"replace=False needs at least one policy per seat, got {self.size} policies for {len(agents)} seats"
            )

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        if not self.replace:
            picks = _distinct(draw, self.size)
        elif not self.mix:
            picks = np.broadcast_to(draw.select([0]).integers(self.size), (draw.num_envs, draw.num_seats))
        else:
            picks = draw.integers(self.size)
        return self.indices(picks)


def _distinct(draw: Draw, size: int) -> NDArray[np.int32]:
    """Draws distinct policies seat by seat (Fisher-Yates), so that a late seat does not change earlier seats."""
    at_once = max(1, _DECK_SIZES // size)
    if draw.num_envs > at_once:
        parts = np.array_split(np.arange(draw.num_envs), -(-draw.num_envs // at_once))
        return np.concatenate([_distinct(draw.only(part), size) for part in parts])
    rows = np.arange(draw.num_envs)
    left = np.tile(np.arange(size, dtype=np.int32), (draw.num_envs, 1))
    share = draw.uniform()
    for seat in range(draw.num_seats):
        taken = seat + (share[:, seat] * (size - seat)).astype(np.intp)
        left[rows, seat], left[rows, taken] = left[rows, taken], left[rows, seat]
    picked: NDArray[np.int32] = left[:, : draw.num_seats].copy()  # frees the rest of the deck
    return picked
