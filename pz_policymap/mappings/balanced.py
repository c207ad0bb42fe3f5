"""`Balanced`: mixed policies with equal or weighted shares of all seats."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.uniform import FromPopulation
from pz_policymap.mappings.weighted import checked_weights
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted
from pz_policymap.randomness.philox import IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio less 1, times 2**64
_FRACTION = 24  # fractional bits of a quota: exact quotas stay exact, and 2**38 seats fit into 62 bits


@dataclass(frozen=True)
class Balanced(FromPopulation):
    """Splits the seats of all environments among the policies, in each block, and deals them in random order.

    Synchronous training gets equal experience and mixed policies at once. Of N seats, policies up to p have the quota
    C_p = N * (w_0 + ... + w_p) by their weights w. In a block, policy p controls floor(C_p + t) - floor(C_{p-1} + t)
    seats, its share rounded up or down (systematic rounding). The offset t = frac(block * golden ratio) evens out the
    rounding over blocks. A seeded permutation deals the seats; it is evaluated for one environment on its own.

    Args:
        policies: Number of policies, or a list of policy indices.
        num_envs: Total number of environments.
        weights: Share of each policy: non-negative numbers, one per policy; they need not sum to 1. None: equal shares.

    Raises:
        TypeError: If `policies` or `num_envs` is a non-integer, or if `weights` are not numbers.
        ValueError: If an argument is out of range, or if there are more than 2**38 seats.

    Example:
        >>> from pz_policymap import Balanced, Draw
        >>> draw = Draw.at(1, ["a", "b"], env_index=range(5), episode=[0] * 5)
        >>> Balanced(3, num_envs=5, weights=[0.8, 0.1, 0.1]).assign(draw).tolist()
        [[0, 0], [1, 0], [0, 2], [0, 0], [0, 0]]
    """

    num_envs: int = field()
    weights: ArrayLike | None = None

    needs_seed = True
    needs_all_seats = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_envs", integer("num_envs", self.num_envs, 1))
        if callable(self.weights):
            raise TypeError(
                f"weights must be numbers, because all environments share them, got the callable {self.weights!r}; "
                f"use set_mapping to change them"
            )
        if self.weights is not None:
            weights = checked_weights(self.weights, self.size)
            if weights.ndim > 1:
                raise ValueError(f"weights must be a vector, one number per policy, got shape {weights.shape}")
            object.__setattr__(self, "weights", tuple(weights.tolist()))

    @property
    @override
    def needs_env_index(self) -> bool:  # type: ignore[override]
        return self.num_envs > 1

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
        # Place s belongs to the first policy with floor(C_p + t) > s, which is C_p >= s + 1 - t.
        policy: NDArray[np.intp] = np.searchsorted(self._dues(num_seats), (places + 1 << _FRACTION) - t[:, None])
        return self.indices(policy)

    def _dues(self, num_seats: int) -> IntArray:
        """Returns C_p for every policy, in units of 2**-24 seats."""
        weights = np.ones(self.size) if self.weights is None else np.asarray(self.weights, np.float64)
        total = np.cumsum(weights)
        dues: IntArray = np.rint(total / total[-1] * (num_seats << _FRACTION)).astype(np.int64)
        return dues
