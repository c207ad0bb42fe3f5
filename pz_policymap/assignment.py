"""Pure functions from a mapping and the numbers of a draw to the policies of all seats.

One exception: `joined` adds seats to the `Drawn` that it is given, because copying them would make joining slow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pz_policymap.arguments import distinct_agents, in_order, seed_of
from pz_policymap.cadence import RESAMPLE_EVERY, Cadence
from pz_policymap.mappings.base import PolicyIds, PolicyMapping, WeightsFunction, checked_assign, named_error
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.mappings.population import possible_policies
from pz_policymap.mappings.representation import saved_text
from pz_policymap.mappings.weighted import Answer
from pz_policymap.randomness.draw import Draw, counters
from pz_policymap.randomness.philox import IntArray, Source

_CHUNK = 16384  # environments drawn at a time, so that the temporaries of a mapping stay in cache


class Drawn(NamedTuple):
    """The assignments in force.

    Attributes:
        seats: The seat of every agent; late agents are added at the end.
        policy_ids: The policy of every seat, read-only, shape `(num_envs, num_seats)`.
        rule: The mapping of the latest draw; its text if the draw was made before a restart.
        bound: The mapping that late agents follow, with numbers in place of weights callables.
        weights: Those numbers, in the order of the calls; none where agents cannot join.
        ahead: `policy_ids` and the policies of seats that are still free, shape `(num_envs, >= num_seats)`.
    """

    seats: dict[Any, int]
    policy_ids: PolicyIds
    rule: PolicyMapping | str
    bound: PolicyMapping
    weights: list[Any]
    ahead: PolicyIds

    @property
    def agents(self) -> tuple[Any, ...]:
        """The agents in seat order."""
        return tuple(self.seats)

    @property
    def name(self) -> str:
        """The text of the mapping of the latest draw."""
        return self.rule if isinstance(self.rule, str) else saved_text(self.rule)


def as_drawn(
    agents: Iterable[Hashable],
    policy_ids: PolicyIds,
    rule: PolicyMapping | str,
    bound: PolicyMapping,
    weights: list[Any],
) -> Drawn:
    """Returns assignments without policies drawn ahead; makes `policy_ids` read-only."""
    seats = {agent: seat for seat, agent in enumerate(agents)}
    return Drawn(seats, read_only(policy_ids), rule, bound, weights, policy_ids)


class Numbers(NamedTuple):
    """The numbers that all draws of an assigner share."""

    source: Source
    cadence: Cadence
    env_index: int

    def draw(self, rows: IntArray, episode: IntArray, agents: tuple[Any, ...]) -> Draw:
        """Returns the draw of these rows at these episodes."""
        return Draw(self.source, agents, rows + self.env_index if self.env_index else rows, episode, self.cadence)


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
        resample_every = 1 if rule.counts_blocks else RESAMPLE_EVERY
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
    bound, answers = draw_policies(rule, numbers, envs, episode, agents, policy_ids, rows)
    if num_envs > 1 or rule.needs_all_seats:  # agents cannot join
        return as_drawn(agents, policy_ids, rule, rule, [])
    weights = [answer.kept(whole=not rule.is_own) for answer in answers]
    if any(answer.ndim > 1 for answer in answers):
        bound = with_weights(rule, weights)
    return as_drawn(agents, policy_ids, rule, bound, weights)


def draw_policies(
    rule: PolicyMapping,
    numbers: Numbers,
    envs: IntArray,
    episode: IntArray,
    agents: tuple[Any, ...],
    out: PolicyIds,
    rows: IntArray | slice,
) -> tuple[PolicyMapping, list[Answer]]:
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
        The mapping with the answers of weights callables in their place, and the answers in the order of the calls.
    """
    answers: list[Answer] = []

    def ask(function: WeightsFunction) -> Answer:
        answers.append(Answer.of(function))
        return answers[-1]

    if not len(episode):
        return rule, answers
    draw = numbers.draw(envs, episode, agents)
    try:
        bound = rule.bind(ask)
    except Exception as error:
        raise named_error(error, rule, draw) from error
    if len(episode) <= _CHUNK:
        out[rows] = checked_assign(bound, draw)
        return bound, answers
    for start in range(0, len(episode), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part if isinstance(rows, slice) else rows[part]] = checked_assign(bound, draw.only(part))
    return bound, answers


def with_weights(rule: PolicyMapping, weights: Iterable[Any]) -> PolicyMapping:
    """Returns the mapping with these numbers in place of its weights callables, in the order of the calls."""
    answers = iter(weights)
    return rule.bind(lambda _: next(answers))


def joined(drawn: Drawn, numbers: Numbers, draw_episode: IntArray, agents: Sequence[Hashable]) -> Drawn:
    """Returns the assignments after these agents have joined a single environment; known agents change nothing.

    The mapping is called with the longer seat list at the episode of the draw, and only the new seats are used. Late
    agents are added to `drawn.seats` in place, so `drawn` must not be used afterwards; if it raises, nothing changes.
    """
    if all(map(drawn.seats.__contains__, agents)):
        return drawn
    late = [agent for agent in dict.fromkeys(agents) if agent not in drawn.seats]
    if len(drawn.policy_ids) > 1:
        raise ValueError(f"agents must be the same in all environments, got {late}, not among {list(drawn.seats)}")
    if drawn.bound.needs_all_seats:
        raise ValueError(f"{drawn.name} needs to know all seats, but agents {late} joined mid-episode")
    num_seats = len(drawn.seats) + len(late)
    ahead = drawn.ahead
    if num_seats > ahead.shape[1]:
        ahead = _drawn_ahead(drawn, numbers, draw_episode, late)
    for agent in late:  # nothing fails from here on
        drawn.seats[agent] = len(drawn.seats)
    return drawn._replace(policy_ids=read_only(ahead[:, :num_seats]), ahead=ahead)


def _drawn_ahead(drawn: Drawn, numbers: Numbers, draw_episode: IntArray, late: list[Hashable]) -> PolicyIds:
    """Returns the policies of all seats and of these late agents.

    If names do not matter, it returns those of as many free seats, so that many agents cost the same when they join one
    by one as when they join together.
    """
    agents = (*drawn.seats, *late)
    drawn.bound.check(agents)
    if not drawn.bound.reads_agents:
        with suppress(TypeError, ValueError):  # there may be no policies for more seats
            drawn.bound.check(agents * 2)
            agents *= 2
    draw = numbers.draw(np.zeros(1, np.int64), draw_episode, agents)
    policy_ids = np.array(checked_assign(drawn.bound, draw), np.int32)
    policy_ids[:, : len(drawn.seats)] = drawn.policy_ids
    return policy_ids


def in_use(drawn: Drawn, current: PolicyMapping) -> set[int]:
    """Returns the policies of all seats, and those that late agents may get if the current mapping is a new one."""
    used = set(np.unique(drawn.policy_ids).tolist()) - {-1}
    may_join = used and len(drawn.policy_ids) == 1 and not drawn.bound.needs_all_seats
    return used | possible_policies(drawn.bound) if may_join and drawn.bound is not current else used


def read_only(policy_ids: PolicyIds) -> PolicyIds:
    """Makes the array read-only and returns it."""
    policy_ids.flags.writeable = False
    return policy_ids
