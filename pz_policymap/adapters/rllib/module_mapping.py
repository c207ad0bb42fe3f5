"""`ModuleMapping`, RLlib's mapping function, and the `Assignment` that it gives to each episode."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pz_policymap.arguments import integer, seed_of
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import Numbers, cadence_of, draw_policies
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.randomness.philox import Seed, Source


class Count(NamedTuple):
    """The latest episode of an environment, in plain types that can be sent and saved.

    Attributes:
        episode: Number of the episode, >= 0.
        draw_episode: Episode at which its assignment was drawn.
        policies: The policy of each seat.
        redraws: Number of requested redraws that this environment has made; see `ModuleMapping.follow`.
        over: Whether the episode has ended.
    """

    episode: int
    draw_episode: int
    policies: tuple[int, ...]
    redraws: int = 0
    over: bool = False


@dataclass(frozen=True)
class Assignment:
    """The modules of one episode, found on it as `episode.agent_to_module_mapping_fn`.

    RLlib keeps it when it cuts an episode, replays it or sends it to another process. To choose the modules of an
    episode of your own, pass an `Assignment` to `MultiAgentEpisode`.

    Args:
        modules: The module of each agent.
        policy_ids: The policy of each agent.
        env_index: Index of the environment among those of all runners.
        count: Number and draw of the episode.

    Example:
        >>> assignment = Assignment({"red": "policy_1", "blue": "policy_0"})
        >>> assignment("red", None)
        'policy_1'
    """

    modules: Mapping[Hashable, str]
    policy_ids: Mapping[Hashable, int] | None = None
    env_index: int | None = None
    count: Count | None = None

    def __call__(self, agent_id: Hashable, *_: Any, **__: Any) -> str:
        """Returns the module that controls an agent; RLlib also passes the episode.

        Raises:
            KeyError: If the agent has no seat.
        """
        try:
            return self.modules[agent_id]
        except KeyError:
            raise KeyError(f"agent {agent_id!r} has no seat: possible_agents are {list(self.modules)}") from None

    def check(self, existing: Collection[str]) -> None:
        """Raises a ValueError if an agent is assigned a module that does not exist."""
        for agent, module in self.modules.items():
            if module not in existing:
                raise ValueError(f"module of agent {agent!r} must be one of {sorted(existing)}, got {module!r}")


@dataclass(frozen=True, init=False, eq=False)
class ModuleMapping:
    """A mapping with its seed, its cadence and the modules of its policies, callable like a mapping function.

    RLlib calls a mapping function agent by agent, before the episode has begun. This one only answers the calls made
    while the modules are built. Each episode gets an `Assignment`, drawn for all agents at once.

    Args:
        mapping: A `PolicyMapping`, its text form, a function (see `FromFunction`), or the size of a population.
        seed: Pins the assignments: an integer >= 0 or several. None: taken from OS entropy, once for all runners.
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        names: The module of each policy. None: `policy_0`, `policy_1`, ...
        redraws: Number of redraws requested so far; see `follow`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or if there are too few `names` or two are equal.

    Example:
        >>> ModuleMapping(2, seed=0).begin(None, env_index=3, agents=("red", "blue")).modules
        {'red': 'policy_1', 'blue': 'policy_1'}
    """

    mapping: PolicyMapping
    seed: Seed
    resample_every: int
    warmup_episodes: int = 0
    names: tuple[str, ...] | None = None
    redraws: int = 0

    def __init__(
        self,
        mapping: MappingLike,
        seed: int | Sequence[int] | None = None,
        resample_every: int | None = None,
        warmup_episodes: int = 0,
        names: Sequence[str] | None = None,
        redraws: int = 0,
    ) -> None:
        rule = as_mapping(mapping)
        settings = {
            "mapping": rule,
            "seed": secrets.randbits(128) if seed is None else seed_of("seed", seed),
            "resample_every": cadence_of(rule, resample_every, warmup_episodes).resample_every,
            "warmup_episodes": warmup_episodes,
            "names": None if names is None else _checked_names(names, rule),
            "redraws": integer("redraws", redraws, 0),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        self.check(num_envs=1)

    @property
    def known_names(self) -> tuple[str, ...]:
        """The modules that are known: those named, or those of a population of known size."""
        if self.names is not None:
            return self.names
        return tuple(f"policy_{i}" for i in range(self.mapping.num_policies or 0))

    def __call__(self, *_: Any, **__: Any) -> str:
        """Returns the module of policy 0 for any agent; called only while the modules are built."""
        return self.module(0)

    def module(self, policy: int) -> str:
        """Returns the module of a policy.

        Raises:
            ValueError: If it has no name.
        """
        if self.names is None:
            return f"policy_{policy}"
        if policy >= len(self.names):
            raise ValueError(f"names must have an entry for policy {policy}, got {len(self.names)}: {list(self.names)}")
        return self.names[policy]

    def follow(self, mapping: MappingLike, names: Sequence[str] | None = None, now: bool = False) -> ModuleMapping:
        """Returns a copy with another mapping and the same seed and cadence, for `add_module` and `remove_module`.

        Args:
            mapping: As in the constructor. It takes effect from the next draw.
            names: The module of each policy. None: unchanged.
            now: Whether each environment resamples when its next episode begins, whatever the cadence.

        Raises:
            TypeError, ValueError: As the constructor does.
        """
        return ModuleMapping(
            mapping,
            self.seed,
            self.resample_every,
            self.warmup_episodes,
            self.names if names is None else names,
            self.redraws + now,
        )

    def begin(self, before: Count | None, env_index: int, agents: tuple[Hashable, ...]) -> Assignment:
        """Returns the assignment of an environment's next episode; the environment's count is left unchanged.

        Args:
            before: The latest episode of the environment. None before its first.
            env_index: Its index among the environments of all runners.
            agents: Its agents in seat order.

        Raises:
            TypeError, ValueError: If the mapping fails or cannot serve these agents, or if `before` has another number
                of seats.
        """
        count = Count(-1, -1, (), self.redraws) if before is None else before
        if count.policies and len(count.policies) != len(agents):
            raise ValueError(f"count must have {len(agents)} seats, {list(agents)}, got {len(count.policies)}")
        episode = np.array([count.episode + 1])
        due = bool(self._cadence.due(episode)[0]) and count.draw_episode != episode[0]
        if due or count.redraws < self.redraws:
            self.mapping.check(agents)
            policy_ids = np.empty((1, len(agents)), np.int32)
            numbers = Numbers(self._source, self._cadence, env_index)
            draw_policies(self.mapping, numbers, np.zeros(1, np.int64), episode, agents, policy_ids, slice(None))
            count = Count(-1, int(episode[0]), tuple(policy_ids[0].tolist()), self.redraws)
        count = count._replace(episode=int(episode[0]), over=False)
        by_agent = dict(zip(agents, count.policies, strict=True))
        modules = {agent: self.module(policy) for agent, policy in by_agent.items()}
        return Assignment(modules, by_agent, env_index, count)

    def check(self, num_envs: int) -> None:
        """Raises a ValueError if the mapping cannot serve this many environments at this cadence."""
        PolicyAssigner(
            self.mapping,
            None,
            resample_every=self.resample_every,
            warmup_episodes=self.warmup_episodes,
            seed=self.seed,
            env_index=num_envs - 1,
        )

    @cached_property
    def _source(self) -> Source:
        return Source(self.seed)

    @cached_property
    def _cadence(self) -> Cadence:
        return Cadence(self.resample_every, self.warmup_episodes)


def _checked_names(names: Sequence[str], mapping: PolicyMapping) -> tuple[str, ...]:
    """Returns the names of modules, or raises an error."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of strings, got {names!r}")
    policies = mapping.num_policies or 1
    if len(names) < policies or len(set(names)) != len(names):
        raise ValueError(f"names must be distinct and at least {policies}, one per policy, got {list(names)}")
    return tuple(names)
