"""`RandomPolicy`: uniform actions, of those that the action mask allows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from pz_policymap.batching.act import mask_of


class RandomPolicy:
    """Samples uniformly from an agent's action space, respecting the action mask.

    Args:
        action_space: Returns the action space of an agent.

    Example:
        >>> policy = RandomPolicy(lambda agent: spaces.Discrete(3))
        >>> info = {"action_mask": np.array([0, 1, 0], np.int8)}
        >>> int(policy(None, "red", info, rng=np.random.default_rng(0)))
        1
    """

    def __init__(self, action_space: Callable[[Any], spaces.Space[Any]]) -> None:
        self._action_space = action_space

    def __call__(self, observation: Any, agent: Any, info: Any, rng: np.random.Generator) -> Any:
        """Returns an action."""
        space, mask = self._action_space(agent), mask_of(observation, info)
        if type(space) is spaces.Discrete:  # the common case, ten times as fast as seeding a copy of the space
            if mask is None:
                return space.start + rng.integers(space.n)
            allowed = np.flatnonzero(mask)
            return space.start + (allowed[rng.integers(len(allowed))] if len(allowed) else 0)
        own = copy.deepcopy(space)  # the environment may sample from its own
        own.seed(int(rng.integers(2**31)))
        return own.sample(np.asarray(mask, np.int8) if isinstance(mask, (list, np.ndarray)) else mask)
