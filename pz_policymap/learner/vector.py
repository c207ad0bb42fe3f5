"""`LearnerVectorEnv`: several `LearnerEnv`s as a Gymnasium vector environment, whose opponents act in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import iterate
from typing_extensions import override

from pz_policymap.learner.learner_env import LearnerEnv
from pz_policymap.learner.together import check_distinct, prepared, preparing
from pz_policymap.wrappers.autoreset import Autoreset, declared_mode


class LearnerVectorEnv(SyncVectorEnv):
    """A `gymnasium.vector.SyncVectorEnv` of `LearnerEnv`s, in which opponents with `predict` act in batches.

    In each step, the observations of all opponents that the same object controls, in all environments, go to its
    `predict` in one batch. Otherwise this is a `SyncVectorEnv`: observations, rewards, infos and resets are the same.
    Exceptions: a network may round differently in a batch, and opponents that draw from global generators draw in
    another order. A policy with a recurrent state, or a function, is called once per agent as always. Environments with
    `isolate_randomness=True` are stepped one by one.

    For Stable-Baselines3, use `pz_policymap.adapters.stable_baselines3.LearnerVecEnv`.

    Args:
        env_fns: Functions that make a `LearnerEnv` each, with the same policy objects.
        **settings: As in `SyncVectorEnv`.

    Raises:
        TypeError: If a function returns another environment, such as a wrapped one.
        ValueError: If two environments are pinned to the same seed and index, and so to the same opponents.

    Example:
        >>> import numpy as np
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> class Rock:
        ...     def predict(self, observations):
        ...         print("batch of", len(observations))
        ...         return np.zeros(len(observations), int), None
        >>> opponents = {1: Rock()}
        >>> def make():
        ...     return pm.LearnerEnv(pm.wrap(rps_v2.parallel_env(), pm.Focal(pm.Fixed(0), pm.Fixed(1))), opponents)
        >>> envs = pm.LearnerVectorEnv([make] * 3)
        >>> observations, infos = envs.reset(seed=0)
        >>> envs.step(np.array([0, 1, 2]))[1]
        batch of 3
        array([ 0.,  1., -1.])
    """

    def __init__(self, env_fns: Sequence[Callable[[], LearnerEnv]], **settings: Any) -> None:
        super().__init__(preparing(env_fns), **settings)
        check_distinct(self.envs)
        self._mode = declared_mode(self, None) or Autoreset.NEXT_STEP  # Gymnasium 1.0 has no other

    @override
    def step(self, actions: Any) -> Any:
        """Steps all environments."""
        with prepared(self.envs, iterate(self.action_space, actions), self._mode):
            return super().step(actions)
