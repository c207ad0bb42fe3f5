"""`Entrant`: a policy that each worker process loads once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Entrant:
    """A policy of a tournament that each worker process loads once, such as a checkpoint file.

    Args:
        load: Returns the policy, for instance `PPO.load`. It must be importable in the worker.
        *args: Positional arguments of `load`.
        version: Text that identifies the contents of the policy. A tournament refuses to add games to those of another
            version under the same name. None: a hash of the files among the arguments, if there are any.
        **kwargs: Keyword arguments of `load`.

    Raises:
        TypeError: If `load` is not callable, or if `version` is not a string.

    Example:
        >>> def constant(action):
        ...     return lambda observation, agent, info: action
        >>> entrant = Entrant(constant, 3)
        >>> entrant.load()(None, "red", {})
        3
        >>> entrant
        Entrant(constant, 3)
    """

    def __init__(self, load: Callable[..., Any], *args: Any, version: str | None = None, **kwargs: Any) -> None:
        if not callable(load):
            raise TypeError(f"load must be a callable that returns a policy, got {load!r}")
        if version is not None and not isinstance(version, str):
            raise TypeError(f"version must be a string or None, got {version!r}")
        self._load, self._args, self._kwargs, self._version = load, args, kwargs, version

    @classmethod
    def from_folder(
        cls, folder: str | os.PathLike[str], load: Callable[..., Any], pattern: str = "*"
    ) -> dict[str, Any]:
        """Returns one entrant per file of a folder, by the name of the file without its suffix.

        Args:
            folder: The folder, such as one of checkpoints.
            load: Returns the policy of a file, whose path is its only argument.
            pattern: Pattern of file names, such as "*.zip".

        Raises:
            ValueError: If no file matches, or if two of them have the same name.
        """
        entrants: dict[str, Any] = {}
        for path in sorted(path for path in Path(folder).glob(pattern) if path.is_file()):
            if path.stem in entrants:
                raise ValueError(f"folder must hold one file per name, got {path.stem!r} twice in {os.fspath(folder)}")
            entrants[path.stem] = cls(load, str(path))
        if not entrants:
            raise ValueError(f"folder must hold files that match {pattern!r}, got none in {os.fspath(folder)}")
        return entrants

    @property
    def version(self) -> str | None:
        """The given version, or the hash of the files among the arguments; None without files."""
        if self._version is not None:
            return self._version
        paths = [value for value in (*self._args, *self._kwargs.values()) if isinstance(value, (str, os.PathLike))]
        digest = hashlib.sha256()
        for path in (files := [path for path in paths if os.path.isfile(path)]):  # noqa: PTH113  # also odd strings
            with Path(path).open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
        return f"sha256 {digest.hexdigest()}" if files else None

    def load(self) -> Any:
        """Returns the policy; errors are those of the loading function."""
        return self._load(*self._args, **self._kwargs)

    def __repr__(self) -> str:
        name = getattr(self._load, "__qualname__", repr(self._load))
        given = [*map(repr, self._args), *(f"{key}={value!r}" for key, value in self._kwargs.items())]
        return f"Entrant({', '.join([name, *given])})"


def loaded(policy: Any) -> Any:
    """Returns a policy, loaded if it is an `Entrant`."""
    return policy.load() if isinstance(policy, Entrant) else policy
