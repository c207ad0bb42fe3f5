"""The text of a mapping and of its settings, the same in every process: `Focal(Fixed(0), Uniform(4))`."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from functools import cached_property
from typing import Any

import numpy as np

_MAX_ENTRIES = 1000  # of an array; the text of a larger one holds its hash
_MAX_LENGTH = 300  # of the text of a mapping in a saved state


def mapping_text(mapping: Any) -> str:
    """Returns `Name(settings)`: required settings by position, others by name, those at their default left out.

    Settings are the fields of a dataclass, and else the public attributes of the object.
    """
    parameters = [f for f in dataclasses.fields(mapping) if f.init] if dataclasses.is_dataclass(mapping) else []
    texts: list[str] = []
    for parameter in parameters:
        text = text_of(getattr(mapping, parameter.name))
        if _is_required(parameter):
            texts.append(text)
        elif text != _default_text(parameter):
            texts.append(f"{parameter.name}={text}")
    fields = {field.name for field in dataclasses.fields(mapping)} if parameters else set()
    for name, value in vars(mapping).items():
        computed = isinstance(inspect.getattr_static(type(mapping), name, None), cached_property)
        if name not in fields and not name.startswith("_") and not computed:
            texts.append(f"{name}={text_of(value)}")
    return f"{type(mapping).__name__}({', '.join(texts)})"


def text_of(value: Any) -> str:  # noqa: PLR0911
    """Returns the text of a setting.

    Different settings have different texts as far as possible: a function is identified by its qualified name, and an
    object without a `repr` of its own by the name of its class.

    Example:
        >>> text_of({"b": (1.0, 2.5), "a": None})
        "{'a': None, 'b': [1, 2.5]}"
    """
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{text_of(k)}: {text_of(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(text_of, value))) + "}"
    if isinstance(value, np.ndarray):
        if value.size <= _MAX_ENTRIES:
            return text_of(value.tolist())
        return f"<array {value.shape} sha256:{hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()[:32]}>"
    if isinstance(value, np.generic):
        return text_of(value.item())  # the repr of NumPy scalars differs between versions
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return repr(int(value))
    if inspect.isroutine(value):
        return f"<function {value.__qualname__}>"
    has_no_repr = inspect.getattr_static(type(value), "__repr__") is object.__repr__
    if has_no_repr or (callable(value) and not isinstance(value, type)):
        return f"<{type(value).__qualname__}>"  # its repr may show an address
    return repr(value)


def saved_text(mapping: Any) -> str:
    """Returns the text that identifies a mapping in a saved state: its `repr`; if long, its beginning and a hash."""
    text = repr(mapping)
    if len(text) <= _MAX_LENGTH:
        return text
    return f"{text[:200]}... sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _is_required(parameter: dataclasses.Field[Any]) -> bool:
    return parameter.default is dataclasses.MISSING and parameter.default_factory is dataclasses.MISSING


def _default_text(parameter: dataclasses.Field[Any]) -> str:
    factory = parameter.default_factory
    return text_of(parameter.default if factory is dataclasses.MISSING else factory())
