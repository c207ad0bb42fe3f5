"""Mappings on the command line: the text form, a bare number, or `my.module:object`."""

from __future__ import annotations

import re

from pz_policymap.cli.errors import UsageError, error_message
from pz_policymap.cli.named import object_named
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import as_mapping
from pz_policymap.mappings.text import mapping_from_text

_OBJECT = re.compile(r"[\w.]+:[\w.]+")


def mapping_from(text: str) -> PolicyMapping:
    """Returns the mapping that an argument names.

    Args:
        text: Such as `Uniform(8)`, `8` or `my.module:mapping`, an object or a function.

    Raises:
        UsageError: If it does not name a mapping.
        CommandError: If it names a module that cannot be imported.

    Example:
        >>> mapping_from("Balanced(8, num_envs=64)").num_envs
        64
    """
    try:
        if _OBJECT.fullmatch(text):
            return as_mapping(object_named("mapping", text))
        return mapping_from_text(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"mapping {text}: {error_message(error)}") from error
