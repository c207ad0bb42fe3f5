"""Policies by name: `random`, or `my.module:function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pz_policymap.cli.errors import CommandError, UsageError, told
from pz_policymap.cli.named import object_named
from pz_policymap.policies.entrant import Entrant

RANDOM = "random"


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
        names: Each `random` or `module:name`. A class is instantiated without arguments.

    Raises:
        UsageError: If there is no such policy, or if it is not a policy.
        CommandError: If its module cannot be imported, or if a class cannot be made.
    """
    return [name if name == RANDOM else policy_named(name) for name in names]


def entrants_named(names: Sequence[str]) -> dict[str, Any]:
    """Returns entrants that each worker process imports by name; a repeated name gets a number.

    Example:
        >>> entrants_named(["random", "random", "bots:greedy"])
        {'random': 'random', 'random-2': 'random', 'bots:greedy': Entrant(policy_named, 'bots:greedy')}
    """
    entrants: dict[str, Any] = {}
    for place, name in enumerate(names):
        repeats = names[:place].count(name)
        key = f"{name}-{repeats + 1}" if repeats else name
        entrants[key] = name if name == RANDOM else Entrant(policy_named, name)
    return entrants


def policy_named(name: str) -> Any:
    """Returns the policy that `module:name` names; errors as in `policies_named`."""
    policy = object_named("policy", name)
    if inspect.isclass(policy):
        policy = _made(name, policy)
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


def _made(name: str, kind: Callable[[], Any]) -> Any:
    """Returns an object of a class."""
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise UsageError(f"policy {name!r} is a class that cannot be made without arguments: {told(error)}") from error
    except ValueError:
        pass  # some classes written in C have no signature
    try:
        return kind()
    except Exception as error:
        raise CommandError(f"policy {name!r} cannot be made: {told(error)}") from error
