"""Gymnasium environments, single and vector, with scripted ends or ends drawn from their own seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import ParallelEnv

from pz_policymap.wrappers.autoreset import Autoreset

BOX = gymnasium.spaces.Box(0, 1000, (1,), np.float32)
TWO = gymnasium.spaces.Discrete(2)

KNOWS_MODES = hasattr(gymnasium.vector, "AutoresetMode")
needs_modes = pytest.mark.skipif(
    not KNOWS_MODES, reason="Gymnasium 1.0 resets in the next step alone, and knows no masks"
)


def in_mode(vectorise: Any, fns: Sequence[Any], mode: Autoreset) -> Any:
    """Returns one of Gymnasium's vector environments in this autoreset mode, if the installed version has it."""
    if KNOWS_MODES:
        return vectorise(fns, autoreset_mode=mode.value)
    if mode is not Autoreset.NEXT_STEP:
        pytest.skip("Gymnasium 1.0 resets in the next step alone")
    return vectorise(fns)


class Countdown(gymnasium.Env):
    """An episode lasts a number of steps drawn from the environment's own generator, from 1 to `longest`.

    Args:
        longest: Largest number of steps.
        infos: A function from the environment to its infos.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    observation_space = BOX
    action_space = TWO

    def __init__(self, longest: int = 6, infos: Any = None) -> None:
        self.longest = longest
        self.make_info = infos or (lambda env: {"left": env.left})
        self.resets = 0
        self.options: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.resets += 1
        self.options = options
        self.left = int(self.np_random.integers(1, self.longest + 1))
        return self._observation(), self.make_info(self)

    def step(self, action: Any) -> Any:
        self.left -= 1
        return self._observation(), 1.0, self.left <= 0, False, self.make_info(self)

    def _observation(self) -> Any:
        return np.array([self.left], np.float32)


class ScriptedVector(VectorEnv):
    """A vector environment written as one class, which follows a script.

    Args:
        num_envs: Number of rows.
        ends: The rows that end at step 1, 2, ...: truncated at odd steps, terminated at even ones. Then no row ends.
        mode: The autoreset mode that its metadata declares; None: none.
        infos: The infos of reset and of every step.
        fail_at: Calls of `reset` that raise, numbered from 0.
    """

    single_observation_space = BOX
    single_action_space = TWO

    def __init__(
        self,
        num_envs: int,
        ends: Sequence[Sequence[int]] = (),
        mode: Any = "NextStep",
        infos: Any = None,
        fail_at: Sequence[int] = (),
    ) -> None:
        self.num_envs = num_envs
        if isinstance(mode, Autoreset) and KNOWS_MODES:
            mode = gymnasium.vector.AutoresetMode(mode.value)
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.ends = [list(rows) for rows in ends]
        self.infos = {} if infos is None else infos
        self.fail_at = set(fail_at)
        self.resets = -1
        self.time = 0
        self.seed: Any = "no reset yet"
        self.options: Any = "no reset yet"
        self.mask: Any = None

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.resets += 1
        if self.resets in self.fail_at:
            raise RuntimeError(f"reset {self.resets} fails")
        self.mask = None if options is None else options.pop("reset_mask", None)
        self.seed, self.options = seed, options
        return np.zeros((self.num_envs, 1), np.float32), self.infos

    def step(self, actions: Any) -> Any:
        self.time += 1
        done = np.zeros(self.num_envs, np.bool_)
        done[self.ends[self.time - 1] if self.time <= len(self.ends) else []] = True
        nothing = np.zeros_like(done)
        terminated, truncated = (nothing, done) if self.time % 2 else (done, nothing)
        observations = np.full((self.num_envs, 1), self.time, np.float32)
        return observations, np.ones(self.num_envs), terminated, truncated, self.infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return tuple((name, args, kwargs) for _ in range(self.num_envs))


class Mortal(ParallelEnv[str, Any, Any]):
    """A Parallel environment whose agents end one after the other but stay observed, as SuperSuit requires."""

    metadata: ClassVar[dict[str, Any]] = {"name": "mortal_v0"}
    render_mode = None
    possible_agents: ClassVar[list[str]] = ["a", "b", "c"]

    def __init__(self, lives: Sequence[int] = (1, 2, 4)) -> None:
        self.lives = dict(zip(self.possible_agents, lives, strict=True))

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        return BOX

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        return TWO

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time = 0
        self.agents = list(self.possible_agents)
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        self.time += 1
        dead = {agent: self.lives[agent] == self.time for agent in self.agents}
        alive = dict.fromkeys(self.agents, False)
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.possible_agents}
        self.agents = [agent for agent in self.agents if not dead[agent]]
        return self._observations(), dict.fromkeys(dead, 1.0), dead, alive, infos

    def _observations(self) -> Any:
        return {agent: np.array([self.time], np.float32) for agent in self.possible_agents}
