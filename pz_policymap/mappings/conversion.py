"""`as_mapping`: everything that is accepted as a mapping."""

from __future__ import annotations

from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.from_function import FromFunction, PolicyFunction
from pz_policymap.mappings.text import mapping_from_text
from pz_policymap.mappings.uniform import Uniform

MappingLike = PolicyMapping | PolicyFunction | int | str


def as_mapping(mapping: MappingLike) -> PolicyMapping:
    """Returns a `PolicyMapping` for a mapping, its text form, a function, or the size of a population.

    Raises:
        TypeError: If it is none of these.
        ValueError: If a size is below 1, or if a text is not the text form of a mapping.

    Example:
        >>> as_mapping(4), as_mapping("Focal(Fixed(0), Uniform(4))")
        (Uniform(4), Focal(Fixed(0), Uniform(4)))
    """
    if isinstance(mapping, PolicyMapping):
        return mapping
    if isinstance(mapping, str):
        return mapping_from_text(mapping)
    if isinstance(mapping, type):
        raise TypeError(f"mapping must be a PolicyMapping or a function, got the class {mapping.__name__}")
    if callable(mapping):
        return FromFunction(mapping)
    if isinstance(mapping, bool) or not hasattr(mapping, "__index__"):
        raise TypeError(
            f"mapping must be a PolicyMapping, its text form, a function or the size of a population, got {mapping!r}"
        )
    return Uniform(mapping)
