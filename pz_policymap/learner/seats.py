"""The seats that a learner can hold: one per episode, all with the same spaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import assignments
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.policies.action_masks import space_without_mask
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.randomness.draw import Draw

Spaces = tuple[spaces.Space[Any], spaces.Space[Any]]

_BLOCKS = 256  # number of blocks searched for seats of the learner


class LearnerSeats:
    """The agents that a learner can control in an environment.

    Args:
        env: A PettingZoo environment.
        assigner: Its assigner.
        learner: The policy id of the learner.
        policies: The policies of the other seats.

    Attributes:
        spaces: The observation space, without the action mask, and the action space that all of them share.

    Raises:
        TypeError, ValueError: As `possible_seats` and `common_spaces`.
    """

    def __init__(self, env: Any, assigner: PolicyAssigner, learner: int, policies: SeatPolicies) -> None:
        self._env, self._assigner, self._learner, self._policies = env, assigner, learner, policies
        self._agents = list[Any]()
        self.follow(assigner.mapping)
        self.spaces = common_spaces(env, self._agents)

    def follow(self, mapping: PolicyMapping) -> None:
        """Adds the agents that the learner can control under a mapping; errors as in the constructor."""
        several = self._policies.holds(self._learner)
        self.include(possible_seats(mapping, self._assigner, self._learner, several))

    def include(self, agents: Iterable[Any]) -> None:
        """Adds agents, or raises a ValueError if one of them has other spaces; nothing has changed then."""
        new = [agent for agent in agents if agent not in self._agents]
        if new:
            common_spaces(self._env, [*self._agents, *new])
            self._agents += new


def possible_seats(mapping: PolicyMapping, assigner: PolicyAssigner, learner: int, several: bool = False) -> list[Any]:
    """Returns the agents that the learner controls in the first blocks, in seat order.

    A pinned assigner will produce exactly these blocks; otherwise they are a sample. Weights callables are called once.

    Args:
        mapping: The rule.
        assigner: The assigner that follows it.
        learner: The policy id of the learner.
        several: As in `seats_of`.

    Raises:
        TypeError, ValueError: If the mapping fails, or as `seats_of` in a block.

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
    for count in set(holds.sum(axis=1).tolist()):
        row = policy_ids[holds.sum(axis=1) == count][0]
        seats_of(learner, dict(zip(agents, row.tolist(), strict=True)), several)
    return [agents[seat] for seat in np.flatnonzero(holds.any(axis=0))]


def seats_of(learner: int, assignment: Mapping[Any, int], several: bool) -> list[Any]:
    """Returns the agents that the learner's policy id controls.

    Args:
        learner: The policy id of the learner.
        assignment: Agent -> policy id.
        several: Whether it may control several, because a policy is given for all but one.

    Raises:
        ValueError: If it controls none, or several although it may not.
    """
    held = [agent for agent, policy in assignment.items() if policy == learner]
    if not held or (len(held) > 1 and not several):
        raise ValueError(
            f"learner must control exactly one seat, and policy {learner} controls {len(held)} in {dict(assignment)}: "
            f"use a mapping such as Focal(Fixed({learner}), opponents), or give policies[{learner}] for the other seats"
        )
    return held


def seat_to_learn_in(held: Sequence[Any], assigner: PolicyAssigner) -> Any:
    """Returns one of several agents, drawn uniformly from the seed, the environment and the episode of the assigner.

    Example:
        >>> from pz_policymap import PolicyAssigner
        >>> assigner, seats = PolicyAssigner(1, ["a", "b"], seed=0), []
        >>> for _ in range(5):
        ...     _ = assigner.begin_episodes()
        ...     seats.append(seat_to_learn_in(["a", "b"], assigner))
        >>> seats
        ['a', 'a', 'a', 'a', 'b']
    """
    if len(held) == 1 or assigner.seed is None:
        return held[0]
    draw = Draw.at(assigner.seed, ["learner"], [assigner.env_index], assigner.episode)
    return held[int(draw.child("learner").uniform()[0, 0] * len(held))]


def common_spaces(env: Any, agents: Sequence[Any]) -> Spaces:
    """Returns the observation space, without the action mask, and the action space that these agents share.

    Args:
        env: A PettingZoo environment.
        agents: At least one.

    Raises:
        ValueError: If their spaces differ, or if the environment does not define them yet.
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
        f"env must define the spaces of agent {agent!r}, got {got}; reset it before passing it to LearnerEnv if it "
        f"defines them at reset"
    )
