"""`PolicyMapEnv`: tags the infos of a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.core import ActType, ObsType
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs
from typing_extensions import override

from pz_policymap.arguments import text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import FORCED, Info, reset_failed
from pz_policymap.wrappers.reset_options import AS_DRAWN, forced_matchup, taken
from pz_policymap.wrappers.vector_infos import check_free

AGENT = "agent_0"  # Gymnasium has no name for whom it is about


class PolicyMapEnv(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Tags the info of a single-agent environment with the policy that plays it, at `reset` and at every `step`.

    Every `reset` begins an episode. The policy is drawn where the episode's number is divisible by `resample_every`,
    and held until the next draw. To the mapping it is an environment of one seat, whose agent is called "agent_0".

    Gymnasium's `check_env` passes. Of an environment with a pinned `seed` it asks for what pinning is there to
    prevent: that `reset(seed=...)` brings the same policy back. A pinned one goes on to its next episode, and draws.

    Args:
        env: A Gymnasium environment.
        mapping: Who plays: a `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself, so that a fault shows early.
        seed: Pins the assignments: `reset(seed=...)` seeds the environment alone then. None: `reset(seed=s)` also
            starts the assignments again at episode 0, and without any seed they come from the operating system.
        env_index: Which environment of many this is, from 0; needed by mappings that span environments.
        info_key: The key of the tag. One that the environment uses itself is an error.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags.
        info_key: The key of the tag in every info.

    Raises:
        TypeError: If an argument has the wrong type, `env` included.
        ValueError: If a number is out of range, if `env` resets itself, or if the mapping cannot serve one seat or
            needs an `env_index` or a `seed`; at reset and at a step, if `info_key` is taken, and at reset, if the
            mapping fails.
        ResetNeeded: At a step before the first reset, or after a reset that failed so.

    Example:
        >>> import gymnasium
        >>> from pz_policymap import PolicyMapEnv
        >>> env = PolicyMapEnv(gymnasium.make("CartPole-v1"), 4)
        >>> observation, info = env.reset(seed=42)
        >>> info, env.policy_ids
        ({'policy_id': 2}, 2)
    """

    def __init__(
        self,
        env: gymnasium.Env[ObsType, ActType],
        mapping: MappingLike,
        resample_every: int = 10,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
        info_key: str = "policy_id",
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"env must be a gymnasium.Env, got {env!r}")
        layer: Any = env
        while isinstance(layer, gymnasium.Wrapper):
            if isinstance(layer, gymnasium.wrappers.Autoreset):
                raise ValueError(
                    f"env must not reset itself, which nobody outside sees: put Autoreset around, got {env}"
                )
            layer = layer.env
        settings: dict[str, Any] = {
            "resample_every": resample_every,
            "warmup_episodes": warmup_episodes,
            "seed": seed,
            "env_index": env_index,
        }
        # Not copied: a mapping does not change, and weights that it asks for must stay those of the caller.
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, mapping=mapping, info_key=info_key, **settings)
        gymnasium.Wrapper.__init__(self, env)
        self.info_key = text("info_key", info_key)
        self.assigner = PolicyAssigner(mapping, [AGENT], **settings)
        self.assigner.watch(self._unfinished)
        self._policy_id: int | None = None
        self._failed = False  # whether the environment has begun an episode for which there is no draw
        self._playing = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.assigner.watch(self._unfinished)  # which a copied assigner leaves behind

    @property
    def policy_ids(self) -> int:
        """The policy that plays this episode, a forced one included.

        Raises:
            AttributeError: Before the first reset.
        """
        if self._policy_id is None:
            raise AttributeError("policy_ids cannot be accessed before reset")
        return self._policy_id

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another rule from the next draw on; the policy in force stays.

        Args:
            mapping: A `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
            now: Whether to draw at the next reset, whatever the cadence.

        Raises:
            TypeError, ValueError: As at construction; the old mapping stays then.
        """
        self.assigner.set_mapping(mapping, now)

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ObsType, Info]:
        """Resets the environment, begins an episode, and draws where a draw is due.

        Args:
            seed: Seeds the environment; the assignments too, unless they are pinned.
            options: Go to the environment, but for `policy_ids`, a policy (or `{"agent_0": policy}`) that plays this
                episode only.

        Raises:
            TypeError, ValueError: If a forced policy is not of the population, where its size is known, if the
                environment's info uses `info_key`, or if the mapping fails. No episode has begun then.
            KeyError: If a policy is forced on an agent that is not there.
        """
        (forced,), options = taken(options, FORCED)
        policy = AS_DRAWN if forced is None else forced_matchup(forced, self.assigner, [AGENT])[0, 0]
        observation, info = self.env.reset(seed=seed, options=options)
        self._failed = True  # whatever raises from here on
        check_free(info, self.info_key)
        drawn = self.assigner.begin_episodes(seed=seed)[0, 0]
        self._policy_id = int(drawn if policy == AS_DRAWN else policy)
        self._playing, self._failed = True, False
        return observation, {**info, self.info_key: self._policy_id}

    @override
    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, Info]:
        """Steps the environment; the info that comes back is tagged, the terminal one included."""
        if self._policy_id is None:
            raise ResetNeeded("step cannot be called before reset")
        if self._failed:
            raise reset_failed("step cannot be called")
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._playing = not (terminated or truncated)
        check_free(info, self.info_key)
        return observation, reward, terminated, truncated, {**info, self.info_key: self._policy_id}

    def _unfinished(self) -> bool:
        return self._playing
