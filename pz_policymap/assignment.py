"""Pure functions from a mapping and the numbers of a draw to the policies of all seats."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import distinct_agents, in_order, seed_of
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
        rule: The mapping of the latest draw; its text if the draw was made before a restart.
        bound: The same mapping with numbers in place of weights callables.
        weights: Those numbers, in the order of the calls.
    """

    agents: tuple[Any, ...]
    policy_ids: PolicyIds
    rule: PolicyMapping | str
    bound: PolicyMapping
    weights: list[Any]

    @property
    def name(self) -> str:
        """The text of the mapping of the latest draw."""
        return self.rule if isinstance(self.rule, str) else saved_text(self.rule)


class Numbers(NamedTuple):
    """The numbers that all draws of an assigner share."""

    source: Source
    cadence: Cadence
    env_index: int

    def draw(self, rows: IntArray, episode: IntArray, agents: tuple[Any, ...]) -> Draw:
        """Returns the draw of these rows at these episodes."""
        return Draw(self.source, agents, rows + self.env_index, episode, self.cadence)


def assignments(
    mapping: MappingLike,
    agents: Sequence[Hashable],
    *,
    seed: int | Sequence[int],
    env_index: ArrayLike = 0,
    episode: ArrayLike = 0,
    resample_every: int | None = None,
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
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
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
    rule, seats = as_mapping(mapping), in_order("agents", agents)
    cadence = cadence_of(rule, resample_every, warmup_episodes)
    envs, episodes = np.broadcast_arrays(counters("env_index", env_index), counters("episode", episode))
    check_mapping(rule, cadence, int(envs.max(initial=-1)) + 1, seats)
    numbers = Numbers(Source(seed_of("seed", seed)), cadence, 0)
    drawn_at = cadence.draw_episode(episodes.ravel())
    policy_ids = np.empty((envs.size, len(seats)), np.int32)
    draw_policies(rule, numbers, envs.ravel(), drawn_at, seats, policy_ids, slice(None))
    return policy_ids.reshape(*envs.shape, len(seats))


def check_mapping(rule: PolicyMapping, cadence: Cadence, end: int, agents: tuple[Hashable, ...] | None) -> None:
    """Raises an error if the mapping cannot serve these agents (if known) in environments with indices below `end`."""
    if rule.counts_blocks and cadence.warmup_episodes:
        raise ValueError(
            f"warmup_episodes must be 0 for {rule!r}, whose blocks are a schedule, got {cadence.warmup_episodes}"
        )
    if rule.needs_focal:
        raise ValueError(f"weights must be a vector outside of the background of Focal, got a matrix in {rule!r}")
    if rule.num_envs is not None and end > rule.num_envs:
        raise ValueError(f"env_index must be below num_envs={rule.num_envs} of {rule!r}, got {end - 1}")
    if agents is not None:
        rule.check(agents)


def cadence_of(rule: PolicyMapping, resample_every: int | None, warmup_episodes: int) -> Cadence:
    """Returns the cadence; without a number, a mapping whose blocks are a schedule resamples in every episode."""
    if resample_every is None:
        resample_every = 1 if rule.counts_blocks else 10
    return Cadence(resample_every, warmup_episodes)


def check_needs(rule: PolicyMapping, has_env_index: bool, has_seed: bool) -> None:
    """Raises an error if the mapping spans environments, but this one has no index or no pinned seed."""
    if rule.needs_env_index and not has_env_index:
        raise ValueError(
            f"env_index must be the index of this environment for {rule!r}, which spans environments, got None; "
            f"env_fns and PolicyMapVector provide it"
        )
    if rule.needs_seed and not has_seed:
        raise ValueError(f"seed must be given for {rule!r}, whose environments share it, got None")


def seats_among(agents: Sequence[Hashable] | None, rule: PolicyMapping) -> tuple[Hashable, ...]:
    """Returns the seats of a draw if the agents were unknown at construction, or raises an error."""
    if agents is None:
        raise ValueError("agents must be given in every episode if they were not at construction, got None")
    seats = distinct_agents("agents", agents)
    if rule.needs_all_seats:
        raise ValueError(f"{rule!r} needs to know all seats, but the environment has no possible_agents")
    rule.check(seats)
    return seats


def redrawn(
    before: Drawn,
    rule: PolicyMapping,
    numbers: Numbers,
    rows: IntArray | slice,
    episode: IntArray,
    agents: tuple[Any, ...],
) -> Drawn:
    """Returns the assignments after these rows (a slice: all of them) have drawn at these episodes, for these seats."""
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
    """Returns the assignments after these agents have joined a single environment; known agents change nothing.

    The mapping is called with the longer seat list at the episode of the draw, and only the new seats are used.
    """
    late = [agent for agent in dict.fromkeys(agents) if agent not in drawn.agents]
    if not late:
        return drawn
    if len(drawn.policy_ids) > 1:
        raise ValueError(f"agents must be the same in all environments, got {late}, not among {list(drawn.agents)}")
    if drawn.bound.needs_all_seats:
        raise ValueError(f"{drawn.name} needs to know all seats, but agents {late} joined mid-episode")
    longer = (*drawn.agents, *late)
    drawn.bound.check(longer)
    draw = numbers.draw(np.zeros(1, np.int64), draw_episode, longer)
    policies = checked_assign(drawn.bound, draw)[:, len(drawn.agents) :]
    policy_ids = np.concatenate([drawn.policy_ids, policies], axis=1, dtype=np.int32)
    return drawn._replace(agents=longer, policy_ids=read_only(policy_ids))


def read_only(policy_ids: PolicyIds) -> PolicyIds:
    """Makes the array read-only and returns it."""
    policy_ids.flags.writeable = False
    return policy_ids
