"""`Fixed` and `ByEnvIndex`: mappings without randomness."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.mappings.base import PolicyIds, PolicyMapping
from pz_policymap.mappings.uniform import FromPopulation
from pz_policymap.randomness.draw import Draw


@dataclass(frozen=True)
class Fixed(PolicyMapping):
    """The same policies in every episode: one for all agents, or one per agent.

    Args:
        policy: The index of the policy that controls every seat, or a dict from every agent to its policy.

    Raises:
        TypeError: If a policy is a non-integer.
        ValueError: If a policy is negative, or if an agent of the environment has no policy.

    Example:
        >>> from pz_policymap import Draw, Fixed
        >>> draw = Draw.at(0, ["a", "b"], env_index=[0], episode=[0])
        >>> Fixed({"a": 2, "b": 0}).assign(draw).tolist()
        [[2, 0]]
    """

    policy: int | Mapping[Hashable, int]

    def __post_init__(self) -> None:
        policy: int | dict[Hashable, int]
        if isinstance(self.policy, Mapping):
            policy = {a: integer(f"policy[{a!r}]", p, 0, MAX_INDEX) for a, p in self.policy.items()}
        else:
            policy = integer("policy", self.policy, 0, MAX_INDEX)
        object.__setattr__(self, "policy", policy)

    @property
    @override
    def reads_agents(self) -> bool:  # type: ignore[override]
        return isinstance(self.policy, Mapping)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        if isinstance(self.policy, Mapping):
            for agent in agents:
                if agent not in self.policy:
                    raise ValueError(
                        f"policy must hold every agent, got no policy for {agent!r} in {dict(self.policy)}"
                    )

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        policies = np.empty((draw.num_envs, draw.num_seats), np.int32)
        policies[:] = [self.policy[a] for a in draw.agents] if isinstance(self.policy, Mapping) else self.policy
        return policies


@dataclass(frozen=True)
class ByEnvIndex(FromPopulation):
    """Policy `i % policies` controls all seats of environment i, in every episode.

    This is Sample Factory's synchronous mode: every policy collects the same amount of experience. It needs the index
    of each environment: `env_fns` and `PolicyMapVector` provide it, `wrap` takes `env_index`.

    Args:
        policies: Number of policies, or a list of policy indices.
        num_envs: Total number of environments, to check that the policies get equal shares. None: not checked.

    Raises:
        TypeError: If an argument is a non-integer.
        ValueError: If `policies` is 0 or empty, or if `num_envs` is not divisible by their number.

    Example:
        >>> from pz_policymap import ByEnvIndex, Draw
        >>> draw = Draw.at(0, ["a", "b"], env_index=[0, 1, 2, 3], episode=[0] * 4)
        >>> ByEnvIndex(2, num_envs=4).assign(draw).tolist()
        [[0, 0], [1, 1], [0, 0], [1, 1]]
    """

    num_envs: int | None = None

    needs_env_index = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_envs is not None:
            num_envs = integer("num_envs", self.num_envs, 1)
            if num_envs % self.size:
                raise ValueError(
                    f"num_envs must be divisible by the number of policies, for equal experience: "
                    f"got num_envs={num_envs} and {self.size} policies"
                )
            object.__setattr__(self, "num_envs", num_envs)

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        column = self.indices(draw.env_index[:, None] % self.size)
        return np.broadcast_to(column, (draw.num_envs, draw.num_seats))
