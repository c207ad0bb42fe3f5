"""`PolicyMapAEC`: tags the infos of a PettingZoo AEC environment."""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import Any

from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType
from pettingzoo.utils.wrappers import BaseWrapper
from typing_extensions import Unpack, override

from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.pettingzoo_tags import Info, PolicyTags
from pz_policymap.wrappers.policy_wrapper import WrapOptions, reset_failed


class PolicyMapAEC(PolicyTags[AgentID], BaseWrapper[AgentID, ObsType, ActionType]):
    """Tags every agent's info with the policy that controls the agent, in `last()` and in `infos`.

    `infos` is a property that merges the environment's infos and the tags each time it is read. Wrappers and
    converters outside this one therefore see the tags. It builds one dict per agent; `last()` tags one agent only.

    Args:
        env: An AEC environment.
        mapping: As in `wrap`.
        **options: As in `wrap`.

    Attributes:
        assigner: The `PolicyAssigner` that makes the assignments.
        info_key: Key of the tag in each info.
        policy_ids: The policy that controls each agent in this episode.

    Raises:
        TypeError, ValueError: As in `wrap`; at reset, if `info_key` is already used or the mapping fails.
        ResetNeeded: At a step or when infos are read, after such a reset.
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
        self, env: AECEnv[AgentID, ObsType, ActionType], mapping: MappingLike, **options: Unpack[WrapOptions]
    ) -> None:
        if not isinstance(env, AECEnv):
            raise TypeError(f"env must be a pettingzoo.AECEnv, got {env!r}")
        super().__init__(env)
        self._open(mapping, options)

    @override
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
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
        self.env.reset(seed=seed, options=options)
        self._begin_episode(self.env.infos, seed, forced)

    @override
    def step(self, action: ActionType) -> None:
        """Steps the environment. Agents that join mid-episode get policies in the environment's order."""
        if self._failed:
            raise reset_failed("step cannot be called")
        self.env.step(action)
        if self._generated:
            self._welcome(self.env.agents)

    @property
    def infos(self) -> dict[AgentID, Info]:  # type: ignore[override]  # read-only; PettingZoo declares a variable
        """The infos of all agents, each a fresh dict with its tag."""
        self._require_reset("infos")
        if self._failed:
            raise reset_failed("infos cannot be accessed")
        env = self.env
        infos = env.infos
        if type(infos) is not dict:  # PettingZoo's `last()` reads this entry, and a defaultdict must gain it
            with suppress(KeyError, TypeError):
                if (agent := env.agent_selection) in env.agents:  # not for one that has just been removed
                    infos[agent]
        return self._tag_all(infos, env.agents)

    # PettingZoo's wrapper reaches these through `__getattr__`, which is several times slower.
    agents = property(attrgetter("env.agents"))
    agent_selection = property(attrgetter("env.agent_selection"))
    rewards = property(attrgetter("env.rewards"))
    terminations = property(attrgetter("env.terminations"))
    truncations = property(attrgetter("env.truncations"))
    _cumulative_rewards = property(attrgetter("env._cumulative_rewards"))

    @override
    def last(self, observe: bool = True) -> tuple[ObsType | None, float, bool, bool, Info]:
        """Returns observation, cumulative reward, termination, truncation and tagged info of the agent to move."""
        tags = self._tags
        if self._failed or not tags:
            self._require_reset("infos")
            raise reset_failed("last cannot be called")
        env = self.env
        agent = env.agent_selection
        observation = self.observe(agent) if observe else None
        try:
            info = env.infos[agent]  # inserts into a defaultdict, as PettingZoo does
        except (KeyError, TypeError):
            self._check_infos(env.infos)
            info = None
        if type(info) is dict and self.info_key not in info and agent in tags:
            tagged = info | tags[agent]
        else:
            tagged = self._tagged(agent, info)
        return observation, env._cumulative_rewards[agent], env.terminations[agent], env.truncations[agent], tagged

    @override
    def _playing(self) -> bool:
        env = self.env
        try:
            return not all(env.terminations.get(agent) or env.truncations.get(agent) for agent in env.agents)
        except AttributeError:
            return True  # an unpickled copy (EzPickle) has lost its episode, which a state repeats
