"""Which seats a learner can hold: one in every episode, and wherever it sits, it must see and do the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.checked import checked_assign, named_error
from pz_policymap.policies.action_masks import space_without_mask
from pz_policymap.randomness.draw import Draw

Spaces = tuple[spaces.Space[Any], spaces.Space[Any]]

_BLOCKS = 256  # that are drawn to see where the learner sits


def possible_seats(mapping: PolicyMapping, assigner: PolicyAssigner, learner: int) -> list[Any]:
    """Returns the agents that the learner plays in the first blocks, in seat order.

    Where the assigner is pinned these are the blocks that will be played, and else others like them. Weights that are
    a callable are asked once.

    Args:
        mapping: The rule.
        assigner: Who will follow it.
        learner: The policy.

    Raises:
        TypeError, ValueError: If the mapping fails, or if a block has not exactly one seat for the learner.

    Example:
        >>> from pz_policymap import Fixed, Focal, PolicyAssigner, Uniform
        >>> mapping = Focal(Fixed(0), Uniform([1, 2, 3]), rotate=False)
        >>> possible_seats(mapping, PolicyAssigner(mapping, ["a", "b", "c"]), learner=0)
        ['a']
    """
    agents, every = assigner.agents, assigner.cadence.resample_every
    seed = assigner.seed if assigner.pinned and assigner.seed is not None else 0
    draw = Draw.at(seed, agents, [assigner.env_index] * _BLOCKS, np.arange(_BLOCKS) * every, every)
    mapping.check(agents)
    try:
        bound = mapping.bind(lambda weights: weights())
    except Exception as error:
        raise named_error(error, mapping, draw) from error
    players = checked_assign(bound, draw)
    holds = players == learner
    for row in np.flatnonzero(holds.sum(axis=1) != 1)[:1]:
        the_one(dict(zip(agents, players[row].tolist(), strict=True)), learner)
    return [agents[seat] for seat in np.flatnonzero(holds.any(axis=0))]


def the_one(players: Mapping[Any, int], learner: int) -> Any:
    """Returns the agent that the learner plays, or raises a ValueError if it plays none or several.

    Args:
        players: Who plays whom in an episode, agent to policy.
        learner: The policy.
    """
    seats = [agent for agent, policy in players.items() if policy == learner]
    if len(seats) != 1:
        raise ValueError(
            f"learner must play exactly one seat, and policy {learner} plays {len(seats)} in {dict(players)}: "
            f"Focal(Fixed({learner}), opponents) as the mapping seats it once"
        )
    return seats[0]


def common_spaces(env: Any, agents: Sequence[Any]) -> Spaces:
    """Returns what these agents observe, but for the action mask, and what they can do.

    Args:
        env: A PettingZoo environment.
        agents: At least one.

    Raises:
        ValueError: If they differ in it.
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
    return space_without_mask(env.observation_space(agent)), env.action_space(agent)
