"""`PolicyMapEnv`: tags the infos of a Gymnasium environment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sized
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.core import ActType, ObsType
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs
from typing_extensions import Unpack, override

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import Info
from pz_policymap.wrappers.policy_wrapper import (
    PolicyWrapper,
    WrapOptions,
    check_free,
    name_of,
    reset_failed,
    reset_outcome,
    split_options,
)
from pz_policymap.wrappers.reset_options import AS_DRAWN, FORCED, forced_matchup, taken

AGENT = "agent_0"  # Gymnasium has no name for its agent


class PolicyMapEnv(PolicyWrapper, gymnasium.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Tags the info of a single-agent environment with the policy that controls it, at `reset` and at every `step`.

    For the mapping it is an environment with one seat, whose agent is called "agent_0".

    Gymnasium's `check_env` passes, except with a pinned `seed`: it expects the same info after two resets with the same
    seed, and a pinned environment continues with its next episode instead.

    Args:
        env: A Gymnasium environment of a single agent; its spaces may be of any kind.
        mapping: As in `wrap`.
        **options: As in `wrap`.

    Attributes:
        assigner: The `PolicyAssigner` that makes the assignments.
        info_key: Key of the tag in each info.

    Raises:
        TypeError, ValueError: As in `wrap`, if `env` resets itself, or if it has several agents or sub-environments; at
            reset and at a step, if the info is not a dict or uses `info_key`; at reset, if the mapping fails; at a
            step, if the reward is not a number.
        ResetNeeded: At a step before the first reset, or after a reset that failed so.

    Example:
        >>> import gymnasium
        >>> from pz_policymap import PolicyMapEnv
        >>> env = PolicyMapEnv(gymnasium.make("CartPole-v1"), 4)
        >>> observation, info = env.reset(seed=42)
        >>> info, env.policy_ids
        ({'policy_id': 2}, 2)
    """

    _failed = False  # whether the environment began an episode that has no assignment
    _playing = False

    def __init__(
        self, env: gymnasium.Env[ObsType, ActType], mapping: MappingLike, **options: Unpack[WrapOptions]
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"env must be a gymnasium.Env, got {env!r}")
        if any(isinstance(layer, gymnasium.wrappers.Autoreset) for layer in _layers(env)):
            raise ValueError(f"env must not reset itself, put Autoreset around the policy wrapper, got {env}")
        _check_single(env)
        settings, self.info_key = split_options(options)
        # Not copied: a mapping does not change, and a weights callable must stay the caller's.
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, mapping=mapping, **options)
        gymnasium.Wrapper.__init__(self, env)
        self.assigner = PolicyAssigner(mapping, [AGENT], **settings)
        self._policy_id: int | None = None

    @property
    def policy_ids(self) -> int:
        """The policy that controls the agent in this episode, a forced one included.

        Raises:
            AttributeError: Before the first reset.
        """
        if self._policy_id is None:
            raise AttributeError("policy_ids cannot be accessed before reset")
        return self._policy_id

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ObsType, Info]:
        """Resets the environment, begins an episode, and resamples if the schedule says so.

        Args:
            seed: Seeds the environment; the assignments too, unless they are pinned.
            options: Passed to the environment, except for `policy_ids`, a policy (or `{"agent_0": policy}`) for this
                episode only.

        Raises:
            TypeError, ValueError: If a forced policy is not in the population, if the environment's info uses
                `info_key` or is not a dict, or if the mapping fails. No episode has begun then.
            KeyError: If a policy is forced on an agent that is not there.
        """
        (forced,), options = taken(options, FORCED)
        policy = AS_DRAWN if forced is None else forced_matchup(forced, self.assigner, [AGENT])[0, 0]
        outcome = self.env.reset(seed=seed, options=options)
        self._failed = True  # until nothing can raise any more
        observation, info = reset_outcome(outcome, self.env)
        check_free(info, self.info_key)
        drawn = self.assigner.begin_episodes(seed=seed)[0, 0]
        self._policy_id = int(drawn if policy == AS_DRAWN else policy)
        self._playing, self._failed = True, False
        return observation, {**info, self.info_key: self._policy_id}

    @override
    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, Info]:
        """Steps the environment and tags the info, a terminal one included."""
        if self._policy_id is None:
            raise ResetNeeded("step cannot be called before reset")
        if self._failed:
            raise reset_failed("step cannot be called")
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not isinstance(reward, (float, int, np.generic)):
            _check_number(reward, self.env)
        self._playing = not (terminated or truncated)
        check_free(info, self.info_key)
        return observation, reward, terminated, truncated, {**info, self.info_key: self._policy_id}

    @override
    def _unfinished(self) -> bool:
        return self._playing

    @override
    def _drop_episode(self) -> None:
        self._playing = False


_INSTEAD = (
    "a gymnasium.Env is one environment of one agent; make several agents a pettingzoo.ParallelEnv and "
    "several environments a gymnasium.vector.VectorEnv, then wrap that"
)


def _layers(env: Any) -> Iterator[Any]:
    """Yields an environment and everything inside its wrappers."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def _check_single(env: Any) -> None:
    """Raises a TypeError if the environment shows several agents or sub-environments."""
    for layer in _layers(env):
        for name in ("possible_agents", "n_agents", "num_envs", "observation_spaces"):
            value = getattr(layer, name, None)
            count = len(value) if isinstance(value, Sized) else value
            if isinstance(count, (int, np.integer)) and count > 1:
                raise TypeError(f"env must have a single agent, got {name}={value!r} from {name_of(layer)}: {_INSTEAD}")
        if isinstance(layer, gymnasium.Wrapper) and _spaces(layer) != _spaces(layer.env):
            return  # it may turn several agents into one


def _spaces(env: Any) -> tuple[int, int]:
    return id(getattr(env, "observation_space", None)), id(getattr(env, "action_space", None))


def _check_number(reward: Any, env: Any) -> None:
    """Raises a TypeError if a reward shows several agents, sub-environments or objectives."""
    shape = (len(reward),) if isinstance(reward, (list, tuple)) else getattr(reward, "shape", ())
    if isinstance(reward, Mapping) or math.prod(shape) != 1:
        raise TypeError(
            f"reward must be a number, got {reward!r} from {name_of(env)}: {_INSTEAD}; "
            f"turn a vector of objectives into one number first"
        )
