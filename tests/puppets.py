"""Environments controlled by a plan before each call: the live agents, the ends, the infos, and what raises.

`plan` decides what the next `reset` or `step` does. It is a namespace with `infos` (a key of `INFOS`), `fail`, and the
attributes named by each class.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import AECEnv, ParallelEnv

from tests.vector_envs import BOX, KNOWS_MODES, TWO

SHARED = {"z": 1}
INFOS = {
    "empty": lambda agents: {agent: {} for agent in agents},
    "filled": lambda agents: {agent: {"x": len(agents), "y": None} for agent in agents},
    "shared": lambda agents: dict.fromkeys(agents, SHARED),
    "none": lambda agents: {},
    "some": lambda agents: {agent: {"x": 1} for agent in agents[::2]},
    "foreign": lambda agents: {**{agent: {} for agent in agents}, "common": SHARED, 17: "seventeen"},
}


class PlannedError(RuntimeError):
    """The error that a plan raises."""


class PuppetParallel(ParallelEnv[Any, Any, Any]):
    """After a step, the agents in `plan.live` are live; the others end, truncated if `plan.truncated`."""

    metadata: ClassVar[dict[str, Any]] = {"name": "puppet_v0"}
    render_mode = None

    def __init__(self, possible_agents: Any) -> None:
        if possible_agents is not None:
            self.possible_agents = list(possible_agents)
        self.plan = SimpleNamespace()
        self.agents: list[Any] = []

    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return BOX

    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return TWO

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if self.plan.fail == "early":
            raise PlannedError("as planned")
        self.agents = list(self.plan.live)
        if self.plan.fail == "late":
            raise PlannedError("as planned")
        return dict.fromkeys(self.agents, 0), INFOS[self.plan.infos](self.agents)

    def step(self, actions: Any) -> Any:
        if self.plan.fail:
            raise PlannedError("as planned")
        before, after = self.agents, list(self.plan.live)
        back = before + [agent for agent in after if agent not in before]
        self.agents = after
        over = {agent: agent not in after for agent in back}
        nobody = dict.fromkeys(back, False)
        ends = (nobody, over) if self.plan.truncated else (over, nobody)
        rewards = {agent: reward for agent, reward in zip(back, self.plan.rewards, strict=False)}  # noqa: C416
        return dict.fromkeys(back, 0), rewards, *ends, INFOS[self.plan.infos](back)


class PuppetAEC(AECEnv[Any, Any, Any]):
    """In a step, agents in `plan.dies` end and those in `plan.comes` join; `plan.turn` selects the next to move."""

    metadata: ClassVar[dict[str, Any]] = {"name": "puppet_aec_v0"}
    render_mode = None

    def __init__(self, possible_agents: Any) -> None:
        super().__init__()
        if possible_agents is not None:
            self.possible_agents = list(possible_agents)
        self.plan = SimpleNamespace()
        self.agents = []

    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return BOX

    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return TWO

    def observe(self, agent: Any) -> int:
        return 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        if self.plan.fail == "early":
            raise PlannedError("as planned")
        self.agents = list(self.plan.live)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = INFOS[self.plan.infos](self.agents)
        self.agent_selection = self.agents[0]
        self._skip_agent_selection = None
        if self.plan.fail == "late":
            raise PlannedError("as planned")

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.dead(agent):
            self.infos.setdefault(agent, {})  # the base class deletes it
            self._was_dead_step(action)
            return
        if self.plan.fail:
            raise PlannedError("as planned")
        self._cumulative_rewards[agent] = 0
        for new in self.plan.comes:
            self.agents.append(new)
            self._cumulative_rewards[new] = 0
            self.terminations[new] = self.truncations[new] = False
        self.rewards = dict(zip(self.agents, self.plan.rewards, strict=False))
        self._accumulate_rewards()
        (self.truncations if self.plan.truncated else self.terminations).update(dict.fromkeys(self.plan.dies, True))
        self.infos = INFOS[self.plan.infos](self.agents)
        alive = [name for name in self.agents if not self.dead(name)]
        if alive:
            self.agent_selection = alive[self.plan.turn % len(alive)]
        self._deads_step_first()

    def dead(self, agent: Any) -> bool:
        return self.terminations[agent] or self.truncations[agent]


class PuppetEnv(gymnasium.Env[Any, Any]):
    """`plan.over` and `plan.truncated` decide whether and how the step ends the episode."""

    observation_space = BOX
    action_space = TWO

    def __init__(self) -> None:
        self.plan = SimpleNamespace()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if self.plan.fail:
            raise PlannedError("as planned")
        return np.zeros(1, np.float32), INFOS[self.plan.infos](["x"]).get("x", SHARED)

    def step(self, action: Any) -> Any:
        if self.plan.fail:
            raise PlannedError("as planned")
        over, truncated = self.plan.over, self.plan.truncated
        info = INFOS[self.plan.infos](["x"]).get("x", SHARED)
        return np.zeros(1, np.float32), 1.0, over and not truncated, over and truncated, info


class PuppetVector(VectorEnv):
    """`plan.ends` are the rows that end in the step. In NEXT_STEP mode, a row that is being reset cannot end.

    Args:
        num_envs: Number of rows.
        mode: An `Autoreset`.
        listed: Whether infos are a list with one dict per row, as in SuperSuit, with autoreset in the same step.
    """

    single_observation_space = BOX
    single_action_space = TWO

    def __init__(self, num_envs: int, mode: Any, listed: bool = False) -> None:
        self.num_envs, self.listed = num_envs, listed
        self.mode = mode.value
        declared = gymnasium.vector.AutoresetMode(self.mode) if KNOWS_MODES else self.mode
        self.metadata = {} if listed else {"autoreset_mode": declared}
        self.plan = SimpleNamespace()
        self.ended = np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        mask = None if options is None else options.pop("reset_mask", None)
        if self.plan.fail:
            raise PlannedError("as planned")
        self.ended[slice(None) if mask is None else mask] = False
        return np.zeros((self.num_envs, 1), np.float32), self._infos(None)

    def step(self, actions: Any) -> Any:
        if self.plan.fail:
            raise PlannedError("as planned")
        resets = self.ended if self.mode == "NextStep" else np.zeros(self.num_envs, np.bool_)
        done = np.zeros(self.num_envs, np.bool_)
        done[[row for row in self.plan.ends if row < self.num_envs]] = True
        done &= ~resets
        self.ended = done
        nobody = np.zeros_like(done)
        ends = (nobody, done) if self.plan.truncated else (done, nobody)
        rewards = np.array(self.plan.rewards[: self.num_envs], np.float64)
        return np.zeros((self.num_envs, 1), np.float32), rewards, *ends, self._infos(done)

    def _infos(self, done: Any) -> Any:
        over = [] if done is None or self.mode != "SameStep" else np.flatnonzero(done).tolist()
        if self.listed:
            infos: Any = [{"x": row} for row in range(self.num_envs)]
            if self.plan.infos == "shared":
                infos = [SHARED] * self.num_envs
            for row in over:
                infos[row] = {**infos[row], "final_info": {"w": row}}
            return infos
        infos = {"x": np.arange(self.num_envs)} if self.plan.infos == "filled" else {}
        if over and self.plan.infos != "none":
            infos["final_info"] = {"w": np.arange(self.num_envs), "_w": done}
            infos["_final_info"] = done
        return infos
