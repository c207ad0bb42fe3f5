"""`Weighted`: policies drawn with given probabilities."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import population
from pz_policymap.mappings.base import Ask, PolicyIds, PolicyMapping, WeightsFunction
from pz_policymap.mappings.representation import text_of
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Weighted(PolicyMapping):
    """Every seat is controlled by a policy drawn with the given probabilities.

    Args:
        weights: Non-negative numbers, one per policy; they need not sum to 1. In the background of `Focal` it may be a
            matrix with one row per focal policy: row 2 holds the weights for opponents of policy 2. It may also be a
            callable without arguments that returns either. It is called once per draw, and its answer holds for the
            whole block. In another process it reads a copy of its data, which does not see new results; pickling it
            and calling it there warns. Send numbers with `set_mapping` instead.
        policies: The policies that the weights (of a row) are for: a number of policies, or a list of policy indices.
            None: as many policies as there are weights; the answers of a callable may then differ in length.

    Raises:
        TypeError: If `weights` are not numbers.
        ValueError: If a weight is negative, infinite or NaN, if all weights are zero, if there are more or fewer
            weights than `policies`, or if they are a matrix outside of `Focal`. For a callable, at the draw. Also at
            the draw if the row of the focal policy is missing or all zero.

    Example:
        >>> from pz_policymap import Draw, Weighted
        >>> draw = Draw.at(42, ["a", "b", "c"], env_index=[0, 1], episode=[0, 0])
        >>> Weighted([0.7, 0.0, 0.3]).assign(draw).tolist()
        [[0, 0, 0], [2, 0, 2]]
    """

    weights: ArrayLike | Callable[[], ArrayLike]
    policies: int | Sequence[int] | None = None

    reads_agents = False
    _process: ClassVar[int]  # in which it was made
    _rows_read: ClassVar[set[int] | None] = None  # of the answer of a callable

    def __post_init__(self) -> None:
        object.__setattr__(self, "_process", os.getpid())
        if self.policies is not None:
            object.__setattr__(self, "policies", population("policies", self.policies))
        if not callable(self.weights):
            if isinstance(self.weights, Answer):
                object.__setattr__(self, "_rows_read", self.weights.rows)
            weights = checked_weights(self.weights, self._size)
            object.__setattr__(self, "weights", tuple(weights.tolist()) if weights.ndim == 1 else weights)

    @property
    def _size(self) -> int | None:
        policies = self.policies
        return policies if policies is None or isinstance(policies, int) else len(policies)

    @property
    @override
    def num_policies(self) -> int | None:  # type: ignore[override]
        if self.policies is None:
            return None if callable(self.weights) else np.shape(self.weights)[-1]
        return self.policies if isinstance(self.policies, int) else None

    @property
    @override
    def needs_focal(self) -> bool:  # type: ignore[override]
        return isinstance(self.weights, np.ndarray)

    @property
    @override
    def reads_weights(self) -> bool:  # type: ignore[override]
        return callable(self.weights)

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return _cumulative(np.asarray(self.weights, np.float64))

    @override
    def bind(self, ask: Ask) -> PolicyMapping:
        if not callable(self.weights):
            return self
        if os.getpid() != self._process:  # forked workers pickle nothing
            _warn_of_copy(self.weights, "is called in another process")
        return replace(self, weights=ask(self.weights))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        if callable(self.weights):
            return replace(self, weights=self.weights()).assign(draw)
        if isinstance(self.weights, np.ndarray):
            picks = self._picks_by_row(self.weights, draw)
        else:
            picks = self._limits.searchsorted(draw.uniform(), side="right")
        if self.policies is None or isinstance(self.policies, int):
            return picks
        return np.asarray(self.policies)[picks]

    def _picks_by_row(self, matrix: NDArray[np.float64], draw: Draw) -> NDArray[np.intp]:
        """Returns the picks of each environment by the row of its focal policy."""
        if draw.focal is None:
            raise ValueError("weights must be a vector outside of the background of Focal, got a matrix")
        share = draw.uniform()
        picks = np.empty(share.shape, np.intp)
        rows = sorted(set(draw.focal.tolist()))
        if self._rows_read is not None:
            self._rows_read.update(rows)
        for row in rows:
            envs = draw.focal == row
            if row >= len(matrix) or not matrix[row].any():
                raise ValueError(
                    f"weights must have a row that is not all zero for every focal policy, got shape {matrix.shape} "
                    f"for focal policy {row} in environment {draw.env_index[np.argmax(envs)]}"
                )
            picks[envs] = _cumulative(matrix[row]).searchsorted(share[envs], side="right")
        return picks

    def __getstate__(self) -> dict[str, Any]:
        if callable(self.weights):
            _warn_of_copy(self.weights, "is pickled")
        return self.__dict__

    def __copy__(self) -> Weighted:
        return self  # a value; copying within a process does not warn

    def __deepcopy__(self, memo: dict[int, Any]) -> Weighted:
        return replace(self, weights=copy.deepcopy(self.weights, memo))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weighted) or type(other) is not type(self):
            return NotImplemented
        if callable(self.weights) or callable(other.weights):
            return bool(self.weights == other.weights) and self.policies == other.policies
        return np.array_equal(self.weights, other.weights) and self.policies == other.policies

    def __hash__(self) -> int:
        weights = self.weights
        return hash((self.policies, weights.shape if isinstance(weights, np.ndarray) else weights))


def _warn_of_copy(weights: Callable[[], Any], what: str) -> None:
    warnings.warn(
        f"weights callable {text_of(weights)} {what}: it reads a copy of its data, such as a ledger, and does not see "
        f"new results; send numbers with set_mapping instead",
        stacklevel=3,
    )


class Answer(np.ndarray[Any, Any]):
    """The answer of a weights callable for one draw; it is not copied, so that a large matrix costs little.

    Attributes:
        rows: The rows of a matrix that the draw has read.
    """

    rows: set[int]

    @classmethod
    def of(cls, function: WeightsFunction) -> Answer:
        """Calls a weights callable and returns its answer."""
        answer = np.asarray(function()).view(cls)
        answer.rows = set()
        return answer

    def kept(self, whole: bool) -> NDArray[Any]:
        """Returns a copy of the part that agents joining mid-episode in a single environment may need.

        A draw of one environment that has read a row of a matrix reads that row only, however many agents join.

        Args:
            whole: Whether to keep a matrix whole in any case.
        """
        if whole or len(self.rows) != 1:
            return np.array(self)
        return np.array(self[next(iter(self.rows))])


def checked_weights(weights: Any, size: int | None) -> NDArray[np.float64]:
    """Returns the weights as a read-only vector, one number per policy, or a matrix of such rows, or raises.

    Args:
        weights: The weights as given.
        size: Number of policies; None for any number.
    """
    try:
        array = (np.asarray if isinstance(weights, Answer) else np.array)(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"weights must be a vector or a matrix of numbers, got {weights!r}") from error
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(
            f"weights must be a vector, one number per policy, or a matrix of such rows, got shape {array.shape}"
        )
    if size is not None and array.shape[-1] != size:
        raise ValueError(f"weights must be {size} numbers, one per policy, got {array.shape[-1]}: {array}")
    largest = array.max(axis=-1, keepdims=True)
    if not (array.min() >= 0 and largest.max() < np.inf):  # also if one is NaN
        raise ValueError(f"weights must be finite and not negative, got {array}")
    if array.ndim == 1 and not largest[0]:
        raise ValueError(f"weights must not all be zero, got {array}")
    huge = largest > np.finfo(np.float64).max / array.shape[-1]
    if huge.any():  # the sum of the row might overflow
        array = np.divide(array, largest, out=array.copy(), where=huge)
    array.flags.writeable = False
    return array


def _cumulative(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the cumulative probabilities; the last one is exactly 1, so that no draw lies above it."""
    total = np.cumsum(weights)
    limits: NDArray[np.float64] = total / total[-1]
    return limits
