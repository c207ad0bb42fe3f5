"""RLlib's PettingZoo wrappers with all possible agents, and the seats of any environment."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import gymnasium
from pettingzoo import AECEnv, ParallelEnv
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv

from pz_policymap.arguments import in_order


class ParallelSeats(ParallelPettingZooEnv):
    """A PettingZoo Parallel environment for RLlib, with all its `possible_agents`, in their order.

    RLlib's own wrapper only has the agents of the first reset, and fails when another agent joins mid-episode. Its
    episodes never end if some agents are terminated and others truncated in the last step. Here an episode ends when no
    agent is left.

    Args:
        env: A Parallel environment with `possible_agents`.

    Raises:
        TypeError: If it is not a Parallel environment.
        ValueError: If it has no `possible_agents`.

    Example:
        >>> from mpe2 import simple_spread_v3
        >>> ParallelSeats(simple_spread_v3.parallel_env(N=3)).possible_agents
        ['agent_0', 'agent_1', 'agent_2']
    """

    def __init__(self, env: Any) -> None:
        _check_kind(env, ParallelEnv)
        super().__init__(env)
        _seat_all(self, env)

    def step(self, action_dict: dict[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Steps the environment; the episode is over when no agent is left."""
        return _ended(super().step(action_dict), self.par_env)


class AECSeats(PettingZooEnv):
    """A PettingZoo AEC environment for RLlib, with all its `possible_agents`, in their order; see `ParallelSeats`.

    Args:
        env: An AEC environment with `possible_agents`.

    Example:
        >>> from mpe2 import simple_spread_v3
        >>> AECSeats(simple_spread_v3.env(N=3)).possible_agents
        ['agent_0', 'agent_1', 'agent_2']
    """

    def __init__(self, env: Any) -> None:
        _check_kind(env, AECEnv)
        super().__init__(env)
        _seat_all(self, env)

    def step(self, action: dict[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Steps the environment; the episode is over when no agent is left."""
        return _ended(super().step(action), self.env)


def seats(env: Any) -> tuple[Hashable, ...]:
    """Returns the agents of an RLlib environment in seat order.

    For a PettingZoo environment these are its own `possible_agents`: RLlib's wrappers hold them in a set, whose order
    differs between processes.

    Raises:
        ValueError: If it has none.
    """
    inner = env.unwrapped
    if isinstance(inner, ParallelPettingZooEnv):
        inner = inner.par_env
    elif isinstance(inner, PettingZooEnv):
        inner = inner.env
    agents = in_order("possible_agents", getattr(inner, "possible_agents", None) or ())
    if not agents:
        raise ValueError(f"possible_agents must be known before an episode begins, {inner!r} has none")
    return agents


def _check_kind(env: Any, kind: type) -> None:
    """Raises a TypeError if an environment is not of this PettingZoo class."""
    if not isinstance(env, kind):
        raise TypeError(f"env must be a PettingZoo {kind.__name__}, got {env!r}")


def _seat_all(wrapper: Any, env: Any) -> None:
    """Gives RLlib's wrapper all possible agents, with their spaces."""
    agents = seats(wrapper)
    wrapper.possible_agents = list(agents)
    wrapper.agents = list(agents)
    wrapper.observation_spaces = {agent: env.observation_space(agent) for agent in agents}
    wrapper.action_spaces = {agent: env.action_space(agent) for agent in agents}
    wrapper.observation_space = gymnasium.spaces.Dict(wrapper.observation_spaces)
    wrapper.action_space = gymnasium.spaces.Dict(wrapper.action_spaces)


def _ended(outcome: tuple[dict[Any, Any], ...], env: Any) -> tuple[dict[Any, Any], ...]:
    """Sets `__all__` in the outcome of a step: whether the episode is over."""
    _, _, terminations, truncations, _ = outcome
    del terminations["__all__"], truncations["__all__"]
    over = not env.agents
    terminations["__all__"] = over and all(terminations.values())
    truncations["__all__"] = over and not terminations["__all__"]
    return outcome
