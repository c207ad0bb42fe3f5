"""`LearnerVecEnv`: several `LearnerEnv`s as a `VecEnv`, whose opponents act in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stable_baselines3.common.vec_env import DummyVecEnv
from typing_extensions import override

from pz_policymap.learner.learner_env import LearnerEnv
from pz_policymap.learner.together import check_distinct, prepared, preparing
from pz_policymap.wrappers.autoreset import Autoreset


class LearnerVecEnv(DummyVecEnv):
    """A `DummyVecEnv` of `LearnerEnv`s, in which opponents with `predict` act in batches.

    In each step, the observations of all opponents that the same object controls, in all environments, go to its
    `predict` in one batch; see `pz_policymap.LearnerVectorEnv` for the conditions. `VecMonitor` and other wrappers of
    vector environments go around it.

    Args:
        env_fns: Functions that make a `LearnerEnv` each, with the same policy objects.

    Raises:
        TypeError: If a function returns another environment, such as a wrapped one.
        ValueError: If two environments are pinned to the same seed and index, and so to the same opponents.

    Example:
        >>> import numpy as np
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> from stable_baselines3 import PPO
        >>> opponents = {}
        >>> def make():
        ...     return pm.LearnerEnv(pm.wrap(rps_v2.parallel_env(), pm.Focal(pm.Fixed(0), pm.Fixed(1))), opponents)
        >>> envs = LearnerVecEnv([make] * 8)
        >>> model = PPO("MlpPolicy", envs, n_steps=64, device="cpu")
        >>> opponents[1] = model.policy  # self-play against the latest network
        >>> model.learn(512).num_timesteps
        512
    """

    def __init__(self, env_fns: Sequence[Callable[[], LearnerEnv]]) -> None:
        super().__init__(preparing(env_fns))
        check_distinct(self.envs)

    @override
    def step_wait(self) -> Any:
        """Steps all environments, and resets those whose episode has ended."""
        with prepared(self.envs, self.actions, Autoreset.SAME_STEP):
            return super().step_wait()
