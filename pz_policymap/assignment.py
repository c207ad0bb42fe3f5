"""What a draw decides: pure functions from a rule and the numbers of the draw to who plays whom."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping, WeightsFunction
from pz_policymap.mappings.checked import checked_assign, named_error
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.philox import IntArray, Source

PolicyIds = NDArray[np.int32]

_CHUNK = 16384  # environments drawn at a time, so that the temporaries of a mapping stay in cache


class Drawn(NamedTuple):
    """The assignments in force.

    Attributes:
        agents: The seats, late agents at the end.
        policy_ids: The policy of every seat, read-only, shape `(num_envs, num_seats)`.
        rule: The mapping that the latest draw followed; its fingerprint, where it was made in a run before this one.
        bound: The same with numbers in place of weights callables.
        weights: Those numbers, in the order in which the callables were asked.
    """

    agents: tuple[Any, ...]
    policy_ids: PolicyIds
    rule: PolicyMapping | str
    bound: PolicyMapping
    weights: list[Any]

    @property
    def name(self) -> str:
        """The fingerprint of the mapping that the latest draw followed."""
        return self.rule if isinstance(self.rule, str) else self.rule.fingerprint


class Numbers(NamedTuple):
    """What is the same in every draw of an assigner, beside the mapping."""

    source: Source
    cadence: Cadence
    env_index: int

    def draw(self, rows: IntArray, episode: IntArray, agents: tuple[Any, ...]) -> Draw:
        """Returns what a mapping may look at for these rows at these episodes."""
        return Draw(self.source, agents, rows + self.env_index, episode, self.cadence)


def redrawn(
    before: Drawn,
    rule: PolicyMapping,
    numbers: Numbers,
    rows: IntArray | slice,
    episode: IntArray,
    agents: tuple[Any, ...],
) -> Drawn:
    """Returns what is in force once these rows (a slice: all of them) have drawn at these episodes, for these seats."""
    weights: list[Any] = []

    def ask(function: WeightsFunction) -> Any:
        weights.append(np.asarray(function()).tolist())
        return weights[-1]

    num_envs = len(before.policy_ids)
    if isinstance(rows, slice) or before.agents != agents:  # other agents: a single environment, which draws
        policy_ids = np.empty((num_envs, len(agents)), np.int32)
    else:
        policy_ids = before.policy_ids.copy()
    bound = rule
    for start in range(0, len(episode), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(episode)))
        chosen = np.arange(part.start, part.stop) if isinstance(rows, slice) else rows[part]
        draw = numbers.draw(chosen, episode[part], agents)
        if start == 0:
            try:
                bound = rule.bind(ask)
            except Exception as error:
                raise named_error(error, rule, draw) from error
        policy_ids[part if isinstance(rows, slice) else chosen] = checked_assign(bound, draw)
    return Drawn(agents, read_only(policy_ids), rule, bound, weights)


def joined(drawn: Drawn, numbers: Numbers, draw_episode: IntArray, agents: Sequence[Hashable]) -> Drawn:
    """Returns what is in force once these agents have come to a single environment; those it knows change nothing.

    The rule is asked for the longer seat list at the episode of the draw, and only the new seats are taken.
    """
    late = [agent for agent in dict.fromkeys(agents) if agent not in drawn.agents]
    if not late:
        return drawn
    if len(drawn.policy_ids) > 1:
        raise ValueError(f"agents must be the same in all environments, got {late}, not among {list(drawn.agents)}")
    if drawn.bound.needs_all_seats:
        raise ValueError(f"{drawn.name} must know all seats, and agents {late} are not among {list(drawn.agents)}")
    longer = (*drawn.agents, *late)
    drawn.bound.check(longer)
    draw = numbers.draw(np.zeros(1, np.int64), draw_episode, longer)
    policies = checked_assign(drawn.bound, draw)[:, len(drawn.agents) :]
    policy_ids = np.concatenate([drawn.policy_ids, policies], axis=1, dtype=np.int32)
    return drawn._replace(agents=longer, policy_ids=read_only(policy_ids))


def read_only(policy_ids: PolicyIds) -> PolicyIds:
    """Returns the array, which nobody can write to from here on."""
    policy_ids.flags.writeable = False
    return policy_ids
