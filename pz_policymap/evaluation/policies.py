"""Policies by name: `random`, or `my.module:function`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pz_policymap.batching.policy_groups import mask_of
from pz_policymap.cli.errors import CommandError, UsageError, told
from pz_policymap.cli.named import object_named

RANDOM = "random"
Policy = Callable[[Any, Any, Any], Any]


class RandomPolicy:
    """Samples actions uniformly, of those that an action mask allows.

    Args:
        space_of: The action space of an agent; it is copied, for some environments sample from their own.
    """

    def __init__(self, space_of: Callable[[Any], Any]) -> None:
        self._space_of = space_of
        self._spaces: dict[Any, tuple[Any, Any]] = {}  # of each agent the environment's, and the copy
        self._fresh: set[Any] = set()  # agents whose space has this episode's seed
        self._seed: tuple[int, ...] = (0,)

    def begin(self, *seed: int) -> None:
        """Begins an episode whose actions follow from this seed."""
        self._seed, self._fresh = seed, set()

    def __call__(self, observation: Any, agent: Any, info: Any) -> Any:
        """Returns an action."""
        if agent not in self._fresh:
            space = self._space_of(agent)
            if agent not in self._spaces or self._spaces[agent][0] is not space:  # some make agents anew at a reset
                self._spaces[agent] = space, copy.deepcopy(space)
            words = np.random.SeedSequence([*self._seed, len(self._fresh)]).generate_state(1)
            self._spaces[agent][1].seed(int(words[0]) >> 1)  # some spaces take no more than 31 bits
            self._fresh.add(agent)
        mask = mask_of(observation, info)
        if isinstance(mask, (list, np.ndarray)):
            mask = np.asarray(mask, np.int8)
        return self._spaces[agent][1].sample(mask)


def policy_names(words: Sequence[str]) -> list[str]:
    """Returns one name a policy: a single number stands for that many random ones.

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


def policies_named(names: Sequence[str], space_of: Callable[[Any], Any]) -> list[Any]:
    """Returns the policies: functions of observation, agent and info, or objects with `predict`.

    Args:
        names: Each `random` or `module:name`. A class is made without arguments.
        space_of: The action space of an agent, for random ones.

    Raises:
        UsageError: If there is no such policy, or if it is none.
        CommandError: If its module cannot be imported, or if a class cannot be made.
    """
    return [RandomPolicy(space_of) if name == RANDOM else _policy(name) for name in names]


def _policy(name: str) -> Any:
    policy = object_named("policy", name)
    if inspect.isclass(policy):
        policy = _made(name, policy)
    if callable(getattr(policy, "predict", None)):
        return policy
    if not callable(policy):
        raise UsageError(f"policy {name!r} must be a function of observation, agent and info, got {policy!r}")
    try:
        inspect.signature(policy).bind(None, None, None)
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
