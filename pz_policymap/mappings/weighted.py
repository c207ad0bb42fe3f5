"""`Weighted`: policies drawn with given probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import population
from pz_policymap.draw import Draw
from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping


@dataclass(frozen=True)
class Weighted(PolicyMapping):
    """Every seat plays a policy drawn with the given probabilities.

    Args:
        weights: Non-negative numbers, one a policy; they need not sum to 1. Or a callable without arguments that
            returns them; it is asked at every draw, once, and what it says holds for the whole block.
        policies: The policies that the weights are for: a count or a list. None: policy 0, 1, ... as many as there
            are weights, which a callable may change from draw to draw.

    Raises:
        TypeError: If `weights` are no numbers.
        ValueError: If a weight is negative, infinite or NaN, if all are zero, or if their number is not that of
            `policies`. For a callable, at the draw.

    Example:
        >>> from pz_policymap import Draw, Weighted
        >>> draw = Draw.at(42, ["a", "b", "c"], env_index=[0, 1], episode=[0, 0])
        >>> Weighted([0.7, 0.0, 0.3]).assign(draw).tolist()
        [[0, 0, 0], [2, 0, 2]]
    """

    weights: ArrayLike | Callable[[], ArrayLike]
    policies: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.policies is not None:
            object.__setattr__(self, "policies", population("policies", self.policies))
        if not callable(self.weights):
            object.__setattr__(self, "weights", tuple(_checked(self.weights, self._size).tolist()))

    @property
    def _size(self) -> int | None:
        policies = self.policies
        return policies if policies is None or isinstance(policies, int) else len(policies)

    @property
    @override
    def num_policies(self) -> int | None:
        if self.policies is None:
            return None if callable(self.weights) else len(self._limits)
        return self.policies if isinstance(self.policies, int) else None

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        """The cumulative probabilities; the last one is exactly 1, so that no draw lies above it."""
        total = np.cumsum(np.asarray(self.weights, np.float64))
        limits: NDArray[np.float64] = total / total[-1]
        return limits

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, weights=ask(self.weights)) if callable(self.weights) else self

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        if callable(self.weights):
            return replace(self, weights=self.weights()).assign(draw)
        picks = np.searchsorted(self._limits, draw.uniform(), side="right")
        if self.policies is None or isinstance(self.policies, int):
            return picks
        return np.asarray(self.policies)[picks]


def _checked(weights: Any, size: int | None) -> NDArray[np.float64]:
    """Returns the weights as a vector, or raises."""
    try:
        vector = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"weights must be a vector of numbers, got {weights!r}") from error
    if vector.ndim != 1 or not vector.size:
        raise ValueError(f"weights must be a vector, one a policy, got shape {vector.shape}")
    if size is not None and len(vector) != size:
        raise ValueError(f"weights must be {size}, one a policy, got {len(vector)}: {vector}")
    if not np.isfinite(vector).all() or (vector < 0).any():
        raise ValueError(f"weights must be finite and not negative, got {vector}")
    if not vector.any():
        raise ValueError(f"weights must not all be zero, got {vector}")
    return vector
