"""Probability vectors: checks of numbers, normalisation, and policies that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import in_order, integer

Vector = NDArray[np.float64]
Exclude = int | Sequence[int] | None


def numbers(name: str, value: Any, dimensions: Sequence[int]) -> Vector:
    """Returns an array of floats, empty or with one of the given numbers of dimensions.

    Raises:
        TypeError: If `value` does not hold numbers.
        ValueError: If it has another number of dimensions.
    """
    try:
        array: Vector = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {value!r}") from error
    if array.ndim not in dimensions and array.shape != (0,):
        shapes = " or ".join({1: "a vector", 2: "a matrix"}[n] for n in dimensions)
        raise ValueError(f"{name} must be {shapes}, got shape {array.shape}")
    return array


def included(exclude: Exclude | Literal["self"], shape: Sequence[int]) -> NDArray[np.bool_]:
    """Returns a mask of the entries that are not excluded, the same number in every row.

    Args:
        exclude: One policy, several policies, None, or "self": policy i in row i of a matrix.
        shape: `(num_policies,)` or `(num_learners, num_policies)`.

    Raises:
        TypeError: If a policy is not an integer.
        ValueError: If a policy is out of range, if none is left, or if "self" is not an entry of every row.
    """
    mask = np.ones(shape, np.bool_)
    if exclude is None:
        return mask
    if isinstance(exclude, str):
        if exclude != "self" or len(shape) != 2 or shape[0] > shape[1]:
            raise ValueError(
                f"exclude must be a policy, a sequence of policies, or 'self' where every learner of a matrix has a "
                f"column, got {exclude!r} with shape {tuple(shape)}"
            )
        np.fill_diagonal(mask, val=False)
    else:
        policies = in_order("exclude", exclude) if np.iterable(exclude) else (exclude,)
        mask[..., [integer("exclude", policy, 0, shape[-1] - 1) for policy in policies]] = False
    if not mask.any(axis=-1).all():
        raise ValueError(f"exclude must leave at least one policy, got {exclude!r} of {shape[-1]}")
    return mask


def spread(weights: Vector, mask: NDArray[np.bool_]) -> Vector:
    """Returns an array with the shape of a mask: the weights where it is True, 0 elsewhere."""
    result = np.zeros(mask.shape)
    result[mask] = weights.ravel()
    return result


def uniform_from(first: int, end: int) -> Vector:
    """Returns `end` probabilities: equal from index `first` on, 0 before."""
    weights = np.zeros(end)
    weights[first:] = 1.0 / max(end - first, 1)
    return weights


def in_units_of_largest(weights: Vector) -> Vector:
    """Divides each row by its largest entry, so that powers and sums stay in the range of floats; zeros stay."""
    largest = weights.max(axis=-1, keepdims=True, initial=0.0)
    scaled: Vector = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0.0)
    return scaled


def normalised(weights: Vector) -> Vector:
    """Divides each row by its sum. A row of zeros becomes uniform."""
    scaled = in_units_of_largest(weights)
    total = scaled.sum(axis=-1, keepdims=True)
    fallback = np.full_like(scaled, 1.0 / max(scaled.shape[-1], 1))
    probabilities: Vector = np.divide(scaled, total, out=fallback, where=total > 0.0)
    return probabilities
