"""`PolicyMapAEC`: tags the infos of a PettingZoo AEC environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType
from pettingzoo.utils.wrappers import BaseWrapper
from typing_extensions import override

from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import Info, PolicyTags, reset_failed


class PolicyMapAEC(PolicyTags[AgentID], BaseWrapper[AgentID, ObsType, ActionType]):
    """Tags every agent's info with the policy that plays it, wherever infos are read: `last()` and `infos`.

    `infos` is a property that merges the environment's infos and the tags each time it is read, so the tag is seen by
    any wrapper or converter outside this one. It costs a dict an agent; `last()` tags only the agent it is about.

    Args:
        env: An AEC environment.
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
        ResetNeeded: At a step, or if infos are read, after such a reset.
        AttributeError: If `infos` or `policy_ids` is read before the first reset.

    Example:
        >>> from mpe2 import simple_spread_v3
        >>> from pz_policymap import PolicyMapAEC
        >>> env = PolicyMapAEC(simple_spread_v3.env(), 4)
        >>> env.reset(seed=42)
        >>> observation, reward, termination, truncation, info = env.last()
        >>> info
        {'policy_id': 2}
    """

    def __init__(
        self,
        env: AECEnv[AgentID, ObsType, ActionType],
        mapping: MappingLike,
        resample_every: int = 10,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
        info_key: str = "policy_id",
    ) -> None:
        if not isinstance(env, AECEnv):
            raise TypeError(f"env must be a pettingzoo.AECEnv, got {env!r}")
        super().__init__(env)
        self._open(mapping, resample_every, warmup_episodes, seed, env_index, info_key)

    @override
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
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
        self.env.reset(seed=seed, options=options)
        self._begin_episode(self.env.infos, seed, forced)

    @override
    def step(self, action: ActionType) -> None:
        """Steps the environment; agents that come late are given their policies in the order in which they come."""
        if self._failed:
            raise reset_failed("step cannot be called")
        self.env.step(action)
        if self._generated:
            self._welcome(self.env.agents)

    @property
    def infos(self) -> dict[AgentID, Info]:  # type: ignore[override]  # read-only, where PettingZoo declares a variable
        """The infos of all agents, each a fresh dict with its tag."""
        self._require_reset("infos")
        if self._failed:
            raise reset_failed("infos cannot be accessed")
        return self._tag_all(self.env.infos, self.env.agents)

    @override
    def last(self, observe: bool = True) -> tuple[ObsType | None, float, bool, bool, Info]:
        """Returns observation, cumulative reward, termination, truncation and tagged info of the agent to move."""
        self._require_reset("infos")
        if self._failed:
            raise reset_failed("last cannot be called")
        agent = self.agent_selection
        env = self.env
        return (
            self.observe(agent) if observe else None,
            env._cumulative_rewards[agent],
            env.terminations[agent],
            env.truncations[agent],
            self._tagged(agent, env.infos.get(agent)),
        )

    @override
    def _playing(self) -> bool:
        env = self.env
        try:
            return not all(env.terminations[agent] or env.truncations[agent] for agent in env.agents)
        except AttributeError:
            return False  # it came back blank from a pickle: nothing is played until the next reset
