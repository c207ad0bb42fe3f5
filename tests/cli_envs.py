"""Environments with one fault each for tests of `check`, named as `tests.cli_envs:clash`."""

from __future__ import annotations

import os
import random
import warnings
from functools import cache
from typing import Any

import gymnasium
import numpy as np

import pz_policymap as pm
from tests.stub_envs import StubAEC, StubParallel


class Clean(StubParallel):
    """Has no fault."""

    @cache  # noqa: B019  # PettingZoo expects the same space object each time
    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(1000)

    @cache  # noqa: B019
    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(2)


clean = Clean


def clash() -> Clean:
    return Clean(infos=lambda time, agents: {agent: {"policy_id": 7} for agent in agents})


def clash_twice() -> Clean:
    return Clean(infos=lambda time, agents: {agent: {"policy_id": 7, "policy_id_": 8} for agent in agents})


class Names(Clean):
    """Observes a text that names the key of the tag, outside of the space."""

    def step(self, actions: Any) -> Any:
        observations, *rest = super().step(actions)
        return dict.fromkeys(observations, "policy_id"), *rest


def generated() -> Clean:
    return Clean(live=(("a",), ("a", "b"), ()), possible_agents=None)


def endless() -> Clean:
    return Clean(live=[("a", "b")] * 100_000)


def tuples() -> Clean:
    return Clean(live=((("red", 0), ("red", 1)), ()), possible_agents=(("red", 0), ("red", 1)))


class Warns(Clean):
    """Warns at every step."""

    def step(self, actions: Any) -> Any:
        warnings.warn("the board is too large to see", stacklevel=2)
        return super().step(actions)


class Global(Clean):
    """Rewards are drawn from Python's generator."""

    def step(self, actions: Any) -> Any:
        observations, _, *rest = super().step(actions)
        return observations, {agent: random.random() for agent in observations}, *rest


class GlobalNumPy(Clean):
    """Rewards are drawn from NumPy's global generator."""

    def step(self, actions: Any) -> Any:
        observations, _, *rest = super().step(actions)
        return observations, {agent: float(np.random.random()) for agent in observations}, *rest  # noqa: NPY002


class Outside(Clean):
    """Observations are not in their space."""

    def step(self, actions: Any) -> Any:
        observations, *rest = super().step(actions)
        return dict.fromkeys(observations, -1), *rest


class OutsideArray(Clean):
    """Observations are arrays of another space."""

    value = np.array([5.0, 7.0])

    def step(self, actions: Any) -> Any:
        observations, *rest = super().step(actions)
        return dict.fromkeys(observations, self.value), *rest


class OutsideEmpty(OutsideArray):
    """Observations are empty arrays."""

    value = np.zeros(0)


class ResetsNothing(Clean):
    """`reset` returns None."""

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed, options)


class Infinite(Clean):
    """A reward is NaN."""

    def step(self, actions: Any) -> Any:
        observations, _, *rest = super().step(actions)
        return observations, dict.fromkeys(observations, float("nan")), *rest


class Leaks(Clean):
    """Rewards count the episodes of the environment, whatever the seed."""

    def step(self, actions: Any) -> Any:
        observations, _, *rest = super().step(actions)
        return observations, dict.fromkeys(observations, float(self.resets)), *rest


class Raises(Clean):
    """Fails at its second step."""

    def step(self, actions: Any) -> Any:
        if getattr(self, "time", 0) == 1:
            raise RuntimeError("out of fuel")
        return super().step(actions)


class BreaksContract(Clean):
    """Its space methods return a new object at each call."""

    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(2)


class Unclosable(Clean):
    """`close` fails after an episode, as if the window or server were gone."""

    def close(self) -> None:
        if self.resets >= 0:
            raise BrokenPipeError("the viewer is gone")


class Vanishes(StubAEC):
    """When an agent ends, all others disappear without an end of their own."""

    def step(self, action: Any) -> None:
        ended = self.terminations[self.agent_selection]
        super().step(action)
        if ended:
            self.agents = []


class Prints(Clean):
    """Prints when it is made, as does a library below it."""

    def __init__(self) -> None:
        super().__init__()
        print("from Python")  # noqa: T201
        os.write(1, b"from C")


def numbered() -> Clean:
    return Clean(live=((1, 2), (1, 2), ()), possible_agents=(1, 2))


def unpinned() -> Any:
    return pm.wrap(Clean(), 4, info_key="mine")


def pinned() -> Any:
    return pm.wrap(Clean(), 4, seed=3, info_key="mine")


class Vectors(Clean):
    """Rewards are vectors of two objectives."""

    def step(self, actions: Any) -> Any:
        observations, _, *rest = super().step(actions)
        return observations, {agent: [1.0, 0.0] for agent in observations}, *rest


class Habits(Clean):
    """Allowed habits: rewards of None, the key "__all__" everywhere, and b waits without an observation."""

    def step(self, actions: Any) -> Any:
        assert "b" not in actions or self.time == 0
        observations, rewards, *rest = super().step(actions)
        if self.agents:
            del observations["b"]
        return tuple({**part, "__all__": None} for part in (observations, dict.fromkeys(rewards), *rest))


class PaysTwice(StubAEC):
    """b is paid once more for the step in which a is removed, as by some games of OpenSpiel."""

    def __init__(self) -> None:
        super().__init__({"a": 1, "b": 1})

    @cache  # noqa: B019
    def observation_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(1000)

    @cache  # noqa: B019
    def action_space(self, agent: Any) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(2)

    def step(self, action: Any) -> None:
        removed = self.terminations[self.agent_selection] and self.agent_selection == "a"
        super().step(action)
        if removed:
            self._cumulative_rewards["b"] += 1.0
