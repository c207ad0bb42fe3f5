"""Multi-agent environments for learners: scripted turns, a fair game of survival, and one with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.env import AECEnv, ParallelEnv

Turn = tuple[Any, dict[Any, float], Sequence[Any]]


class ScriptedAEC(AECEnv[Any, Any, Any]):
    """Repeats one script per episode: the agent to move, the rewards of all agents, and the agents that end.

    Observations are the number of past turns. `log` holds the calls: "reset", or (agent, action).

    Args:
        scripts: Lists of turns; an episode with an empty script ends at once.
        agents: All agents.
        truncates: Whether agents that end are truncated instead of terminated.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "scripted_v0", "render_modes": []}
    render_mode = None

    def __init__(
        self, scripts: Sequence[Sequence[Turn]], agents: Sequence[Any] = ("a", "b"), truncates: bool = False
    ) -> None:
        super().__init__()
        self.possible_agents = list(agents)
        self.scripts = scripts
        self.truncates = truncates
        self.resets = 0
        self.log: list[Any] = []
        self.options: list[Any] = []
        self.seeds: list[int | None] = []

    def observation_space(self, agent: Any) -> spaces.Space[Any]:
        return spaces.Discrete(100)

    def action_space(self, agent: Any) -> spaces.Space[Any]:
        return spaces.Discrete(10)

    def observe(self, agent: Any) -> int:
        return self.time

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.script = self.scripts[self.resets % len(self.scripts)]
        self.resets += 1
        self.log.append("reset")
        self.options.append(None if options is None else dict(options))
        if options is not None:
            options.clear()  # environments may consume the options that they support
        self.seeds.append(seed)
        self.time = 0
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, not self.script)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.script[0][0] if self.script else self.agents[0]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self.log.append((agent, action))
        mover, rewards, ended = self.script[self.time]
        assert agent == mover
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.rewards.update(rewards)
        self.time += 1
        flags = self.truncations if self.truncates else self.terminations
        flags.update(dict.fromkeys(ended, True))
        self._accumulate_rewards()
        if self.time < len(self.script):
            self.agent_selection = self.script[self.time][0]
        self._deads_step_first()


class Survival(ParallelEnv[Any, Any, Any]):
    """A fair game: one agent drawn from the environment's generator leaves in every step, until one is left.

    Each live agent earns 1 per step, whatever its action. Observations are `[index, number of live agents]`.

    Args:
        num_agents: Number of agents.
        late: Indices of the agents that join after the first step.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "survival_v0", "render_modes": [], "is_parallelizable": True}
    render_mode = None

    def __init__(self, num_agents: int = 4, late: Sequence[int] = ()) -> None:
        self.possible_agents = [f"player_{i}" for i in range(num_agents)]
        self.late = [self.possible_agents[i] for i in late]
        self.seen_actions: list[dict[Any, Any]] = []
        self._space = {agent: spaces.Discrete(1000) for agent in self.possible_agents}
        self._sees = spaces.Box(0, 100, (2,), np.float32)

    def observation_space(self, agent: Any) -> spaces.Space[Any]:
        return self._sees

    def action_space(self, agent: Any) -> spaces.Space[Any]:
        return self._space[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None or not hasattr(self, "rng"):
            self.rng = np.random.default_rng(seed)
        self.agents = [agent for agent in self.possible_agents if agent not in self.late]
        self.to_come = list(self.late)
        self.seen_actions.append({})
        return self._look(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions: dict[Any, Any]) -> Any:
        assert set(actions) == set(self.agents)
        self.seen_actions.append(dict(actions))
        there = self.agents
        out = {there[int(self.rng.integers(len(there)))]}
        left = [agent for agent in there if agent not in out] + self.to_come
        if len(left) == 1:
            out |= set(left)
        self.to_come = []
        self.agents = [agent for agent in left if agent not in out]
        back = [*there, *(agent for agent in left if agent not in there)]
        return (
            self._look(back),
            dict.fromkeys(there, 1.0) | {agent: 2.0 for agent in left if len(left) == 1},
            {agent: agent in out for agent in back},
            dict.fromkeys(back, False),
            {agent: {} for agent in back},
        )

    def _look(self, agents: Sequence[Any]) -> dict[Any, Any]:
        return {agent: np.array([self.possible_agents.index(agent), len(agents)], np.float32) for agent in agents}
