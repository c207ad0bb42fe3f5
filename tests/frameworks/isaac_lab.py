"""A stand-in for Isaac Lab's `DirectMARLEnv`, whose simulator cannot be installed without a GPU.

Signatures, attributes, the order of calls in `step`, the rule of `reset_buf` and the shared `extras` are those of
`source/isaaclab/isaaclab/envs/direct_marl_env.py` of Isaac Lab 2 (isaac-sim/IsaacLab, commits 0ab995c0 and 44445736).
In the task, each agent moves a cart on a line, earns the negative distance to its goal, and terminates far outside.
"""

import math
from typing import Any, ClassVar

import gymnasium as gym
import torch


class DirectMARLEnv(gym.Env[Any, Any]):
    """Agent-major tensors; environments whose agents all terminated, or all timed out, are reset in the same step."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [None, "human", "rgb_array"], "isaac_sim_version": "none"}

    def __init__(self, num_envs: int = 8, max_episode_length: int = 6, device: str = "cpu") -> None:
        self.possible_agents = ["cart", "pendulum"]
        self.agents = self.possible_agents
        self._num_envs, self.max_episode_length, self.device = num_envs, max_episode_length, device
        self.observation_spaces = {agent: gym.spaces.Box(-math.inf, math.inf, (2,)) for agent in self.agents}
        self.action_spaces = {agent: gym.spaces.Box(-math.inf, math.inf, (1,)) for agent in self.agents}
        self.extras: dict[str, Any] = {agent: {} for agent in self.agents}
        self.episode_length_buf = torch.zeros(num_envs, device=device, dtype=torch.long)
        self.reset_buf = torch.zeros(num_envs, device=device, dtype=torch.bool)
        self.position = torch.zeros(num_envs, 2, device=device)
        self.goal = torch.zeros(num_envs, 2, device=device)

    @property
    def num_envs(self) -> int:
        return self._num_envs

    @property
    def num_agents(self) -> int:
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        return len(self.possible_agents)

    @property
    def unwrapped(self) -> "DirectMARLEnv":
        return self

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        if seed is not None:
            self.seed(seed)
        self._reset_idx(torch.arange(self.num_envs, dtype=torch.int64, device=self.device))
        self.obs_dict = self._get_observations()
        self.agents = [agent for agent in self.possible_agents if agent in self.obs_dict]
        return self.obs_dict, self.extras

    def step(self, actions: dict[str, torch.Tensor]) -> tuple[dict, dict, dict, dict, dict]:
        actions = {agent: action.to(self.device) for agent, action in actions.items()}
        self.position = self.position + torch.cat([actions[agent] for agent in self.possible_agents], 1)
        self.episode_length_buf += 1
        self.terminated_dict, self.time_out_dict = self._get_dones()
        self.reset_buf[:] = math.prod(self.terminated_dict.values()) | math.prod(self.time_out_dict.values())
        self.reward_dict = self._get_rewards()
        reset_env_ids = self.reset_buf.nonzero(as_tuple=False).squeeze(-1)
        if len(reset_env_ids) > 0:
            self._reset_idx(reset_env_ids)
        self.obs_dict = self._get_observations()
        self.agents = [agent for agent in self.possible_agents if agent in self.obs_dict]
        return self.obs_dict, self.reward_dict, self.terminated_dict, self.time_out_dict, self.extras

    @staticmethod
    def seed(seed: int = -1) -> int:
        torch.manual_seed(seed)
        return seed

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        self.position[env_ids] = 0.0
        self.goal[env_ids] = torch.rand(len(env_ids), 2, device=self.device) * 2 - 1
        self.episode_length_buf[env_ids] = 0

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return {a: torch.stack([self.position[:, i], self.goal[:, i]], 1) for i, a in enumerate(self.possible_agents)}

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        distance = (self.position - self.goal).abs()
        return {agent: -distance[:, seat] for seat, agent in enumerate(self.possible_agents)}

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        time_out = self.episode_length_buf >= self.max_episode_length - 1
        outside = {agent: self.position[:, seat].abs() > 1.5 for seat, agent in enumerate(self.possible_agents)}
        return outside, dict.fromkeys(self.possible_agents, time_out)
