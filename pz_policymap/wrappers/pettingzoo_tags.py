"""`PolicyTags`: the base class of the PettingZoo wrappers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any, Generic

from pettingzoo.utils.env import AgentID
from typing_extensions import override

from pz_policymap.arguments import in_order
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.done_flags import ALL
from pz_policymap.wrappers.policy_wrapper import PolicyWrapper, WrapOptions, check_free, name_of, split_options
from pz_policymap.wrappers.reset_options import AS_DRAWN, FORCED, check_agents, forced_matchup, taken

Info = dict[str, Any]


class PolicyTags(PolicyWrapper, Generic[AgentID]):
    """Holds the tag of each agent in the current episode; subclasses add PettingZoo's two APIs."""

    _failed = False  # whether the environment began an episode that has no assignment
    _over = True  # whether the episode had ended when `reset` was called, which may have raised

    def _open(self, mapping: MappingLike, options: WrapOptions) -> None:
        """Creates the assigner. `env` must be set."""
        agents = _possible_agents(self.env)
        settings, self.info_key = split_options(options)
        self.assigner = PolicyAssigner(mapping, agents, **settings)
        self._generated = agents is None  # agents are generated during episodes
        self._tags: dict[AgentID, Info] = {}  # each agent's {info_key: policy} in this episode

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" and name != "_cumulative_rewards":
            raise AttributeError(f"accessing private attribute '{name}' is prohibited")
        if name in _OWN:
            own = getattr(type(self), name, None)
            if own is not None:  # a property that raised AttributeError: the environment's would have no tags
                return own.fget(self)
            if name == "env":
                raise AttributeError("env is not set yet")
        return getattr(self.env, name)

    @property
    def policy_ids(self) -> dict[AgentID, int]:
        """The policy that controls each agent in this episode, forced policies and late agents included.

        Raises:
            AttributeError: Before the first reset.
        """
        self._require_reset("policy_ids")
        return {agent: tag[self.info_key] for agent, tag in self._tags.items()}

    tags = property(attrgetter("_tags"))  # one dict per episode, which grows as agents join

    @override
    def _unfinished(self) -> bool:
        return bool(self._tags) and not self._over and self._playing()

    @override
    def _drop_episode(self) -> None:
        self._over = True

    def _playing(self) -> bool:
        """Returns whether the environment is in the middle of an episode."""
        raise NotImplementedError

    def _require_reset(self, name: str) -> None:
        if not self._tags:
            raise AttributeError(f"{name} cannot be accessed before reset")

    def _take_forced(self, options: Info | None) -> tuple[dict[AgentID, int], Info | None]:
        """Returns the forced policies by agent, and the environment's share of reset's options."""
        if options is None:
            return {}, None
        (forced,), options = taken(options, FORCED)
        if forced is None:
            return {}, options
        agents = list(forced) if self._generated and isinstance(forced, Mapping) else _possible_agents(self.env)
        if agents is None:
            raise TypeError(
                f"options[{FORCED!r}] must be a dict from agent to policy for an environment without possible_agents, "
                f"got {forced!r}"
            )
        matchup = forced_matchup(forced, self.assigner, agents)[0].tolist()
        return {a: policy for a, policy in zip(agents, matchup, strict=True) if policy != AS_DRAWN}, options

    def _begin_episode(self, infos: Any, seed: int | None, forced: dict[AgentID, int]) -> None:
        """Begins an episode after a reset of the environment; if it raises, no episode has begun."""
        self._failed = True  # until nothing can raise any more
        self._check_infos(infos)
        live = self.env.agents
        key = self.info_key
        for agent, info in infos.items():
            if type(info) is dict and key not in info:  # the usual case
                continue
            if isinstance(info, Mapping) or (info is not None and agent in live):
                check_free(info, self.info_key, agent)
        if forced:
            check_agents(forced, live if self._generated else self.env.possible_agents)
        self.assigner.begin_episodes(seed=seed, agents=live)
        # A block may have agents of its earlier episodes that are not in this one.
        policies = self.assigner.assignment(agents=live if self._generated else None)
        policies.update(forced)
        self._tags = {agent: {key: policy} for agent, policy in policies.items()}
        self._over = self._failed = False

    def _check_infos(self, infos: Any) -> None:
        if not isinstance(infos, (dict, Mapping)):  # dict first: the check of an abstract class is slow
            raise TypeError(f"infos must be a dict with one info per agent, got {infos!r} from {name_of(self.env)}")

    def _welcome(self, agents: Collection[AgentID]) -> None:
        """Gives policies to agents that join mid-episode, in this order."""
        tags = self._tags
        if all(map(tags.__contains__, agents)):
            return
        late = [agent for agent in dict.fromkeys(agents) if agent not in tags and agent != ALL]
        self.assigner.add_agents(late)
        for agent, policy in self.assigner.assignment(agents=late).items():
            tags[agent] = {self.info_key: policy}

    def _tagged(self, agent: AgentID, info: Any) -> Info:
        """Returns a fresh, tagged info of one agent; `info` may be missing (None)."""
        if agent not in self._tags:
            self._welcome([*self.env.agents, agent])
        tag = self._tags[agent]
        if info is None:
            return dict(tag)
        check_free(info, self.info_key, agent)
        return {**info, **tag}

    def _tag_all(self, infos: Any, agents: Collection[AgentID]) -> dict[Any, Any]:
        """Returns fresh infos: one tagged info per agent; entries of keys that are not agents pass unchanged."""
        tagged = tagged_at_once(infos, agents, self.info_key, self._tags)
        return self._tag_each(infos, agents) if tagged is None else tagged

    def _tag_each(self, infos: Any, agents: Collection[AgentID]) -> dict[Any, Any]:
        """Does the same for infos that `tagged_at_once` does not serve."""
        self._check_infos(infos)
        live = self.env.agents
        if self._generated:
            agents = [agent for agent in agents if agent != ALL]
        else:  # an observation may belong to no agent, such as a global state
            agents = [agent for agent in agents if agent in self._tags or agent in live]
        self._welcome(agents)  # in this order, whatever infos there are
        self._welcome(live)
        result = {agent: self._tagged(agent, info) if agent in self._tags else info for agent, info in infos.items()}
        for agent in agents:
            if agent not in result:
                result[agent] = self._tagged(agent, None)
        return result


_OWN = ("infos", "policy_ids", "env")


def tagged_at_once(infos: Any, agents: Collection[Any], key: str, tags: Mapping[Any, Info]) -> dict[Any, Any] | None:
    """Returns fresh infos if there is exactly one plain info per agent and all agents are known, otherwise None.

    Args:
        infos: From the environment.
        agents: The agents that must have an info.
        key: Key of the tag.
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
        return None  # an agent without an info, or one that joined mid-episode
    return tagged


def _possible_agents(env: Any) -> list[Any] | None:
    """Returns the agents in seat order, None if the environment does not know them, or raises."""
    agents = getattr(env, "possible_agents", None)
    if agents is None:
        return None
    agents = list(in_order("possible_agents of the environment", agents))
    if not agents:
        raise ValueError(
            f"possible_agents of the environment must name at least one agent, got none from {name_of(env)}; "
            f"reset it before wrapping if it knows its agents only then, or leave the attribute out if they appear "
            f"during episodes"
        )
    return agents
