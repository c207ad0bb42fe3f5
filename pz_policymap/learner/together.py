"""Steps several `LearnerEnv`s together, so that opponents with `predict` get one batch for all of them.

Vector environments of Gymnasium and Stable-Baselines3 step their environments one by one. Here the outcomes are
computed ahead, for all environments at once; the vector environment then collects them, with all its own rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
from typing_extensions import override

from pz_policymap.learner.answers import answered_together
from pz_policymap.learner.episodes import Asking
from pz_policymap.learner.learner_env import LearnerEnv
from pz_policymap.wrappers.autoreset import Autoreset
from pz_policymap.wrappers.find import find_assigner


class PreparedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A `LearnerEnv` whose `step` and `reset` return outcomes computed ahead, if any.

    Args:
        env: The environment.

    Attributes:
        env: As given.
        outcomes: Results of the next calls of `step` and `reset`.
        over: Whether the last step ended an episode.

    Raises:
        TypeError: If `env` is not a `LearnerEnv`.
    """

    env: LearnerEnv

    def __init__(self, env: LearnerEnv) -> None:
        if not isinstance(env, LearnerEnv):
            raise TypeError(
                f"env_fns must return LearnerEnvs, got {env!r}: other wrappers go around the vector environment"
            )
        super().__init__(env)
        self.outcomes = deque[Any]()
        self.over = False

    @override
    def step(self, action: Any) -> Any:
        """Steps the environment."""
        outcome = self.outcomes.popleft() if self.outcomes else self.env.step(action)
        self.over = outcome[2] or outcome[3]
        return outcome

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Resets the environment."""
        self.over = False
        return self.outcomes.popleft() if self.outcomes else self.env.reset(seed=seed, options=options)


def check_distinct(envs: Sequence[Any]) -> None:
    """Raises a ValueError if two environments are pinned to the same assignments."""
    assigners = [find_assigner(env) for env in envs]
    pinned = [(assigner.seed, assigner.env_index) for assigner in assigners if assigner.pinned]
    if len(set(pinned)) < len(pinned):
        raise ValueError(
            f"env_fns must make environments with different assignments, got (seed, env_index) {pinned}; "
            f"env_fns of pz_policymap gives each its own index"
        )


def preparing(env_fns: Sequence[Callable[[], LearnerEnv]]) -> list[Callable[[], PreparedEnv]]:
    """Returns functions that make the same environments, as `PreparedEnv`s."""
    return [partial(_made, make) for make in env_fns]


def _made(make: Callable[[], LearnerEnv]) -> PreparedEnv:
    return PreparedEnv(make())


@contextmanager
def prepared(envs: Sequence[Any], actions: Iterable[Any], mode: Autoreset) -> Iterator[None]:
    """Computes the outcomes of a step of a vector environment ahead, which then collects them inside.

    Environments with `isolate_randomness` are left out: the draws of their opponents would depend on the batch.

    Args:
        envs: The `PreparedEnv`s of the vector environment.
        actions: One per environment.
        mode: How the vector environment resets.
    """
    acting = [pair for pair in zip(envs, actions, strict=True) if not pair[0].env.isolate_randomness]
    try:
        results = answered_together([_outcomes(env, action, mode) for env, action in acting])
        for (env, _), outcomes in zip(acting, results, strict=True):
            env.outcomes += outcomes
        yield
    finally:
        for env in envs:
            env.outcomes.clear()


def _outcomes(env: PreparedEnv, action: Any, mode: Autoreset) -> Asking[list[Any]]:
    """Returns the results of the calls that a vector environment will make in this step."""
    if mode is Autoreset.NEXT_STEP and env.over:
        return [(yield from env.env.resetting())]
    outcomes: list[Any] = [(yield from env.env.stepping(action))]
    if mode is Autoreset.SAME_STEP and any(outcomes[0][2:4]):
        outcomes.append((yield from env.env.resetting()))
    return outcomes
