"""Episodes of random play, seen step by step as the bare environment shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from pz_policymap.policies.random_policy import RandomPolicy

# Who is there, observations, infos, rewards; of an AEC environment, what the one that has just moved had observed.
Step = tuple[list[Any], Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]


def random_episode(env: Any, api: str, seed: int, steps: int) -> Iterator[Step]:
    """Plays an episode at random and yields what stands after `reset` and after each step."""
    act = partial(RandomPolicy(env.action_space), rng=np.random.default_rng(seed))
    if api == "aec":
        env.reset(seed=seed)
        yield list(env.agents), {}, env.infos, {}
        for _ in range(steps):
            if not env.agents:
                return
            observation, _, terminated, truncated, info = env.last()
            agent = env.agent_selection
            env.step(None if terminated or truncated else act(observation, agent, info))
            yield list(env.agents), {agent: observation}, env.infos, env.rewards
        return
    observations, infos = env.reset(seed=seed)
    yield list(env.agents), observations, infos, {}
    for _ in range(steps):
        if not env.agents:
            return
        actions = {agent: act(observations[agent], agent, infos.get(agent, {})) for agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        yield list(env.agents), observations, infos, rewards
