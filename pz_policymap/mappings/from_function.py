"""`FromFunction`: a plain function as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.mappings.base import PolicyIds, PolicyMapping
from pz_policymap.randomness.draw import Draw, EnvDraw

PolicyFunction = Callable[[list[Any], EnvDraw], Mapping[Any, int]]


@dataclass(frozen=True)
class FromFunction(PolicyMapping):
    """Calls a user-defined function, once per environment.

    Args:
        fn: `fn(agents, draw) -> {agent: policy}`. `agents` is the list of agents in seat order; `draw` is an `EnvDraw`
            with `env_index`, `episode`, `block` and `rng`. Take all randomness from `draw.rng`, a NumPy generator.
        num_policies: Size of the population, to check policies against it.

    Raises:
        TypeError: If `fn` is not callable; at a draw, if it does not return a dict, or returns a non-integer policy.
        ValueError: At a draw, if an agent is left out or a policy is out of range.

    Example:
        >>> from pz_policymap import Draw, FromFunction
        >>> def learner_first(agents, draw):
        ...     return {agent: 0 if agent == agents[0] else int(draw.rng.integers(1, 4)) for agent in agents}
        >>> draw = Draw.at(0, ["a", "b"], env_index=[0], episode=[0])
        >>> FromFunction(learner_first, num_policies=4).assign(draw).tolist()
        [[0, 3]]
    """

    fn: PolicyFunction
    num_policies: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"fn must be callable, got {self.fn!r}")
        if self.num_policies is not None:
            object.__setattr__(self, "num_policies", integer("num_policies", self.num_policies, 1))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        return np.array([self._ask(draw.agents, one) for one in draw.environments()], np.int32)

    def _ask(self, agents: tuple[Hashable, ...], draw: EnvDraw) -> list[int]:
        answer = self.fn(list(agents), draw)
        if not isinstance(answer, Mapping):
            raise TypeError(f"fn must return a dict from agent to policy, got {answer!r}")
        left_out = [agent for agent in agents if agent not in answer]
        if left_out:
            raise ValueError(f"fn must return a policy for every agent, got none for {left_out}")
        highest = MAX_INDEX if self.num_policies is None else min(self.num_policies - 1, MAX_INDEX)
        return [integer(f"the policy of agent {a!r}", answer[a], 0, highest) for a in agents]
