"""`Entrant`: a policy that is loaded where it acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Entrant:
    """A policy of a tournament that each worker process loads once, such as a checkpoint file.

    Args:
        load: Returns the policy, for instance `PPO.load`. It must be importable in the worker.
        *args: Positional arguments of `load`.
        **kwargs: Keyword arguments of `load`.

    Raises:
        TypeError: If `load` is not callable.

    Example:
        >>> def constant(action):
        ...     return lambda observation, agent, info: action
        >>> entrant = Entrant(constant, 3)
        >>> entrant.load()(None, "red", {})
        3
        >>> entrant
        Entrant(constant, 3)
    """

    def __init__(self, load: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(load):
            raise TypeError(f"load must be a callable that returns a policy, got {load!r}")
        self._load, self._args, self._kwargs = load, args, kwargs

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
