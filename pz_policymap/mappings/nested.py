"""What mappings made of mappings have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pz_policymap.mappings.base import PolicyMapping


def nested(name: str, mapping: Any) -> PolicyMapping:
    """Returns `mapping`, or raises a TypeError that names the argument if it is none."""
    if not isinstance(mapping, PolicyMapping):
        raise TypeError(f"{name} must be a PolicyMapping, got {mapping!r}")
    return mapping


def joint_population(mappings: Iterable[PolicyMapping]) -> int | None:
    """Returns the size of the population that several mappings draw from, None where one of them does not declare it.

    Example:
        >>> from pz_policymap import Uniform
        >>> joint_population([Uniform(2), Uniform(5)]), joint_population([Uniform(2), Uniform([7])])
        (5, None)
    """
    sizes = [mapping.num_policies for mapping in mappings]
    declared = [size for size in sizes if size is not None]
    return max(declared) if len(declared) == len(sizes) else None
