"""Environments by name: a module, a function that makes one, or an id of PettingZoo's registry."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pz_policymap.cli.errors import CommandError, UsageError, error_message
from pz_policymap.cli.named import module_named, object_named

PARALLEL, AEC = "parallel", "aec"
APIS = {PARALLEL: "parallel_env", AEC: "env"}  # the functions of PettingZoo's modules


@dataclass(frozen=True)
class EnvName:
    """How to make an environment; it can be sent to another process.

    Args:
        name: `mpe2.simple_tag_v3`, a module that has `parallel_env` or `env`; `my.module:make_env`, a function or a
            class; or `classic/chess-v6`, an id of the registry that newer versions of PettingZoo have.
        api: "parallel" or "aec"; None: parallel where a module or the registry has it, else AEC.
        settings: Keyword arguments of the environment.
    """

    name: str
    api: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The text that identifies the environment in a results file."""
        return f"{self.name} {self.api} {dict(self.settings)}"

    def __call__(self) -> Any:
        """Makes the environment.

        Raises:
            UsageError: If the environment does not exist, or if it is not a PettingZoo environment.
            CommandError: If it cannot be imported or made.
        """
        from pettingzoo.utils.env import AECEnv, ParallelEnv

        make = self._from_registry() if "/" in self.name else self._from_module()
        try:
            env = make(**self.settings)
        except ImportError as error:
            raise CommandError(f"environment {self.name!r} needs a missing package: {error_message(error)}") from error
        except (Exception, SystemExit) as error:
            given = f" with {dict(self.settings)}" if self.settings else ""
            raise CommandError(f"environment {self.name!r} cannot be made{given}: {error_message(error)}") from error
        kinds = {PARALLEL: (ParallelEnv,), AEC: (AECEnv,), None: (ParallelEnv, AECEnv)}[self.api]
        if not isinstance(env, kinds):
            expected = " or ".join(f"{kind.__module__.split('.')[0]}'s {kind.__name__}" for kind in kinds)
            raise UsageError(f"environment {self.name!r} is a {type(env).__name__}, expected {expected}")
        return env

    def close(self, env: Any) -> None:
        """Closes an environment that this made.

        Raises:
            CommandError: If that fails, whatever the error is.
        """
        try:
            env.close()
        except Exception as error:
            raise CommandError(f"environment {self.name!r} cannot be closed: {error_message(error)}") from error

    def apis(self) -> list[str]:
        """Returns the APIs that the name offers, of "parallel" and "aec"; one where a function is named.

        Raises:
            UsageError, CommandError: As making it does.
        """
        if self.api is not None:
            return [self.api]
        if "/" in self.name:
            return [api for api in APIS if self._registered(api)] or [AEC]
        if ":" in self.name:
            from pettingzoo.utils.env import AECEnv

            env = self()
            self.close(env)
            return [AEC if isinstance(env, AECEnv) else PARALLEL]
        module = module_named(self.name)
        return [api for api, function in APIS.items() if hasattr(module, function)] or [PARALLEL]

    def _from_module(self) -> Any:
        if ":" in self.name:
            return object_named("environment", self.name)
        try:
            module = module_named(self.name)
        except UsageError as error:
            raise UsageError(f"{error_message(error)}{_suggestion(self.name)}") from error
        wanted = list(APIS.values()) if self.api is None else [APIS[self.api]]
        for function in wanted:
            if hasattr(module, function):
                return getattr(module, function)
        raise UsageError(f"module {self.name!r} has no {' and no '.join(wanted)}; name a function as {self.name}:make")

    def _from_registry(self) -> Any:
        if not _registries():
            version = _pettingzoo().__version__
            raise UsageError(f"PettingZoo {version} has no registry for {self.name!r}; name a module")
        api = self.api or (PARALLEL if self._registered(PARALLEL) else AEC)
        if not self._registered(api):
            raise UsageError(f"PettingZoo has no {api} environment {self.name!r}{_suggestion(self.name)}")

        def make(**settings: Any) -> Any:
            try:
                return _pettingzoo().make(api, self.name, **settings)
            except Exception as error:
                if type(error).__name__ == "FailedToImport":
                    raise ImportError(str(error)) from error
                raise

        return make

    def _registered(self, api: str) -> bool:
        """Whether PettingZoo knows the id, with or without version."""
        try:
            _pettingzoo().spec(api, self.name)
        except Exception:  # noqa: BLE001  # of several kinds; where PettingZoo has no registry, an AttributeError
            return False
        return True


def settings_from(words: Sequence[str]) -> dict[str, Any]:
    """Returns settings written as `name=value`; a value is a Python literal, or else a string.

    Raises:
        UsageError: If a word is not of this form.

    Example:
        >>> settings_from(["max_cycles=50", "continuous_actions=True", "mode=fast"])
        {'max_cycles': 50, 'continuous_actions': True, 'mode': 'fast'}
    """
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--set takes name=value, got {word!r}")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings


def _pettingzoo() -> Any:
    """Returns the package, untyped, for older ones have no registry."""
    import pettingzoo

    return pettingzoo


def _registries() -> dict[str, Any]:
    """Returns PettingZoo's registries by API; empty if it has none."""
    found = {api: getattr(_pettingzoo(), f"{api}_registry", None) for api in APIS}
    return {api: registry for api, registry in found.items() if registry}


def _suggestion(name: str) -> str:
    """Returns a hint at registered environments whose names are close."""
    known = {env_id.rpartition("/")[2].replace("-v", "_v"): env_id for ids in _registries().values() for env_id in ids}
    close = get_close_matches(name.rpartition("/")[2].replace("-v", "_v"), known, n=2)
    return f"; did you mean {' or '.join(known[match] for match in close)}?" if close else ""
