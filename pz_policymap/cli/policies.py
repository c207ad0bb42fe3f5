"""Policies by name: `random`, `my.module:function`, or `my.module:factory('v2.zip')`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

from pz_policymap.cli.errors import CommandError, UsageError, error_message
from pz_policymap.cli.named import object_named
from pz_policymap.policies.entrant import Entrant
from pz_policymap.policies.seat_policies import RANDOM


def policy_names(words: Sequence[str]) -> list[str]:
    """Returns one name per policy: a single number stands for that many random policies.

    Raises:
        UsageError: If a word is neither `random` nor of the form `module:name`, or if the number is 0.

    Example:
        >>> policy_names(["2"]), policy_names(["random", "bots:greedy"])
        (['random', 'random'], ['random', 'bots:greedy'])
    """
    if len(words) == 1 and words[0].isdecimal():
        if not int(words[0]):
            raise UsageError("--policies must be at least 1, got 0")
        return [RANDOM] * int(words[0])
    for word in words:
        if word != RANDOM and ":" not in word:
            raise UsageError(f"--policies takes a number, or names: random or module:function, got {word!r}")
    return list(words)


def policies_named(names: Sequence[str]) -> list[Any]:
    """Returns the policies: functions of observation, agent and info, or objects with `predict`.

    Args:
        names: Each `random`, `module:name` or `module:name(arguments)`. A class is instantiated.

    Raises:
        UsageError: If the name does not exist, or if it is not a policy.
        CommandError: If its module cannot be imported, or if it cannot be made.
    """
    return [name if name == RANDOM else entrant_named(name).load() for name in names]


def entrants_named(names: Sequence[str], folder: str | None = None, loader: str | None = None) -> dict[str, Any]:
    """Returns entrants that each worker process loads by name; a repeated name gets a number.

    Args:
        names: As in `policies_named`.
        folder: A folder of checkpoints, each an entrant under the name of its file; None: none.
        loader: `module:function` that returns the policy of a checkpoint's path.

    Raises:
        UsageError: If only one of `folder` and `loader` is given, or if the folder holds no files.

    Example:
        >>> entrants_named(["random", "random", "bots:load('v2.zip')"])
        {'random': 'random', 'random-2': 'random', "bots:load('v2.zip')": Entrant(made, 'bots:load', 'v2.zip')}
    """
    entrants: dict[str, Any] = {}
    for place, name in enumerate(names):
        repeats = names[:place].count(name)
        key = f"{name}-{repeats + 1}" if repeats else name
        entrants[key] = name if name == RANDOM else entrant_named(name)
    if (folder is None) != (loader is None):
        raise UsageError("--checkpoints and --loader must be given together")
    if folder is not None and loader is not None:
        try:
            checkpoints = Entrant.from_folder(folder, _Loader(loader))
        except ValueError as error:
            raise UsageError(f"--checkpoints: {error_message(error)}") from error
        if twice := sorted(entrants.keys() & checkpoints.keys()):
            raise UsageError(
                f"--checkpoints: {folder} holds a file with the name of another policy: {', '.join(twice)}"
            )
        entrants |= checkpoints
    return entrants


class _Loader:
    """Loads a checkpoint by the function that a name stands for; it can be sent to another process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, path: str) -> Any:
        return made(self._name, path)


def entrant_named(name: str) -> Entrant:
    """Returns what `module:name` or `module:name(arguments)` stands for, to be loaded later.

    Raises:
        UsageError: If the arguments are not literals.
    """
    path, bracket, _ = name.partition("(")
    if not bracket:
        return Entrant(named, name)
    try:
        call = ast.parse(name.partition(":")[2], mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError("it is not a call")
        positional = [ast.literal_eval(argument) for argument in call.args]
        keywords = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError) as error:
        raise UsageError(
            f"policy {name!r} must be module:function or module:factory('v2.zip'), with literals"
        ) from error
    return Entrant(made, path, *positional, **keywords)


def named(name: str) -> Any:
    """Returns the policy that `module:name` stands for; a class is instantiated."""
    policy = object_named("policy", name)
    return made(name) if inspect.isclass(policy) else _checked(name, policy)


def made(name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the policy that a class or a factory makes."""
    factory = object_named("policy", name)
    try:
        inspect.signature(factory).bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"policy {name!r} cannot be made with these arguments: {error_message(error)}") from error
    except ValueError:
        pass  # some classes written in C have no signature
    try:
        policy = factory(*args, **kwargs)
    except Exception as error:
        raise CommandError(f"policy {name!r} cannot be made: {error_message(error)}") from error
    return _checked(name, policy)


def _checked(name: str, policy: Any) -> Any:
    """Returns a policy, or raises a UsageError if it is not one."""
    if callable(getattr(policy, "predict", None)):
        return policy
    if not callable(policy):
        raise UsageError(f"policy {name!r} must be a function of observation, agent and info, got {policy!r}")
    try:
        signature = inspect.signature(policy)
        signature.bind(None, None, None, **({"rng": None} if "rng" in signature.parameters else {}))
    except TypeError:
        raise UsageError(f"policy {name!r} must take three arguments: observation, agent and info") from None
    except ValueError:
        pass  # some functions written in C have no signature
    return policy
