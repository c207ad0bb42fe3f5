"""Policies for tests of the command line, named as `tests.cli_bots:first_free`."""

from __future__ import annotations

import itertools
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NUMBER = 3


def first_free(observation: Any, agent: Any, info: Any) -> int:
    return int(np.flatnonzero(observation["action_mask"])[0])


def last_free(observation: Any, agent: Any, info: Any) -> int:
    return int(np.flatnonzero(observation["action_mask"])[-1])


def slow(observation: Any, agent: Any, info: Any) -> int:
    """Sleeps for a time set by the test."""
    time.sleep(float(os.environ.get("CLI_BOTS_DELAY", "0")))
    return last_free(observation, agent, info)


def dies(observation: Any, agent: Any, info: Any) -> int:
    os._exit(3)


def interrupts(observation: Any, agent: Any, info: Any) -> int:
    """Interrupts the process, as Ctrl-C does."""
    raise KeyboardInterrupt


def fails(observation: Any, agent: Any, info: Any) -> int:
    raise ZeroDivisionError("no idea")


def draws_globally(observation: Any, agent: Any, info: Any) -> int:
    free = np.flatnonzero(observation["action_mask"])
    return int(free[random.randrange(len(free))])


def draws_from_numpy(observation: Any, agent: Any, info: Any) -> int:
    return int(np.random.choice(np.flatnonzero(observation["action_mask"])))  # noqa: NPY002  # on purpose


def always(move: int) -> Any:
    """Returns a policy that makes one move."""
    return lambda observation, agent, info: move


def loads(path: str, log: str = "") -> Any:
    """Returns a policy from a file that holds "first" or "last"; adds the process to a log."""
    if log:
        with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123  # appended by several processes
            file.write(f"{os.getpid()}\n")
    name = Path(path).read_text(encoding="utf-8")
    return {"first": first_free, "last": last_free}[name]


class Remembers:
    """A class without constructor arguments."""

    def __call__(self, observation: Any, agent: Any, info: Any) -> int:
        return first_free(observation, agent, info)


class Move:
    """A class with one constructor argument."""

    def __init__(self, move: int) -> None:
        self.move = move

    def __call__(self, observation: Any, agent: Any, info: Any) -> int:
        return self.move


class Needs:
    def __init__(self, weights: Any) -> None:
        self.weights = weights


class Predicts:
    def predict(self, observations: Any, action_masks: Any) -> tuple[Any, None]:
        return np.array([np.flatnonzero(mask)[0] for mask in action_masks]), None


def two_arguments(observation: Any, agent: Any) -> int:
    return 0


def learner_first(agents: list[Any], draw: Any) -> dict[Any, int]:
    return {agent: 0 if agent == agents[0] else 1 for agent in agents}


class CannotBeMade:
    def __init__(self) -> None:
        raise RuntimeError("no weights here")


class Miscalls:
    def __init__(self) -> None:
        two_arguments()  # type: ignore[call-arg]


def three_blocks(agents: list[Any], draw: Any) -> dict[Any, int]:
    """Raises after the first three blocks."""
    return {agent: [0, 1, 1][draw.block] for agent in agents}


def exits(observation: Any, agent: Any, info: Any) -> int:
    sys.exit(0)


def prints(observation: Any, agent: Any, info: Any) -> int:
    print("a message of the policy")  # noqa: T201
    return first_free(observation, agent, info)


def impure(agents: list[Any], draw: Any) -> dict[Any, int]:
    """Returns different policies at every call."""
    return {agent: next(_calls) for agent in agents}


_calls = itertools.count()


def printing_rule(agents, draw):
    """A mapping that prints, as does a library below it."""
    print("from Python")  # noqa: T201
    os.write(1, b"from C")
    return dict.fromkeys(agents, 0)
