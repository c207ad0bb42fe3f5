"""Whose turn it is in an episode, and what a learner sees of it: the same for AEC and Parallel environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.env import AECEnv, ParallelEnv
from typing_extensions import override

from pz_policymap.wrappers.pettingzoo_tags import Info


class Turns(ABC):
    """An episode as one of its agents, the learner, goes through it.

    Attributes:
        seen: The learner's latest observation and info; None before its first turn.
        ended: Whether the learner has terminated and whether it is truncated; None while neither is so.
    """

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, learner: Any) -> None:
        """Says who the learner is in the episode that `reset` has begun."""
        self.seen: tuple[Any, Info] | None = None
        self.ended: tuple[bool, bool] | None = None
        self._learner = learner
        self._reward = 0.0

    def take_reward(self) -> float:
        """Returns what the learner has earned since this was last asked."""
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
        """Returns what an agent that is to move observes, and its info."""

    @abstractmethod
    def move(self, actions: Mapping[Any, Any]) -> None:
        """Steps the environment with the action of every agent that is to move."""


class AECTurns(Turns):
    """`Turns` in an AEC environment; agents that have ended are stepped over."""

    def __init__(self, env: AECEnv[Any, Any, Any]) -> None:
        self._env = env
        self._mover: list[Any] = []
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
        observation, _, _, _, info = self._env.last()
        return observation, info

    @override
    def move(self, actions: Mapping[Any, Any]) -> None:
        (action,) = actions.values()
        self._env.step(action)
        self._settle()

    def _settle(self) -> None:
        """Steps over agents that have ended, and looks where it is the learner's turn, its last one included."""
        env, self._mover = self._env, []
        while env.agents:
            agent = env.agent_selection
            over = bool(env.terminations[agent]), bool(env.truncations[agent])
            if agent == self._learner:
                observation, reward, _, _, info = env.last()
                self._reward += float(reward)  # all that it has earned since its turn before this one
                self.seen = observation, info
                self.ended = over if any(over) else None
            if not any(over):
                self._mover = [agent]  # attributes are slow to read through many wrappers
                return
            env.step(None)


class ParallelTurns(Turns):
    """`Turns` in a Parallel environment, where everybody who is there moves at once."""

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
        return list(self._env.agents)

    @override
    def view(self, agent: Any) -> tuple[Any, Info]:
        observations, infos = self._views
        return observations[agent], infos[agent]

    @override
    def move(self, actions: Mapping[Any, Any]) -> None:
        observations, rewards, terminations, truncations, infos = self._env.step(dict(actions))
        self._views = observations, infos
        learner = self._learner
        self._reward += float(rewards.get(learner, 0.0))  # some environments pay those who have ended, too
        if self.ended is None:
            self._look()
            over = bool(terminations.get(learner, False)), bool(truncations.get(learner, False))
            self.ended = over if any(over) else None

    def _look(self) -> None:
        if self._learner in self._views[0]:
            self.seen = self.view(self._learner)


def turns_of(env: AECEnv[Any, Any, Any] | ParallelEnv[Any, Any, Any]) -> Turns:
    """Returns the turns of an environment."""
    return AECTurns(env) if isinstance(env, AECEnv) else ParallelTurns(env)
