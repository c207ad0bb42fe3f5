"""`PolicyMapParallel`: tags the infos of a PettingZoo Parallel environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pettingzoo.utils.env import ActionType, AgentID, ObsType, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper
from typing_extensions import override

from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import Info, PolicyTags, reset_failed, tagged_at_once


class PolicyMapParallel(PolicyTags[AgentID], BaseParallelWrapper[AgentID, ObsType, ActionType]):
    """Tags every agent's info with the policy that plays it, at `reset` and at every `step`.

    Every `reset` begins an episode. The seats of the environment are drawn at once, where the episode's number is
    divisible by `resample_every`, and held until the next draw; `set_mapping(mapping, now=False)` changes the rule.

    Args:
        env: A Parallel environment.
        mapping: Who plays whom: a `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself, so that a fault shows early.
        seed: Pins the assignments: `reset(seed=...)` seeds the environment alone then. None: `reset(seed=s)` also
            starts the assignments again at episode 0, and without any seed they come from the operating system.
        env_index: Which environment of many this is, from 0; needed by mappings that span environments.
        info_key: The key of the tag. One that the environment uses itself is an error.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags.
        info_key: The key of the tag.
        policy_ids: Who plays whom in this episode, agent to policy; an AttributeError before the first reset.

    Raises:
        TypeError: If an argument has the wrong type, `env` included.
        ValueError: If a number is out of range, if the mapping cannot serve these agents or needs an `env_index` or a
            `seed`; at reset, if `info_key` is taken or the mapping fails.
        ResetNeeded: At a step after such a reset.

    Example:
        >>> from mpe2 import simple_spread_v3
        >>> from pz_policymap import PolicyMapParallel
        >>> env = PolicyMapParallel(simple_spread_v3.parallel_env(N=3), 4)
        >>> observations, infos = env.reset(seed=42)
        >>> infos
        {'agent_0': {'policy_id': 2}, 'agent_1': {'policy_id': 0}, 'agent_2': {'policy_id': 2}}
    """

    def __init__(
        self,
        env: ParallelEnv[AgentID, ObsType, ActionType],
        mapping: MappingLike,
        resample_every: int = 10,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
        info_key: str = "policy_id",
    ) -> None:
        if not isinstance(env, ParallelEnv):
            raise TypeError(f"env must be a pettingzoo.ParallelEnv, got {env!r}")
        super().__init__(env)
        self._open(mapping, resample_every, warmup_episodes, seed, env_index, info_key)

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentID, ObsType], dict[AgentID, Info]]:
        """Resets the environment, begins an episode, and draws where a draw is due.

        Args:
            seed: Seeds the environment; the assignments too, unless they are pinned.
            options: Go to the environment, but for `policy_ids`, a dict from agent to policy: a matchup for this
                episode only, the others playing as drawn.

        Raises:
            TypeError, ValueError: If a forced policy is not of the population, where its size is known, if the
                environment's infos use `info_key`, or if the mapping fails. No episode has begun then.
            KeyError: If a matchup is forced for an agent that is not there.
        """
        forced, options = self._take_forced(options)
        self._over = not self._unfinished()
        observations, infos = self.env.reset(seed=seed, options=options)
        self._begin_episode(infos, seed, forced)
        return observations, self._tag_all(infos, observations)

    @override
    def step(
        self, actions: dict[AgentID, ActionType]
    ) -> tuple[
        dict[AgentID, ObsType],
        dict[AgentID, float],
        dict[AgentID, bool],
        dict[AgentID, bool],
        dict[AgentID, Info],
    ]:
        """Steps the environment; the infos that come back are tagged, terminal ones included."""
        if self._failed:
            raise reset_failed("step cannot be called")
        outcome = self.env.step(actions)
        try:
            observations, rewards, terminations, truncations, infos = outcome
        except ValueError:  # turn_based_aec_to_parallel returns four empty dicts once no agent remains
            return outcome  # type: ignore[no-any-return]
        # As `_tag_all` does, but for a call of a method: with two agents, that is a fifth of the tag's cost.
        tagged = tagged_at_once(infos, observations, self.info_key, self._tags)
        if tagged is None:
            tagged = self._tag_each(infos, observations)
        elif self._generated:
            self._welcome(self.env.agents)  # who is there and sees nothing yet has come, too
        return observations, rewards, terminations, truncations, tagged

    @override
    def _playing(self) -> bool:
        return bool(getattr(self.env, "agents", ()))
