"""`ModuleMapping`: what RLlib is given as its mapping function."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pz_policymap.adapters.rllib.assignment import Assignment, Count
from pz_policymap.arguments import integer, seed_of
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import Drawn, Numbers, redrawn
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.randomness.philox import Seed, Source


@dataclass(frozen=True, init=False, eq=False)
class ModuleMapping:
    """A mapping with its seed, its cadence and the modules of its policies, in the form of a mapping function.

    RLlib asks such a function agent by agent, before the episode has begun. This one answers what is asked while the
    modules are built; episodes get an `Assignment` each, for all agents at once.

    Args:
        mapping: Who plays whom: a `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
        seed: A non-negative int or several; None takes one from the operating system, once for all runners.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself.
        names: The module of every policy; None: `policy_0`, `policy_1`, ...
        redraws: How many draws outside the cadence have been called for so far; see `follow`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or if `names` are too few or not distinct.

    Example:
        >>> ModuleMapping(2, seed=0).begin(None, env_index=3, agents=("red", "blue")).modules
        {'red': 'policy_1', 'blue': 'policy_1'}
    """

    mapping: PolicyMapping
    seed: Seed
    resample_every: int = 10
    warmup_episodes: int = 0
    names: tuple[str, ...] | None = None
    redraws: int = 0

    def __init__(
        self,
        mapping: MappingLike,
        seed: int | Sequence[int] | None = None,
        resample_every: int = 10,
        warmup_episodes: int = 0,
        names: Sequence[str] | None = None,
        redraws: int = 0,
    ) -> None:
        rule = as_mapping(mapping)
        settings = {
            "mapping": rule,
            "seed": secrets.randbits(128) if seed is None else seed_of("seed", seed),
            "resample_every": resample_every,
            "warmup_episodes": warmup_episodes,
            "names": None if names is None else _checked_names(names, rule),
            "redraws": integer("redraws", redraws, 0),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        self.check(num_envs=1)

    @property
    def known_names(self) -> tuple[str, ...]:
        """The modules, as far as they can be told: those named, or those of a population of known size."""
        if self.names is not None:
            return self.names
        return tuple(f"policy_{i}" for i in range(self.mapping.num_policies or 0))

    def __call__(self, *_: Any, **__: Any) -> str:
        """Returns the module of policy 0, whoever is asked for while the modules are built."""
        return self.module(0)

    def module(self, policy: int) -> str:
        """Returns the module of a policy.

        Raises:
            ValueError: If it has no name.
        """
        if self.names is None:
            return f"policy_{policy}"
        if policy >= len(self.names):
            raise ValueError(f"names must name policy {policy}, got {len(self.names)}: {list(self.names)}")
        return self.names[policy]

    def follow(self, mapping: MappingLike, names: Sequence[str] | None = None, now: bool = False) -> ModuleMapping:
        """Returns one with another rule and the same seed and cadence, for `add_module` and `remove_module`.

        Args:
            mapping: As in the constructor. It is followed from the next draw on.
            names: The module of every policy; None: as before.
            now: Whether every environment draws when its next episode begins, whatever the cadence.

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
        """Returns what an environment plays in its next episode; nothing is counted yet.

        Args:
            before: Where it stands; None before its first episode.
            env_index: Its index over all runners.
            agents: Its agents in seat order.

        Raises:
            TypeError, ValueError: If the mapping fails or cannot serve these agents, or if `before` is of others.
        """
        count = Count(-1, -1, (), self.redraws) if before is None else before
        if count.policies and len(count.policies) != len(agents):
            raise ValueError(f"count must be of {len(agents)} seats, {list(agents)}, got {len(count.policies)}")
        episode = np.array([count.episode + 1])
        drawn = bool(self._cadence.due(episode)[0]) and count.draw_episode != episode[0]
        if drawn or count.redraws < self.redraws:
            self.mapping.check(agents)
            nothing = Drawn(agents, np.empty((1, len(agents)), np.int32), self.mapping, self.mapping, [])
            numbers = Numbers(self._source, self._cadence, env_index)
            policies = redrawn(nothing, self.mapping, numbers, slice(None), episode, agents).policy_ids
            count = Count(-1, int(episode[0]), tuple(policies[0].tolist()), self.redraws)
        count = count._replace(episode=int(episode[0]), over=False)
        policy_ids = dict(zip(agents, count.policies, strict=True))
        modules = {agent: self.module(policy) for agent, policy in policy_ids.items()}
        return Assignment(modules, policy_ids, env_index, count)

    def check(self, num_envs: int) -> None:
        """Raises a ValueError where the mapping cannot serve so many environments at this cadence."""
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
    """Returns the names of modules, or raises where they cannot be."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of strings, got {names!r}")
    policies = mapping.num_policies or 1
    if len(names) < policies or len(set(names)) != len(names):
        raise ValueError(f"names must be distinct and at least {policies}, one a policy, got {list(names)}")
    return tuple(names)
