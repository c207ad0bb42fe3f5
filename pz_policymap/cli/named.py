"""Python objects by name: `my.module:thing`."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from pz_policymap.cli.errors import CommandError, UsageError, error_message


def module_named(name: str) -> ModuleType:
    """Returns a module, which may be in the current folder.

    Raises:
        UsageError: If the module does not exist.
        CommandError: If there is one and it cannot be imported.
    """
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)  # as `python -m` does
        importlib.invalidate_caches()
    try:
        if not name or name.startswith("."):
            raise ModuleNotFoundError(name=name)
        return importlib.import_module(name)
    except Exception as error:
        # Any other missing module is one that this one imports.
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name is not None
            and f"{name}.".startswith(f"{error.name}.")
        ):
            raise UsageError(
                f"there is no module {name!r}: it must be installed, or be in the current folder {here}"
            ) from None
        raise CommandError(f"module {name!r} cannot be imported: {error_message(error)}") from error


def object_named(what: str, name: str) -> Any:
    """Returns the object that `my.module:thing` names; `thing` may have dots.

    Args:
        what: Its kind, for errors.
        name: Module and object.

    Raises:
        UsageError: If the module does not define it.
        CommandError: If the module cannot be imported.

    Example:
        >>> object_named("policy", "random:Random.choice").__name__
        'choice'
    """
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise UsageError(f"{what} must be written as module:name, got {name!r}")
    found = module_named(module)
    try:
        return attrgetter(path)(found)
    except AttributeError:
        raise UsageError(f"{what} {name!r}: module {module!r} has no {path!r}") from None
