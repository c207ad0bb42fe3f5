"""`Turns`: the agents to move, their observations, and the rewards of one agent, for AEC and Parallel environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.env import AECEnv, ParallelEnv
from typing_extensions import override

from pz_policymap.batching.nested_arrays import copied
from pz_policymap.recording.aec import holder_of_state
from pz_policymap.recording.rewards import reward_number
from pz_policymap.wrappers.pettingzoo_tags import Info


class Turns(ABC):
    """The turns of an episode, seen by one of its agents, the learner.

    Attributes:
        seen: The learner's latest observation and info, as copies; None and an empty dict before its first turn.
        ended: Whether the learner has terminated and whether it is truncated; None before its end.
    """

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, learner: Any) -> None:
        """Names the learner of the episode that `reset` has begun."""
        self.seen: tuple[Any, Info] = None, {}
        self.ended: tuple[bool, bool] | None = None
        self._learner = learner
        self._reward = 0.0

    def take_reward(self) -> float:
        """Returns the sum of the learner's rewards since the last call."""
        reward, self._reward = self._reward, 0.0
        return reward

    @abstractmethod
    def reset(self, seed: int | None, options: Info | None) -> None:
        """Resets the environment."""

    @property
    @abstractmethod
    def movers(self) -> list[Any]:
        """The agents that are to move now; none if the episode is over."""

    @abstractmethod
    def view(self, agent: Any) -> tuple[Any, Info]:
        """Returns the observation and info of an agent that is to move."""

    @abstractmethod
    def move(self, actions: Mapping[Any, Any]) -> None:
        """Steps the environment with the action of every agent that is to move."""


class AECTurns(Turns):
    """`Turns` of an AEC environment; dead agents are stepped over."""

    def __init__(self, env: AECEnv[Any, Any, Any]) -> None:
        self._env = env
        self._state = holder_of_state(env)
        self._mover: list[Any] = []
        self._view: tuple[Any, Info] = None, {}
        super().__init__()

    @override
    def begin(self, learner: Any) -> None:
        super().begin(learner)
        if learner is not None:
            self._settle()

    @override
    def reset(self, seed: int | None, options: Info | None) -> None:
        self._env.reset(seed=seed, options=options)

    @property
    @override
    def movers(self) -> list[Any]:
        return self._mover

    @override
    def view(self, agent: Any) -> tuple[Any, Info]:
        return self._view

    @override
    def move(self, actions: Mapping[Any, Any]) -> None:
        (action,) = actions.values()
        self._env.step(action)
        reward = self._state.rewards.get(self._learner)
        if reward is not None:
            self._reward += reward if reward.__class__ is float else reward_number(self._learner, reward)
        self._settle()

    def _settle(self) -> None:
        """Steps over dead agents, and reads the turn of the next agent."""
        env, state, self._mover = self._env, self._state, []
        while state.agents:
            agent = state.agent_selection
            observation, _, terminated, truncated, info = env.last()
            dead = terminated or truncated
            if agent == self._learner:
                # The environment may write into the arrays of a dead agent while the others move on.
                self.seen = (copied(observation), copied(info)) if dead else (observation, info)
                self.ended = (bool(terminated), bool(truncated)) if dead else None
            if not dead:
                self._mover, self._view = [agent], (observation, info)
                return
            env.step(None)


class ParallelTurns(Turns):
    """`Turns` of a Parallel environment, where all agents with an observation move at once."""

    def __init__(self, env: ParallelEnv[Any, Any, Any]) -> None:
        self._env = env
        self._views: tuple[Mapping[Any, Any], Mapping[Any, Info]] = {}, {}
        super().__init__()

    @override
    def begin(self, learner: Any) -> None:
        super().begin(learner)
        self._look()

    @override
    def reset(self, seed: int | None, options: Info | None) -> None:
        self._views = self._env.reset(seed=seed, options=options)

    @property
    @override
    def movers(self) -> list[Any]:
        agents = list(self._env.agents)
        movers = [agent for agent in agents if agent in self._views[0]]
        if agents and not movers:
            raise RuntimeError(f"env must return an observation of at least one of {agents}, got none from {self._env}")
        return movers

    @override
    def view(self, agent: Any) -> tuple[Any, Info]:
        observations, infos = self._views
        return observations[agent], infos.get(agent, {})

    @override
    def move(self, actions: Mapping[Any, Any]) -> None:
        observations, rewards, terminations, truncations, infos = self._env.step(dict(actions))
        self._views = observations, infos
        learner = self._learner
        self._reward += reward_number(learner, rewards.get(learner))  # some environments pay dead agents, too
        if self.ended is None:
            self._look()
            over = bool(terminations.get(learner, False)), bool(truncations.get(learner, False))
            self.ended = over if any(over) else None

    def _look(self) -> None:
        if self._learner in self._views[0]:
            self.seen = copied(self.view(self._learner))  # the environment may write into its arrays later


def turns_of(env: AECEnv[Any, Any, Any] | ParallelEnv[Any, Any, Any]) -> Turns:
    """Returns the turns of an environment."""
    return AECTurns(env) if isinstance(env, AECEnv) else ParallelTurns(env)
