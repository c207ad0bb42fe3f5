"""`Balanced`: random, mixed, and equal."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.population import FromPopulation
from pz_policymap.mappings.weighted import checked_weights
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted
from pz_policymap.randomness.philox import IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio less 1, times 2**64
_FRACTION = 24  # bits of a seat that are kept: exact quotas stay exact, and 2**38 seats fit into a word


@dataclass(frozen=True)
class Balanced(FromPopulation):
    """Shares the seats of all environments out among the policies, in each block, and deals them in random order.

    Synchronous training gets equal experience and mixing both. Of N seats, policies up to p are due
    C_p = N * (w_0 + ... + w_p) by their weights w. In a block policy p plays floor(C_p + t) - floor(C_{p-1} + t) of
    them, its due rounded up or down (systematic rounding); t = frac(block * golden ratio) evens out over blocks what
    rounding leaves. Which seats these are is a seeded permutation, evaluated for one environment on its own.

    Args:
        policies: How many policies there are, or the list of them.
        num_envs: How many environments there are in all.
        weights: What each policy is due: non-negative numbers, one a policy, which need not sum to 1. None: the same.

    Raises:
        TypeError: If `policies` or `num_envs` is no integer, or `weights` are no numbers.
        ValueError: If an argument is out of range, or if there are more than 2**38 seats.

    Example:
        >>> from pz_policymap import Balanced, Draw
        >>> draw = Draw.at(1, ["a", "b"], env_index=range(5), episode=[0] * 5)
        >>> Balanced(3, num_envs=5, weights=[0.8, 0.1, 0.1]).assign(draw).tolist()
        [[0, 0], [1, 0], [0, 2], [0, 0], [0, 0]]
    """

    num_envs: int = None  # type: ignore[assignment]  # must be given; a field where the base has a property
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_envs", integer("num_envs", self.num_envs, 1))
        if callable(self.weights):
            raise TypeError(
                f"weights must be the same in all environments, so they cannot be a callable, got {self.weights!r}; "
                f"set_mapping changes them"
            )
        if self.weights is not None:
            weights = checked_weights(self.weights, self.size)
            if weights.ndim > 1:
                raise ValueError(f"weights must be a vector, one a policy, got shape {weights.shape}")
            object.__setattr__(self, "weights", tuple(weights.tolist()))

    @property
    @override
    def needs_env_index(self) -> bool:
        return True

    @property
    @override
    def needs_seed(self) -> bool:
        return True

    @property
    @override
    def needs_all_seats(self) -> bool:
        return True

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        if self.num_envs * len(agents) > 2**38:
            raise ValueError(f"num_envs must be at most 2**38 / {len(agents)} seats, got {self.num_envs}")

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        seats = draw.env_index[:, None] * draw.num_seats + np.arange(draw.num_seats)
        num_seats = self.num_envs * draw.num_seats
        places = permuted(seats, num_seats, draw.keys(draw.block)[:, None])
        t = (draw.block.astype(np.uint64) * _GOLDEN >> np.uint64(64 - _FRACTION)).astype(np.int64)
        # Place s is the first policy's with floor(C_p + t) > s, which is C_p >= s + 1 - t.
        policy: NDArray[np.intp] = np.searchsorted(self._dues(num_seats), (places + 1 << _FRACTION) - t[:, None])
        return self.indices(policy)

    def _dues(self, num_seats: int) -> IntArray:
        """Returns C_p of every policy, in units of 2**-24 seats."""
        weights = np.ones(self.size) if self.weights is None else np.asarray(self.weights, np.float64)
        total = np.cumsum(weights)
        dues: IntArray = np.rint(total / total[-1] * (num_seats << _FRACTION)).astype(np.int64)
        return dues
