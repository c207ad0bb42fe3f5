"""Batched multi-agent simulators whose ends are known beforehand, and a tensor that counts its transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np

AGENTS = ["red", "blue", "green"]


class ScriptedSimulator:
    """An agent-major simulator that follows a script; each agent of environment i earns `i + 1` per step.

    Args:
        num_envs: Number of environments.
        ends: By step, from 1: the (environment, agent) pairs that end, or environments for "all" and "array".
            An odd step terminates, an even step truncates.
        flags: How ends are returned: "agents", dicts by agent; "all", under "__all__"; "array", one array; "done", one
            array and no truncations.
        mode: The declared autoreset mode, or None.
        convert: Turns each NumPy array into the array to return.
        infos: Returned at reset and at each step.
    """

    possible_agents: ClassVar[list[str]] = AGENTS

    def __init__(
        self,
        num_envs: int = 3,
        ends: Sequence[Any] = (),
        flags: str = "agents",
        mode: str | None = "SameStep",
        convert: Any = np.array,
        infos: Any = None,
    ) -> None:
        self.num_envs, self.ends, self.flags, self.convert = num_envs, ends, flags, convert
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.infos: Any = {} if infos is None else infos
        self.time = 0
        self.calls: list[Any] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.calls.append((seed, options))
        return self._observations(), self.infos

    def reset_at(self, index: Any) -> Any:
        self.calls.append(index)
        return self._observations()

    def step(self, actions: Any) -> Any:
        self.time += 1
        ended = np.zeros((self.num_envs, len(AGENTS)), np.bool_)
        for end in self.ends[self.time - 1] if self.time <= len(self.ends) else ():
            ended[(end[0], AGENTS.index(end[1])) if isinstance(end, tuple) else end] = True
        rewards = {agent: self.convert(np.arange(1.0, self.num_envs + 1)) for agent in AGENTS}
        if self.flags == "done":
            return self._observations(), rewards, self.convert(ended.all(1)), self.infos
        both = (ended, np.zeros_like(ended)) if self.time % 2 else (np.zeros_like(ended), ended)
        return (self._observations(), rewards, *map(self._flags, both), self.infos)

    def _flags(self, ended: Any) -> Any:
        if self.flags == "array":
            return self.convert(ended.all(1))
        by_agent = {agent: self.convert(ended[:, seat]) for seat, agent in enumerate(AGENTS)}
        return by_agent | ({"__all__": self.convert(ended.all(1))} if self.flags == "all" else {})

    def _observations(self) -> Any:
        return {agent: self.convert(np.full((self.num_envs, 2), float(self.time))) for agent in AGENTS}


class Gym(gymnasium.Env[Any, Any]):
    """A batched simulator that is a `gymnasium.Env`, with whatever attributes it is given."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)
