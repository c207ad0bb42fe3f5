"""The games of a tournament: each is a function of the plan and its number, whoever plays it, and whenever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName
from pz_policymap.cli.errors import CommandError
from pz_policymap.evaluation.play import Player, env_seed_of
from pz_policymap.evaluation.policies import policies_named


@dataclass(frozen=True)
class Plan:
    """What tells one tournament from another; it can be sent to another process.

    Args:
        env: The environment.
        policies: A name for each policy.
        seed: Of the order of games, of environments, and of random policies.
        agents: The agents in seat order.
        teams: Whether agents whose names differ only in the number at the end win and lose together.
        self_matches: Whether a policy may play several seats.
    """

    env: EnvName
    policies: tuple[str, ...]
    seed: int
    agents: tuple[str, ...]
    teams: bool
    self_matches: bool

    @property
    def mapping(self) -> pm.RoundRobin:
        """Who plays whom in game 0, 1, ...; the order is random, so that the first games are a fair sample."""
        return pm.RoundRobin(len(self.policies), order="seeded", self_matches=self.self_matches)

    @property
    def games_per_cycle(self) -> int:
        """How many games there are until every matchup has been played once."""
        return self.mapping.num_matchups(len(self.agents))

    def matchups(self, games: Sequence[int]) -> list[list[int]]:
        """Returns the policies of each game in seat order.

        Example:
            >>> plan = Plan(EnvName("any"), ("a", "b", "c"), 0, ("x", "y"), teams=False, self_matches=False)
            >>> sorted(plan.matchups(range(6)))
            [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
        """
        draw = pm.Draw.at(self.seed, self.agents, [0] * len(games), games, resample_every=1)
        policies: list[list[int]] = self.mapping.assign(draw).tolist()
        return policies

    def description(self) -> dict[str, Any]:
        """Returns all of it in plain types, by the names that the command line has."""
        return {
            "ENV": self.env.name,
            "--api": self.env.api,
            "--set": {name: repr(value) for name, value in self.env.settings.items()},
            "--policies": list(self.policies),
            "--seed": self.seed,
            "--teams": self.teams,
            "--self-matches": self.self_matches,
            "agents": list(self.agents),
        }


class Match:
    """One environment with its policies, that plays games of a plan.

    Args:
        plan: The plan.

    Raises:
        UsageError, CommandError: If the environment or a policy cannot be made.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ended: list[pm.Episode] = []
        bare = plan.env()
        tagged = pm.wrap(bare, len(plan.policies), seed=plan.seed)
        self._env = pm.record_results(tagged, self._ended.append)
        self._player = Player(self._env, policies_named(plan.policies))

    def play(self, game: int) -> pm.Episode:
        """Plays a game.

        Raises:
            CommandError: If environment or policies raise an error.
        """
        plan, self._ended[:] = self._plan, []
        matchup = dict(zip(plan.agents, plan.matchups([game])[0], strict=True))
        self._player.play(plan.seed, game, env_seed=env_seed_of(plan.seed, game), matchup=matchup)
        if not self._ended:
            raise CommandError(f"game {game} ended, but not for all of its agents, so that nobody knows who won")
        return self._ended[0]

    def close(self) -> None:
        """Closes the environment.

        Raises:
            CommandError: If that fails.
        """
        self._plan.env.close(self._env)
