"""`mapping_from_text`: from the text form of a mapping, which is its `repr`, to the mapping."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from pz_policymap.mappings.balanced import Balanced
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.fixed import ByEnvIndex, Fixed
from pz_policymap.mappings.focal import Focal
from pz_policymap.mappings.per_worker import PerWorker
from pz_policymap.mappings.roles import Roles
from pz_policymap.mappings.round_robin import RoundRobin
from pz_policymap.mappings.shared import Shared
from pz_policymap.mappings.teams import Teams
from pz_policymap.mappings.uniform import Uniform
from pz_policymap.mappings.weighted import Weighted

MAPPINGS: dict[str, type[PolicyMapping]] = {
    kind.__name__: kind
    for kind in (
        Uniform,
        Weighted,
        Fixed,
        ByEnvIndex,
        Shared,
        Teams,
        Roles,
        Focal,
        PerWorker,
        Balanced,
        RoundRobin,
    )
}


def mapping_from_text(text: str) -> PolicyMapping:
    """Returns the mapping with this text form; the text is parsed, never evaluated.

    Args:
        text: The `repr` of a mapping, or the size of a population: "4" is "Uniform(4)". Arguments are mappings,
            numbers, strings, True, False, None, lists and dicts.

    Raises:
        TypeError: If `text` is not a string.
        ValueError: If it is not the text form of a mapping, or if a mapping does not accept its arguments.

    Example:
        >>> mapping_from_text("Focal(Fixed(0), Weighted([0, 3, 1, 1]), num_focal=2)")
        Focal(Fixed(0), Weighted([0, 3, 1, 1]), num_focal=2)
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {text!r}")
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is not the text form of a mapping, such as Focal(Fixed(0), Uniform(4))") from error
    value = _value(expression)
    if isinstance(value, int) and not isinstance(value, bool):
        return Uniform(value)
    if not isinstance(value, PolicyMapping):
        raise ValueError(f"{text!r} is not a mapping; the mappings are {', '.join(MAPPINGS)}")
    return value


def _value(node: ast.expr) -> Any:
    """Returns the value of a part of the text."""
    if isinstance(node, ast.Call):
        return _mapping(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict) and all(node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _value(item) for key, item in pairs if key is not None}
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        known = f"; the mappings are {', '.join(MAPPINGS)}" if isinstance(node, ast.Name) else ""
        raise ValueError(
            f"{ast.unparse(node)} is not a mapping, number, string, True, False, None, list or dict{known}"
        ) from None


def _mapping(node: ast.Call) -> PolicyMapping:
    """Returns the mapping that a call in the text stands for."""
    name = ast.unparse(node.func)
    if name not in MAPPINGS:
        raise ValueError(f"{name!r} is not a mapping; the mappings are {', '.join(MAPPINGS)}")
    signature = inspect.signature(MAPPINGS[name])
    arguments = [_value(argument) for argument in node.args]
    named = {keyword.arg or "**": _value(keyword.value) for keyword in node.keywords}
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        raise ValueError(
            f"{name} takes ({', '.join(signature.parameters)}), got {ast.unparse(node)}: {error}"
        ) from error
    try:
        return MAPPINGS[name](*arguments, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{ast.unparse(node)} cannot be made: {error}") from error
