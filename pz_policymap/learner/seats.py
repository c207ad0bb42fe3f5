"""The seats that a learner can hold: exactly one per episode, all with the same spaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import assignments
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.policies.action_masks import space_without_mask

Spaces = tuple[spaces.Space[Any], spaces.Space[Any]]

_BLOCKS = 256  # number of blocks searched for seats of the learner


class LearnerSeats:
    """The agents that a learner can control in an environment.

    Args:
        env: A PettingZoo environment.
        agents: The agents that the learner can control, at least one.

    Attributes:
        spaces: The observation space, without the action mask, and the action space that all of them share.

    Raises:
        ValueError: As `common_spaces`.
    """

    def __init__(self, env: Any, agents: Sequence[Any]) -> None:
        self._env = env
        self._agents = list(agents)
        self.spaces = common_spaces(env, self._agents)

    def include(self, agents: Iterable[Any]) -> None:
        """Adds agents, or raises a ValueError if one of them has other spaces; nothing has changed then."""
        new = [agent for agent in agents if agent not in self._agents]
        if new:
            common_spaces(self._env, [*self._agents, *new])
            self._agents += new


def possible_seats(mapping: PolicyMapping, assigner: PolicyAssigner, learner: int) -> list[Any]:
    """Returns the agents that the learner controls in the first blocks, in seat order.

    A pinned assigner will produce exactly these blocks; otherwise they are a sample. Weights callables are called once.

    Args:
        mapping: The rule.
        assigner: The assigner that follows it.
        learner: The policy id of the learner.

    Raises:
        TypeError, ValueError: If the mapping fails, or if the learner does not control exactly one agent in a block.

    Example:
        >>> from pz_policymap import Fixed, Focal, PolicyAssigner, Uniform
        >>> mapping = Focal(Fixed(0), Uniform([1, 2, 3]), rotate=False)
        >>> possible_seats(mapping, PolicyAssigner(mapping, ["a", "b", "c"]), learner=0)
        ['a']
    """
    agents, every = assigner.agents, assigner.cadence.resample_every
    seed = assigner.seed if assigner.pinned and assigner.seed is not None else 0
    policy_ids = assignments(
        mapping,
        agents,
        seed=seed,
        env_index=assigner.env_index,
        episode=np.arange(_BLOCKS) * every,
        resample_every=every,
    )
    holds = policy_ids == learner
    for row in np.flatnonzero(holds.sum(axis=1) != 1)[:1]:
        agent_of(learner, dict(zip(agents, policy_ids[row].tolist(), strict=True)))
    return [agents[seat] for seat in np.flatnonzero(holds.any(axis=0))]


def agent_of(learner: int, assignment: Mapping[Any, int]) -> Any:
    """Returns the agent that the learner controls.

    Args:
        learner: The policy id of the learner.
        assignment: Agent -> policy id.

    Raises:
        ValueError: If the learner controls no agent or several.
    """
    held = [agent for agent, policy in assignment.items() if policy == learner]
    if len(held) != 1:
        raise ValueError(
            f"learner must control exactly one seat, and policy {learner} controls {len(held)} in {dict(assignment)}: "
            f"use a mapping such as Focal(Fixed({learner}), opponents)"
        )
    return held[0]


def common_spaces(env: Any, agents: Sequence[Any]) -> Spaces:
    """Returns the observation space, without the action mask, and the action space that these agents share.

    Args:
        env: A PettingZoo environment.
        agents: At least one.

    Raises:
        ValueError: If their spaces differ, or if the environment does not know them yet.
    """
    first = _spaces_of(env, agents[0])
    for agent in agents[1:]:
        own = _spaces_of(env, agent)
        if own != first:
            raise ValueError(
                f"learner must have equal spaces in all seats that it can hold: agent {agents[0]!r} has observations "
                f"{first[0]} and actions {first[1]}, agent {agent!r} has observations {own[0]} and actions {own[1]}"
            )
    return first


def _spaces_of(env: Any, agent: Any) -> Spaces:
    try:
        found = env.observation_space(agent), env.action_space(agent)
    except Exception as error:
        raise _unknown(agent, f"{type(error).__name__}: {error}") from error
    for space in found:
        if not isinstance(space, spaces.Space):
            raise _unknown(agent, repr(space))
    return space_without_mask(found[0]), found[1]


def _unknown(agent: Any, got: str) -> ValueError:
    return ValueError(
        f"env must know the spaces of agent {agent!r}, got {got}; reset it before it is handed to LearnerEnv if it "
        f"knows them only then"
    )
