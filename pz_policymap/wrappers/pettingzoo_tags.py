"""`PolicyTags`: what the PettingZoo wrappers have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic

from gymnasium.error import ResetNeeded
from pettingzoo.utils.env import AgentID

from pz_policymap.arguments import MAX_INDEX, integer, text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.conversion import MappingLike

FORCED = "policy_ids"  # the key in reset's options that forces a matchup

Info = dict[str, Any]


class PolicyTags(Generic[AgentID]):
    """Knows who plays whom in the current episode and tags infos with it; a subclass knows the environment's API.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags.
        info_key: The key of the tag in every agent's info.
    """

    env: Any

    def _open(
        self,
        mapping: MappingLike,
        resample_every: int,
        warmup_episodes: int,
        seed: int | Sequence[int] | None,
        env_index: int | None,
        info_key: str,
    ) -> None:
        """Makes the assigner; to be called once `env` is set."""
        self.info_key = text("info_key", info_key)
        possible_agents = getattr(self.env, "possible_agents", None)
        self._generated = possible_agents is None  # agents appear as the episode goes
        self.assigner = PolicyAssigner(
            mapping,
            possible_agents,
            resample_every=resample_every,
            warmup_episodes=warmup_episodes,
            seed=seed,
            env_index=env_index,
        )
        self.assigner.watch(self._unfinished)
        self._tags: dict[AgentID, Info] = {}  # each agent's {info_key: policy} in this episode
        self._over = False  # whether the episode had ended when `reset` was called, which may have raised
        self._failed = False  # whether the environment has begun an episode for which there is no draw

    def __getattr__(self, name: str) -> Any:
        own = getattr(type(self), name, None)
        if isinstance(own, property) and own.fget is not None:
            return own.fget(self)  # it raised AttributeError: let it say so, the environment's would be untagged
        if name == "env":
            raise AttributeError("env is not set yet")
        return super().__getattr__(name)  # type: ignore[misc]  # PettingZoo's wrapper, next in line

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.assigner.watch(self._unfinished)  # which a copied assigner leaves behind

    @property
    def policy_ids(self) -> dict[AgentID, int]:
        """Who plays whom in this episode, agent to policy: a forced matchup and late agents included.

        Raises:
            AttributeError: Before the first reset.
        """
        self._require_reset("policy_ids")
        return {agent: tag[self.info_key] for agent, tag in self._tags.items()}

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another rule from the next draw on; the assignment in force stays.

        Args:
            mapping: A `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
            now: Whether to draw at the next reset, whatever the cadence.

        Raises:
            TypeError, ValueError: As at construction; the old mapping stays then.
        """
        self.assigner.set_mapping(mapping, now)

    def _unfinished(self) -> bool:
        """Whether an episode is being played."""
        return bool(self._tags) and not self._over and self._playing()

    def _playing(self) -> bool:
        """Whether the environment is in the middle of an episode."""
        raise NotImplementedError

    def _require_reset(self, name: str) -> None:
        if not self._tags:
            raise AttributeError(f"{name} cannot be accessed before reset")

    def _take_forced(self, options: Info | None) -> tuple[dict[AgentID, int], Info | None]:
        """Returns the forced matchup, and what is left of reset's options for the environment."""
        if not options or FORCED not in options:
            return {}, options
        forced = {} if options[FORCED] is None else options[FORCED]
        if not isinstance(forced, Mapping):
            raise TypeError(f"options[{FORCED!r}] must be a dict from agent to policy, got {forced!r}")
        size = self.assigner.mapping.num_policies
        highest = MAX_INDEX if size is None else size - 1
        matchup = {
            agent: integer(f"options[{FORCED!r}][{agent!r}]", policy, 0, highest) for agent, policy in forced.items()
        }
        _check_there(matchup, getattr(self.env, "possible_agents", matchup))
        return matchup, {key: value for key, value in options.items() if key != FORCED} or None

    def _begin_episode(self, infos: Mapping[Any, Any], seed: int | None, forced: dict[AgentID, int]) -> None:
        """Begins the episode of an environment that has just been reset; if it raises, none has begun."""
        self._failed = True  # whatever raises from here on
        for agent, info in infos.items():
            self._check_free(agent, info)
        live = self.env.agents
        _check_there(forced, getattr(self.env, "possible_agents", live))
        self.assigner.begin_episodes(seed=seed, agents=live)
        assignment = self.assigner.assignment()
        if self._generated:
            assignment = {agent: assignment[agent] for agent in live}  # not those of earlier episodes of the block
        assignment.update(forced)
        self._tags = {agent: {self.info_key: policy} for agent, policy in assignment.items()}
        self._over = self._failed = False

    def _check_free(self, agent: Any, info: Any) -> None:
        if isinstance(info, Mapping) and self.info_key in info:
            raise ValueError(
                f"info_key {self.info_key!r} is already used by the environment: "
                f"the info of {agent!r} is {dict(info)}; wrap with another info_key"
            )

    def _welcome(self, agents: Collection[AgentID]) -> None:
        """Gives agents not seen before in this episode, who have come late, their policies."""
        late = [agent for agent in dict.fromkeys(agents) if agent not in self._tags]
        if late:
            self.assigner.add_agents(late)
            assignment = self.assigner.assignment()
            self._tags.update((agent, {self.info_key: assignment[agent]}) for agent in late)

    def _tagged(self, agent: AgentID, info: Any) -> Info:
        """Returns a fresh info of one agent with its tag; `info` may be missing (None)."""
        self._check_free(agent, info)
        if agent not in self._tags:
            self._welcome([*self.env.agents, agent])
        return {**(info or {}), **self._tags[agent]}

    def _tag_all(self, infos: Mapping[Any, Any], agents: Collection[AgentID]) -> dict[Any, Any]:
        """Returns fresh infos: tagged for agents, who all have one, and as they came for keys that are no agents."""
        tagged = tagged_at_once(infos, agents, self.info_key, self._tags)
        return self._tag_each(infos, agents) if tagged is None else tagged

    def _tag_each(self, infos: Mapping[Any, Any], agents: Collection[AgentID]) -> dict[Any, Any]:
        """The same where there is more to it than one info for each agent that is known."""
        live = self.env.agents
        if not self._generated:  # an observation may be nobody's, such as a global state
            agents = [agent for agent in agents if agent in self._tags or agent in live]
        self._welcome(agents)  # in this order, whatever infos there are
        self._welcome(live)
        result = {agent: self._tagged(agent, info) if agent in self._tags else info for agent, info in infos.items()}
        for agent in agents:
            if agent not in result:
                result[agent] = self._tagged(agent, None)
        return result


def tagged_at_once(
    infos: Mapping[Any, Any], agents: Collection[Any], key: str, tags: Mapping[Any, Info]
) -> dict[Any, Any] | None:
    """Returns fresh infos where each of the agents has one and is known, or None where there is more to it.

    Args:
        infos: From the environment.
        agents: Who must have an info.
        key: Of the tag.
        tags: The tag of each agent, `{key: policy}`.
    """
    if type(infos) is not dict or len(infos) != len(agents):  # reading another kind of dict could insert
        return None
    tagged = {}
    try:
        for agent in agents:
            info = infos[agent]
            if key in info:
                return None
            tagged[agent] = info | tags[agent]
    except (KeyError, TypeError):
        return None  # an agent without an info, or one that has come late
    return tagged


def reset_failed(what: str) -> ResetNeeded:
    """Returns the error about what cannot be had after a failed reset: the old tags are not the new episode's."""
    return ResetNeeded(f"{what}: the last reset failed to begin an episode, so reset again")


def _check_there(forced: Collection[Any], agents: Collection[Any]) -> None:
    for agent in forced:
        if agent not in agents:
            raise KeyError(f"options[{FORCED!r}] names {agent!r}, which is not among {list(agents)}")
