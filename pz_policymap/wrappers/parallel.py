"""`PolicyMapParallel`: tags the infos of a PettingZoo Parallel environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.env import ActionType, AgentID, ObsType, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper
from typing_extensions import Unpack, override

from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import Info, PolicyTags, tagged_at_once
from pz_policymap.wrappers.policy_wrapper import WrapOptions, name_of, reset_failed


class PolicyMapParallel(PolicyTags[AgentID], BaseParallelWrapper[AgentID, ObsType, ActionType]):
    """Tags every agent's info with the policy that controls the agent, at `reset` and at every `step`.

    Args:
        env: A Parallel environment.
        mapping: As in `wrap`.
        **options: As in `wrap`.

    Attributes:
        assigner: The `PolicyAssigner` that makes the assignments.
        info_key: Key of the tag in each info.
        policy_ids: The policy that controls each agent in this episode; an AttributeError before the first reset.

    Raises:
        TypeError, ValueError: As in `wrap`; at reset, if `info_key` is already used or the mapping fails.
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
        self, env: ParallelEnv[AgentID, ObsType, ActionType], mapping: MappingLike, **options: Unpack[WrapOptions]
    ) -> None:
        if not isinstance(env, ParallelEnv):
            raise TypeError(f"env must be a pettingzoo.ParallelEnv, got {env!r}")
        super().__init__(env)
        self._open(mapping, options)

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentID, ObsType], dict[AgentID, Info]]:
        """Resets the environment, begins an episode, and resamples if the schedule says so.

        Args:
            seed: Seeds the environment; the assignments too, unless they are pinned.
            options: Passed to the environment, except for `policy_ids`, a matchup for this episode only: a dict from
                agent to policy, one policy for all agents, or one integer per possible agent, -1 as drawn.

        Raises:
            TypeError, ValueError: If a forced policy is not in the population, if the environment's infos use
                `info_key` or are not dicts, or if the mapping fails. No episode has begun then.
            KeyError: If a policy is forced on an agent that is not there.
        """
        forced, options = self._take_forced(options)
        self._over = not self._unfinished()
        outcome = self.env.reset(seed=seed, options=options)
        self._failed = True  # until nothing can raise any more
        if not (isinstance(outcome, (tuple, list)) and len(outcome) == 2 and isinstance(outcome[0], (dict, Mapping))):
            name = name_of(self.env)
            raise TypeError(
                f"reset must return (observations, infos), both dicts by agent, got {outcome!r} from {name}"
            )
        observations, infos = outcome
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
        """Steps the environment and tags the infos, terminal ones included."""
        if self._failed:
            raise reset_failed("step cannot be called")
        outcome = self.env.step(actions)
        try:
            observations, rewards, terminations, truncations, infos = outcome
        except ValueError:  # turn_based_aec_to_parallel returns four empty dicts when no agent is left
            return outcome  # type: ignore[no-any-return]
        # `_tag_all`, without its method call: that call would be a fifth of the tag's cost with two agents.
        tagged = tagged_at_once(infos, observations, self.info_key, self._tags)
        if tagged is None:
            tagged = self._tag_each(infos, observations)
        elif self._generated:
            self._welcome(self.env.agents)  # agents may be there before they get an observation
        return observations, rewards, terminations, truncations, tagged

    @override
    def _playing(self) -> bool:
        return bool(getattr(self.env, "agents", ()))
