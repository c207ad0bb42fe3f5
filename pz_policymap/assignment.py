"""What a draw decides: pure functions from a rule and the numbers of the draw to who plays whom."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import in_order, seed_of
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping, WeightsFunction, checked_assign, named_error
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.mappings.representation import saved_text
from pz_policymap.randomness.draw import Draw, counters
from pz_policymap.randomness.philox import IntArray, Source

PolicyIds = NDArray[np.int32]

_CHUNK = 16384  # environments drawn at a time, so that the temporaries of a mapping stay in cache


class Drawn(NamedTuple):
    """The assignments in force.

    Attributes:
        agents: The seats, late agents at the end.
        policy_ids: The policy of every seat, read-only, shape `(num_envs, num_seats)`.
        rule: The mapping that the latest draw followed; its text if the draw was made before a restart.
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
        """The text of the mapping that the latest draw followed."""
        return self.rule if isinstance(self.rule, str) else saved_text(self.rule)


class Numbers(NamedTuple):
    """What is the same in every draw of an assigner, beside the mapping."""

    source: Source
    cadence: Cadence
    env_index: int

    def draw(self, rows: IntArray, episode: IntArray, agents: tuple[Any, ...]) -> Draw:
        """Returns what a mapping may look at for these rows at these episodes."""
        return Draw(self.source, agents, rows + self.env_index, episode, self.cadence)


def assignments(
    mapping: MappingLike,
    agents: Sequence[Hashable],
    *,
    seed: int | Sequence[int],
    env_index: ArrayLike = 0,
    episode: ArrayLike = 0,
    resample_every: int = 10,
    warmup_episodes: int = 0,
) -> PolicyIds:
    """Returns the policies that control the agents of any environments in any episodes, without an environment.

    A pure function: it equals what `wrap`, `env_fns`, `PolicyMapVector`, the RLlib adapter and a tournament assign.

    Args:
        mapping: As in `wrap`.
        agents: The agents of one environment in seat order.
        seed: The pinned seed, or the one passed to `reset(seed=...)`. A non-negative int or several.
        env_index: Environment indices, integers >= 0; broadcast with `episode`.
        episode: Episode numbers, integers >= 0; broadcast with `env_index`.
        resample_every: Number of episodes between resamples, >= 1.
        warmup_episodes: Number of first episodes that each resample, >= 0.

    Returns:
        Policy ids, shape `(*broadcast, num_seats)`, dtype int32.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or if the mapping cannot serve these agents.

    Example:
        >>> from pz_policymap import Uniform, assignments
        >>> assignments(Uniform(4), ["red", "blue"], seed=0, env_index=[0, 1], episode=[[0], [10]]).tolist()
        [[[0, 2], [0, 0]], [[3, 2], [2, 2]]]
    """
    rule, seats, cadence = as_mapping(mapping), in_order("agents", agents), Cadence(resample_every, warmup_episodes)
    rule.check(seats)
    envs, episodes = np.broadcast_arrays(counters("env_index", env_index), counters("episode", episode))
    if rule.num_envs is not None and envs.size and envs.max() >= rule.num_envs:
        raise ValueError(f"env_index must be below num_envs={rule.num_envs} of {rule!r}, got {envs.max()}")
    numbers = Numbers(Source(seed_of("seed", seed)), cadence, 0)
    drawn_at = cadence.draw_episode(episodes.ravel())
    policy_ids = np.empty((envs.size, len(seats)), np.int32)
    draw_policies(rule, numbers, envs.ravel(), drawn_at, seats, policy_ids, slice(None))
    return policy_ids.reshape(*envs.shape, len(seats))


def redrawn(
    before: Drawn,
    rule: PolicyMapping,
    numbers: Numbers,
    rows: IntArray | slice,
    episode: IntArray,
    agents: tuple[Any, ...],
) -> Drawn:
    """Returns what is in force once these rows (a slice: all of them) have drawn at these episodes, for these seats."""
    num_envs = len(before.policy_ids)
    if isinstance(rows, slice) or before.agents != agents:  # other agents: a single environment, which draws
        policy_ids = np.empty((num_envs, len(agents)), np.int32)
    else:
        policy_ids = before.policy_ids.copy()
    envs = np.arange(num_envs) if isinstance(rows, slice) else rows
    bound, weights = draw_policies(rule, numbers, envs, episode, agents, policy_ids, rows)
    return Drawn(agents, read_only(policy_ids), rule, bound, weights)


def draw_policies(
    rule: PolicyMapping,
    numbers: Numbers,
    envs: IntArray,
    episode: IntArray,
    agents: tuple[Any, ...],
    out: PolicyIds,
    rows: IntArray | slice,
) -> tuple[PolicyMapping, list[Any]]:
    """Draws the policies of some environments into rows of `out`, in chunks that stay in cache.

    Args:
        rule: The mapping.
        numbers: Seed, cadence and first environment index.
        envs: Environments that draw, counted from the first, shape `(n,)`.
        episode: Episodes at which they draw, shape `(n,)`.
        agents: The seats.
        out: Written to, shape `(num_rows, num_seats)`.
        rows: The row of `out` of each environment; a slice: rows in order.

    Returns:
        The mapping with numbers in place of weights callables, and those numbers in the order of the calls.
    """
    weights: list[Any] = []

    def ask(function: WeightsFunction) -> Any:
        weights.append(np.asarray(function()).tolist())
        return weights[-1]

    bound = rule
    for start in range(0, len(episode), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(episode)))
        draw = numbers.draw(envs[part], episode[part], agents)
        if start == 0:
            try:
                bound = rule.bind(ask)
            except Exception as error:
                raise named_error(error, rule, draw) from error
        out[part if isinstance(rows, slice) else rows[part]] = checked_assign(bound, draw)
    return bound, weights


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
