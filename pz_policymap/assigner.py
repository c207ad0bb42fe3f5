"""`PolicyAssigner`: the current assignment of n environments; the one thing that changes.

Everything here works on arrays over environments, a single environment being n = 1.
This file is long because it also checks loaded states.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, equal, in_order, integer, seed_of, unsigned
from pz_policymap.assignment import Drawn, Numbers, PolicyIds, joined, read_only, redrawn
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.mappings.representation import saved_text
from pz_policymap.randomness.philox import Seed, Source

STATE_VERSION = 1
_NEVER = 2**63 - 1
_LAST = 2**62  # counters end here, so that no sum of two overflows


class PolicyAssigner:
    """Counts the episodes of `num_envs` environments and holds the assignment that each of them plays.

    The wrappers drive one of these. A simulator that is no Gymnasium environment drives it with `begin_episodes`,
    whenever some of its environments have been reset:

        policies = assigner.begin_episodes()               # all have been reset; one row of policies an environment
        while True:
            over = simulator.step(act(observations, policies))
            if over.any():
                policies = assigner.begin_episodes(over)   # a mask of those that have just been reset

    Args:
        mapping: The rule: a `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
        agents: The agents of one environment in seat order; None where they are not known before an episode begins
            (then `num_envs` is 1 and `begin_episodes` is told).
        num_envs: How many environments there are, all with the same agents.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself.
        seed: Pins the assignments: a non-negative int or several. None: the seed comes with `begin_episodes`, or from
            the operating system when the first episode begins.
        env_index: The index of the first environment, from 0; row i is environment `env_index + i`. None: 0, unless
            the mapping needs to know.

    Attributes:
        seed: The seed in use, or None before the first episode of an assigner that was given none.
        pinned: Whether the seed is fixed for good.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, if the mapping needs an `env_index` or a `seed` and has none, or if it
            cannot serve these agents.

    Example:
        >>> from pz_policymap import PolicyAssigner, Uniform
        >>> assigner = PolicyAssigner(Uniform(4), agents=["red", "blue"], num_envs=3, resample_every=2, seed=0)
        >>> assigner.begin_episodes().tolist()
        [[0, 2], [0, 0], [3, 3]]
        >>> assigner.begin_episodes([1, 2]).tolist()  # two environments begin their second episode: nothing is drawn
        [[0, 2], [0, 0], [3, 3]]
        >>> assigner.begin_episodes([2]).tolist()  # the third begins its third
        [[0, 2], [0, 0], [0, 2]]
    """

    def __init__(
        self,
        mapping: MappingLike,
        agents: Sequence[Hashable] | None,
        num_envs: int = 1,
        *,
        resample_every: int = 10,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
    ) -> None:
        self.cadence = Cadence(resample_every, warmup_episodes)
        self.num_envs = integer("num_envs", num_envs, 1, 2**31)
        self.pinned = seed is not None
        self._source = None if seed is None else Source(seed_of("seed", seed))
        self._given_env_index = None if env_index is None else integer("env_index", env_index, 0, _LAST)
        self._fixed_agents = None if agents is None else _distinct_agents(agents)
        if agents is None and self.num_envs > 1:
            raise ValueError(f"agents must be given for num_envs={self.num_envs} environments, got None")
        self._mapping = self._checked(as_mapping(mapping))
        self._episode = np.full(self.num_envs, -1, np.int64)
        self._draw_episode = np.full(self.num_envs, -1, np.int64)
        self._redraw_from: NDArray[np.int64] | None = None  # the episode at which a draw was asked for; _NEVER: none
        seats = self._fixed_agents or ()
        nobody = read_only(np.full((self.num_envs, len(seats)), -1, np.int32))
        self._drawn = Drawn(seats, nobody, self._mapping, self._mapping, [])
        self._unfinished: Callable[[], ArrayLike] | None = None
        self._stale: NDArray[np.bool_] | None = None  # whose running episode is not the one of the state just loaded

    @property
    def mapping(self) -> PolicyMapping:
        """The rule that the next draw follows."""
        return self._mapping

    @property
    def agents(self) -> tuple[Any, ...]:
        """The agents in seat order; where they are not known beforehand, those seen in the current block."""
        return self._drawn.agents

    @property
    def seed(self) -> Seed | None:
        """The seed in use, or None before the first episode of an assigner that was given none."""
        return None if self._source is None else self._source.seed

    @property
    def env_index(self) -> int:
        """The index of the first environment."""
        return self._given_env_index or 0

    @property
    def episode(self) -> NDArray[np.int64]:
        """The episode that each environment plays, shape `(num_envs,)`; -1 before its first."""
        return np.array(self._episode)

    @property
    def block(self) -> NDArray[np.int64]:
        """The block that this episode belongs to, shape `(num_envs,)`; -1 before the first episode."""
        return np.where(self._episode < 0, -1, self.cadence.block(self._episode))

    @property
    def draw_episode(self) -> NDArray[np.int64]:
        """The episode at which the assignment in force was drawn, shape `(num_envs,)`; -1 before the first draw."""
        return np.array(self._draw_episode)

    @property
    def policy_ids(self) -> PolicyIds:
        """The policy of every seat, read-only, shape `(num_envs, num_seats)`; -1 before the first draw.

        The array is replaced at a draw and never written to, so it may be kept.
        """
        return self._drawn.policy_ids

    def assignment(self, row: int = 0) -> dict[Any, int]:
        """Returns the assignment of one environment, agent to policy; empty before its first draw.

        Raises:
            TypeError: If `row` is no integer.
            ValueError: If it is out of range.
        """
        integer("row", row, 0, self.num_envs - 1)
        if self._draw_episode[row] < 0:
            return {}
        return dict(zip(self._drawn.agents, self._drawn.policy_ids[row].tolist(), strict=True))

    def begin_episodes(
        self,
        rows: ArrayLike | None = None,
        *,
        seed: int | Sequence[int] | None = None,
        agents: Sequence[Hashable] | None = None,
    ) -> PolicyIds:
        """Begins the next episode of some environments and draws where a draw is due.

        Call it whenever an environment has been reset. If it raises, no episode has begun and nothing has changed.

        Args:
            rows: Which environments: their numbers from 0, or a boolean mask of shape `(num_envs,)`. None: all.
            seed: Starts all of them again at episode 0 with this seed; left to the environment where the assigner
                is pinned. Needs `rows=None`.
            agents: The agents that are there, in seat order, where the assigner was not told at construction. At a draw
                they are the seats; between draws, those not seen yet come late.

        Returns:
            `policy_ids` after it.

        Raises:
            TypeError: If `rows` or `seed` is not of the kind above, or if the mapping returns what is no integer.
            ValueError: If an argument is out of range, or if the mapping fails: its error is named after mapping,
                environment and episode.
        """
        source = self._source
        restart = seed is not None and not self.pinned
        if restart:
            if rows is not None:
                raise ValueError("seed starts all environments again, so it cannot come with rows")
            source = Source(seed_of("seed", seed))
        elif source is None:
            source = Source(secrets.randbits(128))
        index = slice(None) if rows is None else self._rows(rows)
        begun = np.zeros_like(self._episode) if restart else self._episode[index] + 1
        due = self.cadence.due(begun) if restart else self._due(index, begun)
        drawing, episode = index, begun
        if np.count_nonzero(due) < len(due):
            drawing = np.flatnonzero(due) if isinstance(index, slice) else index[due]
            episode = begun[due]

        drawn = self._drawn
        numbers = Numbers(source, self.cadence, self.env_index)
        if len(episode):
            seats = self._fixed_agents or self._seats_among(agents)
            drawn = redrawn(drawn, self._mapping, numbers, drawing, episode, seats)
        if agents is not None:
            drawn = joined(drawn, numbers, episode if len(episode) else self._draw_episode, agents)
        self._source, self._drawn = source, drawn  # nothing fails from here on
        self._draw_episode[drawing] = episode
        if restart:
            self._redraw_from = None
        elif self._redraw_from is not None:
            self._redraw_from[drawing] = _NEVER
        if self._stale is not None:
            self._stale[index] = False
        if isinstance(index, slice):
            self._episode = begun
        else:
            self._episode[index] = begun
        return drawn.policy_ids

    def add_agents(self, agents: Sequence[Hashable]) -> None:
        """Gives agents that came late, in a single environment, the policies that they play until the next draw.

        The mapping is asked for the longer seat list, at the episode and with the weights of the draw, and only the
        new agents' policies are taken, so nobody else changes. Agents that have a policy keep it.

        Raises:
            ValueError: If there is more than one environment, if no draw has been made, or if the mapping must know
                all seats.
        """
        agents = in_order("agents", agents)
        if self._source is None:
            raise ValueError(f"no episode has begun, so agents {list(agents)} cannot have come late")
        numbers = Numbers(self._source, self.cadence, self.env_index)
        self._drawn = joined(self._drawn, numbers, self._draw_episode, agents)

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another rule from the next draw on; the assignment in force stays.

        Args:
            mapping: As in the constructor.
            now: Whether every environment draws when its next episode begins, whatever the cadence.

        Raises:
            TypeError, ValueError: As the constructor does; the old mapping stays then.
        """
        self._mapping = self._checked(as_mapping(mapping))
        if now:
            self._redraw_from = self._episode + 1

    def watch(self, unfinished: Callable[[], ArrayLike]) -> None:
        """Lets `state_dict` ask which environments are in the middle of an episode; the wrappers do this.

        Args:
            unfinished: Returns a bool, or a boolean array of shape `(num_envs,)`. It is left out of copies.
        """
        self._unfinished = unfinished

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_unfinished": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        read_only(self._drawn.policy_ids)  # which NumPy forgets in a copy

    def state_dict(self, unfinished: ArrayLike | None = None) -> dict[str, Any]:
        """Returns all that must survive a restart: plain types for one environment, arrays for many.

        Args:
            unfinished: Which environments are in the middle of an episode that is to be played again: a bool, or a
                boolean array of shape `(num_envs,)`. None: the wrapper tells; without one, none is.
        """
        if unfinished is None:
            unfinished = False if self._unfinished is None else self._unfinished()
            if self._stale is not None:
                unfinished = np.asarray(unfinished, np.bool_) & ~self._stale
        over = self._episode - np.broadcast_to(np.asarray(unfinished, np.bool_), self._episode.shape)
        redraw = np.full_like(over, _NEVER) if self._redraw_from is None else self._redraw_from
        drawn = self._drawn

        def plain(values: NDArray[Any]) -> Any:
            return values[0].tolist() if self.num_envs == 1 else values.copy()

        return {
            **self._identity(),
            "seed": self.seed,
            "episode": plain(over),
            "redraw": plain(np.where(redraw == _NEVER, -1, redraw)),
            "draw": {
                "episode": plain(self._draw_episode),
                "agents": list(drawn.agents),
                "policies": plain(drawn.policy_ids),
                "weights": list(drawn.weights),
                "mapping": drawn.name,
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was saved: the next episode plays what it would have played; the seed is pinned.

        An unfinished episode is played again as it was drawn, a forced matchup not included. Where `set_mapping` had
        come after the draw in force, agents that come late in its block follow the new mapping.

        Args:
            state: What `state_dict` returned, in this process or another.

        Raises:
            TypeError: If `state` is no dict.
            ValueError: If it is of another version, or of an assigner with another mapping, cadence, seed, env index,
                number of environments or agents, or damaged; nothing has changed then.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a dict, got {type(state).__name__}")
        for name, mine in self._identity().items():
            theirs = _entry(state, name)
            if not equal(theirs, mine):
                raise ValueError(f"state does not fit: it has {name}={theirs!r}, this assigner {mine!r}")
        seed = _entry(state, "seed")
        try:
            source = None if seed is None else Source(seed_of("seed", seed))
        except (TypeError, ValueError) as error:
            raise ValueError(f"state does not fit: {error}") from error
        if self.pinned and (source is None or source.seed != self.seed):
            raise ValueError(f"state does not fit: it has seed={seed!r}, this assigner {self.seed!r}")
        draw = _entry(state, "draw")
        agents = tuple(_list(draw, "agents"))
        if self._fixed_agents is not None and agents[: len(self._fixed_agents)] != self._fixed_agents:
            raise ValueError(
                f"state does not fit: it has agents {list(agents)}, this assigner {list(self._fixed_agents)}"
            )
        rows = (self.num_envs,)
        episode = _numbers(state, "episode", rows)
        redraw = _numbers(state, "redraw", rows)
        draw_episode = _numbers(draw, "episode", rows)
        policy_ids = _numbers(draw, "policies", (self.num_envs, len(agents)), MAX_INDEX).astype(np.int32)
        rule = self._mapping
        weights = _list(draw, "weights")
        drawn_by = _entry(draw, "mapping")
        if not isinstance(drawn_by, str):
            raise ValueError(f"state does not fit: 'mapping' of the draw is {drawn_by!r}, expected a text")
        played = draw_episode >= 0
        if ((policy_ids >= 0) != played[:, None]).any() or (draw_episode > episode + 1).any():
            raise ValueError("state does not fit: 'policies' and 'episode' of its draw contradict each other")
        if source is None and played.any():
            raise ValueError("state does not fit: it has seed=None, and a draw that was made from one")
        same_rule = drawn_by == saved_text(rule)
        bound = rule  # of an older rule the name alone is known; nobody but a late agent could tell
        if same_rule and played.any():
            # Of many environments some may play what an older mapping drew, but not all: the latest draw was another.
            highest = policy_ids[played].max(axis=1).min()
            if rule.num_policies is not None and highest >= rule.num_policies:
                raise ValueError(f"state does not fit: 'policies' must be below {rule.num_policies}, got {highest}")
            said = iter(weights)
            try:
                bound = rule.bind(lambda _: next(said))
            except Exception as error:
                raise ValueError(f"state does not fit: {rule!r} does not accept its weights: {error!r}") from error
        self._source, self.pinned = source, source is not None
        self._episode, self._draw_episode = episode, draw_episode
        self._redraw_from = np.where(redraw < 0, _NEVER, redraw) if (redraw >= 0).any() else None
        self._stale = np.ones(self.num_envs, np.bool_)
        self._drawn = Drawn(agents, read_only(policy_ids), drawn_by, bound, weights)

    def _identity(self) -> dict[str, Any]:
        """What a state must have in common with the assigner that loads it."""
        return {
            "version": STATE_VERSION,
            "mapping": saved_text(self._mapping),
            "resample_every": self.cadence.resample_every,
            "warmup_episodes": self.cadence.warmup_episodes,
            "num_envs": self.num_envs,
            "env_index": self.env_index,
            "agents": None if self._fixed_agents is None else list(self._fixed_agents),
        }

    def _checked(self, mapping: PolicyMapping) -> PolicyMapping:
        """Returns the mapping, or raises where this assigner cannot follow it."""
        name = saved_text(mapping)
        if mapping.needs_env_index and self._given_env_index is None and self.num_envs == 1:
            raise ValueError(
                f"env_index must say which environment this is, for {name} depends on it; "
                f"env_fns and PolicyMapVector tell it by themselves"
            )
        if mapping.needs_seed and not self.pinned:
            raise ValueError(f"seed must be given, for {name} spans environments that share it")
        if mapping.counts_blocks and self.cadence.warmup_episodes:
            raise ValueError(
                f"warmup_episodes must be 0 for {name}, whose blocks are a schedule, got {self.cadence.warmup_episodes}"
            )
        if mapping.needs_focal:
            raise ValueError(f"weights must be a vector outside of the background of Focal, got a matrix in {name}")
        end = self.env_index + self.num_envs
        if mapping.num_envs is not None and end > mapping.num_envs:
            raise ValueError(f"env_index must be below num_envs={mapping.num_envs} of {name}, got {end - 1}")
        if self._fixed_agents is not None:
            mapping.check(self._fixed_agents)
        return mapping

    def _due(self, index: NDArray[np.intp] | slice, begun: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of these environments draw at the episodes that they go on to."""
        due = self.cadence.due(begun)
        if self._stale is not None:  # an unfinished episode that is played again keeps its draw
            due &= self._draw_episode[index] != begun
        if self._redraw_from is not None:
            due |= begun >= self._redraw_from[index]
        return due

    def _rows(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Returns the numbers of the rows meant, or raises."""
        index = np.asarray(rows)
        if index.dtype == np.bool_:
            if index.shape != (self.num_envs,):
                raise ValueError(f"rows must be a mask of shape ({self.num_envs},), got {index.shape}")
            return np.flatnonzero(index)
        if index.size == 0:
            return np.empty(0, np.intp)
        if index.dtype.kind not in "iu" or index.ndim != 1:
            raise TypeError(f"rows must be integers or a boolean mask, got {rows!r}")
        if unsigned(index).max() >= self.num_envs:  # a negative number is a huge one
            raise ValueError(f"rows must be from 0 to {self.num_envs - 1}, got {rows!r}")
        if not (index[1:] > index[:-1]).all() and len(np.unique(index)) < len(index):
            raise ValueError(f"rows must be distinct, got {rows!r}")
        return index.astype(np.intp, copy=False)

    def _seats_among(self, agents: Sequence[Hashable] | None) -> tuple[Hashable, ...]:
        """Returns the seats of a draw where the agents are not known before an episode begins."""
        if agents is None:
            raise ValueError("agents must be given at every episode, for they were not at construction")
        seats = _distinct_agents(agents)
        if self._mapping.needs_all_seats:
            raise ValueError(f"{self._mapping!r} must know all seats, but the environment has no possible_agents")
        self._mapping.check(seats)
        return seats


def _distinct_agents(agents: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Returns the agents as seats, or raises where they cannot be told apart."""
    seats = in_order("agents", agents)
    for agent in seats:
        if not isinstance(agent, Hashable):
            raise TypeError(f"agents must be hashable, got {agent!r}")
    if not seats:
        raise ValueError("agents must hold at least one agent, got none")
    if len(set(seats)) != len(seats):
        raise ValueError(f"agents must be distinct, got {list(seats)}")
    return seats


def _entry(state: Any, name: str) -> Any:
    """Returns one entry of a state that may come from anywhere."""
    if not isinstance(state, Mapping) or name not in state:
        raise ValueError(f"state does not fit: it has no {name!r}")
    return state[name]


def _list(state: Any, name: str) -> list[Any]:
    """Returns one entry as a fresh list."""
    value = _entry(state, name)
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"state does not fit: {name!r} is {value!r}, expected a list")
    return list(value)


def _numbers(state: Any, name: str, shape: tuple[int, ...], last: int = _LAST) -> NDArray[np.int64]:
    """Returns one entry as a fresh array of that shape, a single environment's without its first axis."""
    value = _entry(state, name)
    try:
        array = np.array(value).reshape(shape)
    except ValueError as error:
        raise ValueError(f"state does not fit: {name!r} is {value!r}, expected shape {shape}") from error
    if array.size and (array.dtype.kind not in "iu" or array.min() < -1 or array.max() > last):
        raise ValueError(f"state does not fit: {name!r} must be integers from -1 to {last}, got {value!r}")
    return array.astype(np.int64)
