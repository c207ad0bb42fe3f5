"""`PolicyAssigner`: episode counters and the current assignment of `num_envs` environments."""

from __future__ import annotations

import reprlib
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import distinct_agents, in_order, integer, row_numbers, seed_of
from pz_policymap.assigner_state import LAST, NEVER, AssignerState, checked_state, saved_state, settings_of
from pz_policymap.assignment import (
    Numbers,
    as_drawn,
    cadence_of,
    check_mapping,
    check_needs,
    in_use,
    joined,
    read_only,
    redrawn,
    seats_among,
)
from pz_policymap.mappings.base import PolicyIds, PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.randomness.philox import Seed, Source


class PolicyAssigner:
    """Counts the episodes of `num_envs` environments and holds their current assignments.

    Each wrapper drives one assigner. A simulator without the Gymnasium API calls `begin_episodes` whenever some of its
    environments have been reset:

        policies = assigner.begin_episodes()               # all environments; one row of policies per environment
        while True:
            done = simulator.step(act(observations, policies))
            if done.any():
                policies = assigner.begin_episodes(done)   # a mask of the environments that have just been reset

    Args:
        mapping: A `PolicyMapping`, its text form, a function (see `FromFunction`), or the size of a population.
        agents: The agents of one environment in seat order. None if they are unknown before an episode begins: then
            `num_envs` is 1 and `begin_episodes` takes them.
        num_envs: Number of environments, all with the same agents.
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        seed: Pins the assignments: a non-negative int or several. None: the seed is passed to `begin_episodes`, or
            taken from OS entropy when the first episode begins.
        env_index: Index of the first environment, >= 0; row i is environment `env_index + i`. None: 0, unless the
            mapping spans environments.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, if the mapping needs an `env_index` or a `seed` and has none, or if it
            cannot serve these agents.

    Example:
        >>> from pz_policymap import PolicyAssigner, Uniform
        >>> assigner = PolicyAssigner(Uniform(4), agents=["red", "blue"], num_envs=3, resample_every=2, seed=0)
        >>> assigner.begin_episodes().tolist()
        [[0, 2], [0, 0], [3, 3]]
        >>> _ = assigner.begin_episodes([1, 2])  # two environments begin their second episode: no draw
        >>> assigner.begin_episodes([2]).tolist()  # the third begins its third episode
        [[0, 2], [0, 0], [0, 2]]
    """

    def __init__(
        self,
        mapping: MappingLike,
        agents: Sequence[Hashable] | None,
        num_envs: int = 1,
        *,
        resample_every: int | None = None,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
    ) -> None:
        rule = as_mapping(mapping)
        self.cadence = cadence_of(rule, resample_every, warmup_episodes)
        self.num_envs = integer("num_envs", num_envs, 1, 2**31)
        self.pinned = seed is not None
        self._source = None if seed is None else Source(seed_of("seed", seed))
        self._given_env_index = None if env_index is None else integer("env_index", env_index, 0, LAST)
        self._fixed_agents = None if agents is None else distinct_agents("agents", agents)
        if agents is None and self.num_envs > 1:
            raise ValueError(f"agents must be given for num_envs={self.num_envs} environments, got None")
        self._mapping = self._checked(rule)
        self._episode, self._draw_episode = np.full((2, self.num_envs), -1, np.int64)
        self._redraw_from: NDArray[np.int64] | None = None  # the episode at which `set_mapping` requested a draw
        self._repeats: NDArray[np.bool_] | None = None  # no episode begun since a state was loaded
        undrawn = np.full((self.num_envs, len(self._fixed_agents or ())), -1, np.int32)
        self._drawn = as_drawn(self._fixed_agents or (), undrawn, self._mapping, self._mapping, [])

    def __repr__(self) -> str:
        agents = reprlib.repr(list(self.agents))  # the first six
        settings = f"num_envs={self.num_envs}, resample_every={self.cadence.resample_every}, seed={self.seed}"
        return f"PolicyAssigner({self._mapping!r}, agents={agents}, {settings})"

    @property
    def mapping(self) -> PolicyMapping:
        """The mapping of the next draw."""
        return self._mapping

    @property
    def agents(self) -> tuple[Any, ...]:
        """The agents in seat order; if they are unknown at construction, those of the current block."""
        return self._drawn.agents

    @property
    def seed(self) -> Seed | None:
        """The seed in use, or None before the first episode if none was given."""
        return None if self._source is None else self._source.seed

    @property
    def env_index(self) -> int:
        """The index of the first environment."""
        return self._given_env_index or 0

    @property
    def episode(self) -> NDArray[np.int64]:
        """The current episode of each environment, shape `(num_envs,)`; -1 before the first."""
        return np.array(self._episode)

    @property
    def block(self) -> NDArray[np.int64]:
        """The block of the current episode, shape `(num_envs,)`; -1 before the first episode."""
        return np.where(self._episode < 0, -1, self.cadence.block(self._episode))

    @property
    def draw_episode(self) -> NDArray[np.int64]:
        """The episode at which the current assignment was drawn, shape `(num_envs,)`; -1 before the first draw."""
        return np.array(self._draw_episode)

    @property
    def policy_ids(self) -> PolicyIds:
        """The policy of every seat, read-only, shape `(num_envs, num_seats)`; -1 before the first draw.

        A draw replaces the array and never writes to it, so it may be kept.
        """
        return self._drawn.policy_ids

    @property
    def policies_in_use(self) -> set[int]:
        """The policies of the draw in force; after `set_mapping` also those that late agents may still get."""
        return in_use(self._drawn, self._mapping)

    def assignment(self, row: int = 0, agents: Iterable[Hashable] | None = None) -> dict[Any, int]:
        """Returns the assignment of one environment, agent to policy; empty before its first draw.

        Args:
            row: Row of the environment, >= 0.
            agents: The agents to include. None: all.

        Raises:
            TypeError, ValueError, KeyError: If `row` is not a row, or if an agent has no seat.
        """
        if type(row) is not int or not 0 <= row < self.num_envs:
            row = integer("row", row, 0, self.num_envs - 1)
        if self._draw_episode[row] < 0:
            return {}
        seats, policies = self._drawn.seats, self._drawn.policy_ids[row]
        if agents is None:
            return dict(zip(seats, policies.tolist(), strict=True))
        return {agent: int(policies[seats[agent]]) for agent in agents}

    def begin_episodes(
        self,
        rows: ArrayLike | None = None,
        *,
        seed: int | Sequence[int] | None = None,
        agents: Sequence[Hashable] | None = None,
    ) -> PolicyIds:
        """Begins the next episode of some environments, draws for those that resample, and returns `policy_ids`.

        Call it whenever environments have been reset. If it raises, no episode has begun and nothing has changed.

        Args:
            rows: The environments: their row numbers, >= 0, or a boolean mask of shape `(num_envs,)`. None: all.
            seed: Restarts the assignment schedule of all environments at episode 0 with this seed. Ignored if the
                assigner is pinned. Needs `rows=None`.
            agents: The live agents in seat order; required if they were unknown at construction: a draw then takes
                them as seats. Otherwise, and between draws, those without a seat join mid-episode.

        Raises:
            TypeError, ValueError: If an argument has the wrong type or is out of range, or if the mapping fails: the
                error then names mapping, environment and episode.
        """
        source = self._source
        restart = seed is not None and not self.pinned
        if restart:
            if rows is not None:
                raise ValueError(f"rows must be None with a seed, which restarts all environments, got {rows!r}")
            source = Source(seed_of("seed", seed))
        elif source is None:
            source = Source(secrets.randbits(128))
        index = slice(None) if rows is None else row_numbers("rows", rows, self.num_envs)
        begun = np.zeros_like(self._episode) if restart else self._episode[index] + 1
        drawing, episode = index, begun
        if not restart and (self.cadence.resample_every > 1 or self._repeats is not None):  # otherwise all draw
            due = self._due(index, begun)
            if np.count_nonzero(due) < len(due):
                drawing = np.flatnonzero(due) if isinstance(index, slice) else index[due]
                episode = begun[due]
        drawn, numbers = self._drawn, Numbers(source, self.cadence, self.env_index)
        if len(episode):
            seats = self._fixed_agents or seats_among(agents, self._mapping)
            drawn = redrawn(drawn, self._mapping, numbers, drawing, episode, seats)
        if agents is not None:
            drawn = joined(drawn, numbers, episode if len(episode) else self._draw_episode, agents)
        self._source, self._drawn = source, drawn  # nothing fails from here on
        self._draw_episode[drawing] = episode
        if self._redraw_from is not None:
            self._redraw_from[drawing] = NEVER
        if self._repeats is not None:
            self._repeats[index] = False
        self._episode[index] = begun
        return drawn.policy_ids

    def add_agents(self, agents: Sequence[Hashable]) -> None:
        """Adds agents that join mid-episode in a single environment; they keep their policies until the next draw.

        The mapping assigns policies to the longer seat list, at the episode and with the weights of the draw. All other
        agents keep their policies.

        Raises:
            ValueError: If there are several environments, if no draw has been made, or if the mapping needs all seats.
        """
        agents = in_order("agents", agents)
        if self._source is None:
            raise ValueError(f"agents cannot join before the first episode, got {list(agents)}")
        numbers = Numbers(self._source, self.cadence, self.env_index)
        self._drawn = joined(self._drawn, numbers, self._draw_episode, agents)

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Replaces the mapping, from the next draw on; the current assignment stays.

        Args:
            mapping: As in the constructor.
            now: Whether every environment resamples at its next episode.
        """
        self._mapping = self._checked(as_mapping(mapping))
        if now:
            self._redraw_from = self._episode + 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        read_only(self._drawn.policy_ids)  # NumPy drops this flag in copies

    def state_dict(self, unfinished: ArrayLike = False) -> dict[str, Any]:
        """Returns the state to save in a checkpoint: plain types for one environment, arrays for several.

        Args:
            unfinished: Whether each environment is mid-episode, so that a resumed run repeats that episode: a bool, or
                bools of shape `(num_envs,)`. Ignored for environments without an episode since a state was loaded.
        """
        midway = np.asarray(unfinished, np.bool_) & (True if self._repeats is None else ~self._repeats)
        episode = self._episode - np.broadcast_to(midway, self._episode.shape)
        redraw_from = np.full_like(episode, NEVER) if self._redraw_from is None else self._redraw_from
        state = AssignerState(self._source, episode, self._draw_episode, redraw_from, self._drawn)
        return saved_state(state, self._settings())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes a saved state and pins its seed: the next episode gets the assignment it would have had.

        An unfinished episode is repeated with its draw, but without a forced matchup. If `set_mapping` was called after
        that draw, agents that join mid-episode follow the new mapping.

        Args:
            state: A state from `state_dict`, of this or of another process.

        Raises:
            TypeError, ValueError: If `state` is damaged or does not fit this assigner. Nothing has changed then.
        """
        new = checked_state(state, self._settings(), self._mapping, self.seed if self.pinned else None)
        self._source, self.pinned = new.source, new.source is not None
        self._episode, self._draw_episode, self._drawn = new.episode, new.draw_episode, new.drawn
        self._redraw_from = new.redraw_from if (new.redraw_from != NEVER).any() else None
        self._repeats = np.ones(self.num_envs, np.bool_)

    def _settings(self) -> dict[str, Any]:
        return settings_of(self._mapping, self.cadence, self.num_envs, self.env_index, self._fixed_agents)

    def _checked(self, rule: PolicyMapping) -> PolicyMapping:
        """Returns the mapping, or raises an error if this assigner cannot use it."""
        check_needs(rule, self._given_env_index is not None or self.num_envs > 1, self.pinned)
        check_mapping(rule, self.cadence, self.env_index + self.num_envs, self._fixed_agents)
        return rule

    def _due(self, index: NDArray[np.intp] | slice, begun: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of these environments draw at the episodes that they begin."""
        due = self.cadence.due(begun)
        if self._repeats is not None:  # an unfinished episode is repeated with its draw
            due &= self._draw_episode[index] != begun
        if self._redraw_from is not None:
            due |= begun >= self._redraw_from[index]
        return due
