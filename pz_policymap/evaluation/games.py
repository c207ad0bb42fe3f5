"""The games of a tournament: each is a function of the seed, the names in seat order and the repetition."""

from __future__ import annotations

import hashlib
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.assignment import assignments
from pz_policymap.evaluation.episode_loop import EpisodeLoop, Outcome, PlayError, error_text
from pz_policymap.learner.global_generators import IsolatedRandomness
from pz_policymap.mappings.round_robin import RoundRobin
from pz_policymap.policies.entrant import Entrant
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.results.episode import MAX_RETURN

_CHUNK = 1000  # games whose matchups are computed at once


class Game(NamedTuple):
    """One game of a tournament.

    Attributes:
        names: The entrants in seat order.
        repetition: How often these entrants have met in these seats before.
    """

    names: tuple[str, ...]
    repetition: int

    def __str__(self) -> str:
        return f"game {self.repetition} of {' - '.join(self.names)}"

    def reset_seed(self, seed: int) -> int:
        """Returns the seed of the environment: the same whichever seats the entrants have."""
        return _hashed(seed, sorted(self.names), self.repetition) >> 33  # some environments take at most 31 bits

    def policy_seed(self, seed: int) -> int:
        """Returns the seed of the policies."""
        return _hashed(seed, list(self.names), self.repetition)


class FinishedGame(NamedTuple):
    """The outcome of a game.

    Attributes:
        game: The game.
        returns: The return of each seat; NaN for an agent that was never there.
        lengths: The number of steps of each seat.
        moves: A checksum of all actions.
        forfeit: The entrant whose policy failed, which loses; None: none did.
        reason: The error that it failed with.
    """

    game: Game
    returns: Sequence[float]
    lengths: Sequence[int]
    moves: int = 0
    forfeit: str | None = None
    reason: str = ""


def _hashed(*parts: Any) -> int:
    """Returns 64 bits that depend only on the values."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


class Schedule:
    """The games of a tournament by number, in an order that is random within every cycle; none is held.

    Args:
        names: The entrants; their order does not matter.
        agents: The agents in seat order.
        seed: Seeds the order.
        self_matches: Whether an entrant may have several seats.

    Example:
        >>> schedule = Schedule(["b", "a"], ["x", "y"], seed=0, self_matches=False)
        >>> schedule.per_cycle, sorted(schedule.games(np.arange(4)))[:2]
        (2, [Game(names=('a', 'b'), repetition=0), Game(names=('a', 'b'), repetition=1)])
    """

    def __init__(self, names: Sequence[str], agents: Sequence[Any], seed: int, self_matches: bool) -> None:
        self._names, self._agents, self._seed = sorted(names), agents, seed
        self._rule = RoundRobin(len(names), order="seeded", self_matches=self_matches)
        self.per_cycle = self._rule.num_matchups(len(agents))  # every matchup once, in every seating

    def games(self, numbers: NDArray[np.int64]) -> Iterator[Game]:
        """Yields the games with these numbers, each >= 0; shape `(num_games,)`."""
        for start in range(0, len(numbers), _CHUNK):
            chunk = numbers[start : start + _CHUNK].tolist()
            rows = assignments(self._rule, self._agents, seed=self._seed, episode=chunk, resample_every=1)
            for number, row in zip(chunk, rows.tolist(), strict=True):
                yield Game(tuple(self._names[entrant] for entrant in row), number // self.per_cycle)


class GamePlayer:
    """Plays games in one environment; each process has its own. An `Entrant` is loaded when it first plays.

    Args:
        make_env: Makes the environment.
        entrants: Name -> policy or `Entrant`.
        seed: The seed of the tournament.
        agents: The agents in seat order.
        forfeits: Whether an entrant whose policy fails loses the game, instead of ending the tournament.

    Raises:
        TypeError: If an entrant is not a policy.
    """

    def __init__(
        self, make_env: Callable[[], Any], entrants: Mapping[str, Any], seed: int, agents: Sequence[Any], forfeits: bool
    ) -> None:
        self._make_env, self._seed, self._agents, self._forfeits = make_env, seed, agents, forfeits
        self._unloaded = {name: policy for name, policy in entrants.items() if isinstance(policy, Entrant)}
        self._policies: dict[Any, Any] = {**entrants, **dict.fromkeys(self._unloaded)}
        self._begin()

    def _begin(self) -> None:
        self._env = self._make_env()
        self._loop = EpisodeLoop(self._env, SeatPolicies(self._policies, self._env.action_space), repr)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Restores the global generators of Python, NumPy and torch after some games, which seed them."""
        with IsolatedRandomness(0).in_place():
            yield

    def play(self, game: Game) -> FinishedGame:
        """Plays a game, inside a `session`.

        Raises:
            PlayError: If it fails; names the game, the entrant, the agent and the line.
        """
        policy_seed = game.policy_seed(self._seed)
        assignment = dict(zip(self._agents, game.names, strict=True))
        for name in self._unloaded.keys() & assignment.values():
            self._load(name)
        try:
            _seed_global_generators(policy_seed >> 32)
            outcome = self._loop.play(game.reset_seed(self._seed), policy_seed, assignment)
            self._check(outcome)
        except PlayError as error:
            failure = error.within(str(game))
            if not self._forfeits or error.policy is None:
                raise failure from error.__cause__
            self.close()
            self._begin()  # an environment that has raised an error may be in any state
            nothing = [0] * len(self._agents)
            return FinishedGame(game, [float(zero) for zero in nothing], nothing, 0, error.policy, str(failure))
        returns, lengths = outcome.returns, outcome.lengths
        return FinishedGame(
            game,
            [returns.get(agent, math.nan) for agent in self._agents],
            [lengths.get(agent, 0) for agent in self._agents],
            outcome.moves,
        )

    def _load(self, name: str) -> None:
        entrant = self._unloaded[name]
        try:
            self._policies[name] = entrant.load()
        except (Exception, SystemExit) as error:
            raise PlayError(f"entrant {name!r}, {entrant!r}, cannot be loaded: {error_text(error)}") from error
        del self._unloaded[name]

    def _check(self, outcome: Outcome) -> None:
        if not outcome.complete:
            raise PlayError("it is over, but some agents have neither terminated nor been truncated")
        for agent, value in outcome.returns.items():
            if not abs(value) <= MAX_RETURN:
                raise PlayError(f"the return of agent {agent!r} must be from -1e300 to 1e300, got {value}")

    def close(self) -> None:
        """Closes the environment; warns if that fails, since the games are worth more."""
        try:
            self._env.close()
        except Exception as error:  # noqa: BLE001  # whatever the environment raises
            warnings.warn(f"the environment cannot be closed: {error!r}", stacklevel=2)


def _seed_global_generators(seed: int) -> None:
    """Seeds the global generators of Python, NumPy and torch (CPU), for policies that can only draw from these."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # on purpose
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)
