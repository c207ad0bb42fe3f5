"""What may be handed in as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.from_function import FromFunction
from pz_policymap.mappings.uniform import Uniform

MappingLike = PolicyMapping | Callable[[list[Any], Any], Mapping[Any, int]] | int


def as_mapping(mapping: MappingLike) -> PolicyMapping:
    """Returns a mapping as it is, a function as `FromFunction`, the size of a population as `Uniform`.

    Raises:
        TypeError: If it is none of these.
        ValueError: If it is a population of less than one.

    Example:
        >>> as_mapping(4)
        Uniform(policies=4, mix=True, replace=True)
    """
    if isinstance(mapping, PolicyMapping):
        return mapping
    if isinstance(mapping, type):
        raise TypeError(f"mapping must be a PolicyMapping or a function, got the class {mapping.__name__}")
    if callable(mapping):
        return FromFunction(mapping)
    if isinstance(mapping, bool) or not hasattr(mapping, "__index__"):
        raise TypeError(f"mapping must be a PolicyMapping, a function or the size of a population, got {mapping!r}")
    return Uniform(mapping)
