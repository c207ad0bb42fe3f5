"""Episodes of random play, seen step by step as the bare environment shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pz_policymap.policies.random_policy import RandomPolicy


class Step(NamedTuple):
    """The values that an environment returns after `reset` or a step.

    Attributes:
        agents: The live agents.
        observations: By agent; of an AEC environment, the one on which the agent of the step acted.
        infos: By agent.
        rewards: By agent; empty after the step of a dead agent, which earns nothing.
        last: Of an AEC environment, the reward that `last()` returned before the step, by agent.
    """

    agents: list[Any]
    observations: Mapping[Any, Any]
    infos: Mapping[Any, Any]
    rewards: Mapping[Any, Any]
    last: Mapping[Any, Any]


def random_episode(env: Any, api: str, seed: int, steps: int) -> Iterator[Step]:
    """Plays an episode at random and yields what the environment shows after `reset` and after each step."""
    act = partial(RandomPolicy(env.action_space), rng=np.random.default_rng(seed))
    if api == "aec":
        env.reset(seed=seed)
        yield Step(list(env.agents), {}, env.infos, {}, {})
        for _ in range(steps):
            if not env.agents:
                return
            observation, reward, terminated, truncated, info = env.last()
            agent, dead = env.agent_selection, terminated or truncated
            env.step(None if dead else act(observation, agent, info))
            yield Step(list(env.agents), {agent: observation}, env.infos, {} if dead else env.rewards, {agent: reward})
        return
    observations, infos = env.reset(seed=seed)
    yield Step(list(env.agents), observations, infos, {}, {})
    for _ in range(steps):
        if not env.agents:
            return
        due = [agent for agent in env.agents if agent in observations]  # agents without an observation wait
        observations, rewards, _, _, infos = env.step(
            {agent: act(observations[agent], agent, infos.get(agent, {})) for agent in due}
        )
        yield Step(list(env.agents), observations, infos, rewards, {})
