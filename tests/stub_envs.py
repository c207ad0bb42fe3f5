"""Environments with scripted steps: return values, deaths, late agents and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from pettingzoo.utils.env import AECEnv, ParallelEnv

Infos = dict[Any, dict[str, Any]]


class StubParallel(ParallelEnv[Any, Any, Any]):
    """Follows a script: the live agents after each step, and the infos to return.

    Args:
        live: The live agents after reset and after step 1, 2, ...; the episode ends when there are none. Agents that
            leave have terminated.
        infos: A function of the step number and the agents in the result, or None for empty infos.
        possible_agents: None leaves the attribute out, as environments with generated agents do.
        fail_at: Calls of `reset` that raise, numbered from 0.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "stub_v0", "is_parallelizable": True}
    render_mode = None

    def __init__(
        self,
        live: Sequence[Sequence[Any]] = (("a", "b"), ("a", "b"), ()),
        infos: Any = None,
        possible_agents: Sequence[Any] | None = ("a", "b"),
        fail_at: Sequence[int] = (),
    ) -> None:
        self.script = [list(agents) for agents in live]
        self.make_infos = infos
        self.fail_at = set(fail_at)
        self.resets = -1
        self.options: Any = "no reset yet"
        if possible_agents is not None:
            self.possible_agents = list(possible_agents)

    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(1000)

    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.resets += 1
        self.options = options
        if self.resets in self.fail_at:
            raise RuntimeError(f"reset {self.resets} fails")
        self.np_random = np.random.default_rng(seed)
        self.time = 0
        self.agents = list(self.script[0])
        return dict.fromkeys(self.agents, 0), self._infos(self.agents)

    def step(self, actions: dict[Any, Any]) -> Any:
        if not self.agents:
            return {}, {}, {}, {}, {}
        self.time += 1
        before, after = self.agents, list(self.script[self.time])
        back = before + [agent for agent in after if agent not in before]
        self.agents = after
        return (
            dict.fromkeys(back, self.time),
            dict.fromkeys(back, 1.0),
            {agent: agent not in after for agent in back},
            dict.fromkeys(back, False),
            self._infos(back),
        )

    def _infos(self, agents: list[Any]) -> Any:
        if self.make_infos is not None:
            return self.make_infos(self.time, agents)
        return {agent: {} for agent in agents}


class StubAEC(AECEnv[Any, Any, Any]):
    """Agents move in turns; each ends after its number of turns. `infos` is a plain attribute."""

    metadata: ClassVar[dict[str, Any]] = {"name": "stub_aec_v0", "is_parallelizable": False}
    render_mode = None

    def __init__(self, turns: dict[Any, int] | None = None, infos: Any = None) -> None:
        super().__init__()
        self.turns = {"a": 2, "b": 2} if turns is None else turns
        self.possible_agents = list(self.turns)
        self.make_infos = infos

    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(1000)

    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(2)

    def observe(self, agent: Any) -> int:
        return self.left[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.left = dict(self.turns)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents} if self.make_infos is None else self.make_infos(self.agents)
        self.agent_selection = self.agents[0]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._clear_rewards()
        self._cumulative_rewards[agent] = 0.0
        self.left[agent] -= 1
        self.rewards[agent] = 1.0
        self.terminations[agent] = self.left[agent] == 0
        self._accumulate_rewards()
        self.agent_selection = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        self._deads_step_first()
