"""The games of a tournament: each is a function of the seed, the names in seat order and the repetition."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pz_policymap.assignment import assignments
from pz_policymap.evaluation.episode_loop import EpisodeLoop, Outcome, PlayError
from pz_policymap.learner.global_generators import IsolatedRandomness
from pz_policymap.mappings.round_robin import RoundRobin
from pz_policymap.policies.entrant import loaded
from pz_policymap.policies.seat_policies import SeatPolicies


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
    """What a game ended with.

    Attributes:
        game: The game.
        returns: Agent -> return.
        lengths: Agent -> number of steps.
        forfeit: The entrant whose policy failed, which loses; None: none did.
        reason: The error that it failed with.
    """

    game: Game
    returns: dict[Any, float]
    lengths: dict[Any, int]
    forfeit: str | None = None
    reason: str = ""


def _hashed(*parts: Any) -> int:
    """Returns 64 bits that depend on nothing but the values."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


def games_per_cycle(num_entrants: int, num_seats: int, self_matches: bool) -> int:
    """Returns the number of games in which every matchup is played once, in every seating."""
    return RoundRobin(num_entrants, self_matches=self_matches).num_matchups(num_seats)


def scheduled(names: Sequence[str], agents: Sequence[Any], seed: int, count: int, self_matches: bool) -> list[Game]:
    """Returns the first games of a tournament, in an order that is random within every cycle.

    Args:
        names: The entrants; their order does not matter.
        agents: The agents in seat order.
        seed: Seeds the order.
        count: Number of games.
        self_matches: Whether an entrant may have several seats.

    Example:
        >>> games = scheduled(["b", "a"], ["x", "y"], seed=0, count=4, self_matches=False)
        >>> sorted(games)[:2]
        [Game(names=('a', 'b'), repetition=0), Game(names=('a', 'b'), repetition=1)]
    """
    ordered = sorted(names)
    rule = RoundRobin(len(ordered), order="seeded", self_matches=self_matches)
    cycle = rule.num_matchups(len(agents))
    rows = assignments(rule, agents, seed=seed, episode=list(range(count)), resample_every=1).tolist()
    return [Game(tuple(ordered[i] for i in row), game // cycle) for game, row in enumerate(rows)]


class GamePlayer:
    """Plays games in one environment; each process has its own.

    Args:
        make_env: Makes the environment.
        entrants: Name -> policy or `Entrant`.
        seed: The seed of the tournament.
        agents: The agents in seat order.
        forfeits: Whether an entrant whose policy fails loses the game, instead of ending the tournament.
    """

    def __init__(
        self, make_env: Callable[[], Any], entrants: Mapping[str, Any], seed: int, agents: Sequence[Any], forfeits: bool
    ) -> None:
        self._make_env, self._seed, self._agents, self._forfeits = make_env, seed, agents, forfeits
        self._policies: dict[Any, Any] = {name: loaded(policy) for name, policy in entrants.items()}
        self._env: Any = None
        self._begin()

    def _begin(self) -> None:
        self._env = self._make_env()
        self._loop = EpisodeLoop(self._env, SeatPolicies(self._policies, self._env.action_space), repr)

    def play(self, game: Game) -> FinishedGame:
        """Plays a game.

        Raises:
            PlayError: If it fails; names the game, the entrant, the agent and the line.
        """
        policy_seed = game.policy_seed(self._seed)
        assignment = dict(zip(self._agents, game.names, strict=True))
        try:
            with IsolatedRandomness(policy_seed >> 32).in_place():
                outcome = self._loop.play(game.reset_seed(self._seed), policy_seed, assignment)
            self._check(outcome)
        except PlayError as error:
            failure = error.within(str(game))
            if not self._forfeits or error.policy is None:
                raise failure from error.__cause__
            self.close()
            self._begin()  # an environment that has raised an error may be in any state
            returns, lengths = dict.fromkeys(self._agents, 0.0), dict.fromkeys(self._agents, 0)
            return FinishedGame(game, returns, lengths, error.policy, str(failure))
        return FinishedGame(game, outcome.returns, outcome.lengths)

    def _check(self, outcome: Outcome) -> None:
        if not outcome.complete:
            raise PlayError("it is over, but some agents have neither terminated nor been truncated")

    def close(self) -> None:
        """Closes the environment; warns if that fails, since the games are worth more."""
        try:
            self._env.close()
        except Exception as error:  # noqa: BLE001  # whatever the environment raises
            warnings.warn(f"the environment cannot be closed: {error!r}", stacklevel=2)
