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
from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Weighted(PolicyMapping):
    """Every seat plays a policy drawn with the given probabilities.

    Args:
        weights: Non-negative numbers, one a policy; they need not sum to 1. In the background of `Focal` it may be a
            matrix with a row for each focal policy, from policy 0 on: the background of policy 2 draws by row 2. Or a
            callable without arguments that returns either; it is asked at every draw, once, and what it says holds for
            the whole block.
        policies: The policies that the weights (of a row) are for: a count or a list. None: policy 0, 1, ... as many as
            there are weights, which a callable may change from draw to draw.

    Raises:
        TypeError: If `weights` are no numbers.
        ValueError: If a weight is negative, infinite or NaN, if all (of a row) are zero, if their number is not that of
            `policies`, or if they are a matrix outside of `Focal`. For a callable, at the draw; there also if the focal
            policy has no row.

    Example:
        >>> from pz_policymap import Draw, Weighted
        >>> draw = Draw.at(42, ["a", "b", "c"], env_index=[0, 1], episode=[0, 0])
        >>> Weighted([0.7, 0.0, 0.3]).assign(draw).tolist()
        [[0, 0, 0], [2, 0, 2]]
    """

    weights: ArrayLike | Callable[[], ArrayLike]
    policies: int | Sequence[int] | None = None

    reads_agents = False

    def __post_init__(self) -> None:
        if self.policies is not None:
            object.__setattr__(self, "policies", population("policies", self.policies))
        if not callable(self.weights):
            weights = checked_weights(self.weights, self._size).tolist()
            object.__setattr__(self, "weights", tuple(tuple(w) if isinstance(w, list) else w for w in weights))

    @property
    def _size(self) -> int | None:
        policies = self.policies
        return policies if policies is None or isinstance(policies, int) else len(policies)

    @property
    @override
    def num_policies(self) -> int | None:
        if self.policies is None:
            return None if callable(self.weights) else self._limits.shape[-1]
        return self.policies if isinstance(self.policies, int) else None

    @property
    @override
    def needs_focal(self) -> bool:
        return not callable(self.weights) and self._limits.ndim == 2

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        """The cumulative probabilities; the last one is exactly 1, so that no draw lies above it."""
        total = np.cumsum(np.asarray(self.weights, np.float64), axis=-1)
        limits: NDArray[np.float64] = total / total[..., -1:]
        return limits

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        return replace(self, weights=ask(self.weights)) if callable(self.weights) else self

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        if callable(self.weights):
            return replace(self, weights=self.weights()).assign(draw)
        limits, share = self._limits, draw.uniform()
        if limits.ndim == 1:
            picks = np.searchsorted(limits, share, side="right")
        else:
            picks = np.empty(share.shape, np.intp)
            rows = self._rows(draw)
            for row in np.unique(rows):
                picks[rows == row] = np.searchsorted(limits[row], share[rows == row], side="right")
        if self.policies is None or isinstance(self.policies, int):
            return picks
        return np.asarray(self.policies)[picks]

    def _rows(self, draw: Draw) -> NDArray[Any]:
        """Returns the row of the matrix that each environment draws by."""
        if draw.focal is None:
            raise ValueError("weights are a matrix, whose row is the focal policy's, outside of Focal's background")
        missing = draw.focal >= len(self._limits)
        if missing.any():
            row = int(np.argmax(missing))
            raise ValueError(
                f"weights must have a row for every focal policy, got {len(self._limits)} rows and focal policy "
                f"{draw.focal[row]} in environment {draw.env_index[row]}"
            )
        return draw.focal


def checked_weights(weights: Any, size: int | None) -> NDArray[np.float64]:
    """Returns the weights as a vector, one a policy, or a matrix of such rows, or raises.

    Args:
        weights: What was given.
        size: How many policies there are; None for any number.
    """
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"weights must be a vector or a matrix of numbers, got {weights!r}") from error
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"weights must be a vector, one a policy, or a matrix of such rows, got shape {array.shape}")
    if size is not None and array.shape[-1] != size:
        raise ValueError(f"weights must be {size}, one a policy, got {array.shape[-1]}: {array}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"weights must be finite and not negative, got {array}")
    nothing = ~array.any(axis=-1)
    if nothing.any():
        where = "" if array.ndim == 1 else f" in row {int(np.argmax(nothing))}"
        raise ValueError(f"weights must not all be zero{where}, got {array}")
    with np.errstate(over="ignore"):
        too_large = ~np.isfinite(array.sum(axis=-1)).all()
    return array / array.max(axis=-1, keepdims=True) if too_large else array
