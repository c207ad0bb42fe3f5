"""Mappings written on one line: `uniform:8`, `teams:uniform:4`, `focal:fixed(0),weighted(1,2,3)`.

`name:arguments` is `Name(arguments)`, the constructor of a mapping with the arguments of Python, so the README's table
and this grammar are one. Only mappings, numbers, words, lists and dicts can be written: nothing is executed.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pz_policymap as pm
from pz_policymap.cli.errors import UsageError, told
from pz_policymap.cli.named import object_named
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import as_mapping

NAMES: dict[str, type[PolicyMapping]] = {
    kind.__name__.lower(): kind
    for kind in (
        pm.Uniform,
        pm.Weighted,
        pm.Fixed,
        pm.ByEnvIndex,
        pm.Shared,
        pm.Teams,
        pm.Roles,
        pm.Focal,
        pm.PerWorker,
        pm.Balanced,
        pm.RoundRobin,
    )
}
_ONE_LIST = ("uniform", "weighted")  # several numbers are one list: weighted:3,1,1 is Weighted([3, 1, 1])
_OF_ENVS = ("num_envs", "envs_per_worker")  # arguments that the number of environments fills in
_CONSTANTS = {"true": True, "false": False, "none": None}
_SHORT = re.compile(r"\s*([A-Za-z][\w-]*)\s*:(.*)", re.DOTALL)


def mapping_from(text: str, num_envs: int = 1) -> PolicyMapping:
    """Returns the mapping that a line names.

    Args:
        text: The size of a population, `name:arguments`, `Name(arguments)`, or `my.module:mapping` for an object or a
            function of one's own.
        num_envs: How many environments there are, for mappings that must know and are not told in the line.

    Raises:
        UsageError: If it names none.
        CommandError: If it names a module that cannot be imported.

    Example:
        >>> mapping_from("teams:uniform:4")
        Teams(mapping=Uniform(policies=4, mix=True, replace=True), team_of='prefix')
        >>> mapping_from("balanced:8", num_envs=64).num_envs
        64
    """
    if re.fullmatch(r"\s*\d+\s*", text):
        return _made("uniform", [int(text)], {}, num_envs)
    short = _SHORT.fullmatch(text)
    if (short is None and ":" in text and "(" not in text) or (short is not None and _name(short[1]) is None):
        return _of_ones_own(text)
    try:
        value = _value(ast.parse(_as_call(text), mode="eval").body, num_envs)
    except SyntaxError:
        raise UsageError(f"mapping {text!r} cannot be read: {_HELP}") from None
    if not isinstance(value, PolicyMapping):
        raise UsageError(f"{text!r} is no mapping: {_HELP}")
    return value


_HELP = (
    f"write name:arguments as in uniform:8, 'focal:fixed(0),uniform(4)' or my.module:mapping; "
    f"names are {', '.join(NAMES)}"
)


def _name(word: str) -> str | None:
    """Returns the key of a mapping's name in any spelling, or None."""
    key = re.sub(r"[-_]", "", word).lower()
    return key if key in NAMES else None


def _as_call(text: str) -> str:
    """Returns `a:b:c` as `a(b(c))`."""
    short = _SHORT.fullmatch(text)
    if short is None or (key := _name(short[1])) is None:
        return text.strip()
    return f"{key}({_as_call(short[2])})"


def _value(node: ast.expr, num_envs: int) -> Any:
    """Returns what a part of the line stands for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        key = _name(node.func.id)
        if key is None:
            raise UsageError(f"{node.func.id!r} is no mapping; names are {', '.join(NAMES)}")
        named = {keyword.arg or "**": _value(keyword.value, num_envs) for keyword in node.keywords}
        return _made(key, [_value(argument, num_envs) for argument in node.args], named, num_envs)
    if isinstance(node, ast.Name):  # a word, which needs no quotes here: order=seeded, mix=false
        return _CONSTANTS.get(node.id.lower(), node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(item, num_envs) for item in node.elts]
    try:
        if isinstance(node, ast.Dict) and all(node.keys):
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key, num_envs): _value(item, num_envs) for key, item in pairs if key is not None}
        return ast.literal_eval(node)
    except (TypeError, ValueError):  # a list, say, is no key
        raise UsageError(f"{ast.unparse(node)!r} is neither a mapping nor a number, a word, a list or a dict") from None


def _made(key: str, given: list[Any], named: dict[str, Any], num_envs: int) -> PolicyMapping:
    """Returns the mapping with these arguments."""
    kind = NAMES[key]
    numbers = [item for item in given if isinstance(item, (int, float)) and not isinstance(item, bool)]
    if key in _ONE_LIST and len(given) > 1 and len(numbers) == len(given):
        given = [given]
    signature = inspect.signature(kind)
    parameters = signature.parameters
    for place, name in enumerate(parameters):
        if name in _OF_ENVS and name not in named and place >= len(given) and key != "byenvindex":
            named = {**named, name: num_envs}
    try:
        signature.bind(*given, **named)
        return kind(*given, **named)
    except (TypeError, ValueError) as error:
        written = ", ".join([*map(str, given), *(f"{name}={value}" for name, value in named.items())])
        expected = ", ".join(parameters)
        raise UsageError(f"{kind.__name__}({written}): {told(error)}; its arguments are ({expected})") from error


def _of_ones_own(text: str) -> PolicyMapping:
    if "." not in text.partition(":")[0]:
        try:
            return _converted(text)
        except UsageError as error:
            raise UsageError(f"{told(error)}; and mappings are called {', '.join(NAMES)}") from error
    return _converted(text)


def _converted(text: str) -> PolicyMapping:
    value = object_named("mapping", text)
    try:
        return as_mapping(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{text}: {told(error)}") from error
