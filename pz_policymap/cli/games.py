"""The games of a tournament: each is a function of the plan and its number, whoever plays it, and whenever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName
from pz_policymap.cli.errors import CommandError, UsageError, told
from pz_policymap.cli.play import Player, env_seed_of
from pz_policymap.cli.policies import policies_named
from pz_policymap.mappings.groups import seats_by_group

STATE_VERSION = 1


@dataclass(frozen=True)
class Plan:
    """What tells one tournament from another; it can be sent to another process.

    Args:
        env: The environment.
        policies: A name for each policy.
        seed: Of the order of games, of environments, and of random policies.
        agents: The agents in seat order.
        teams: Whether agents of one name win and lose together.
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
        self._env = pm.RecordResults(tagged, self._ended.append)
        self._player = Player(self._env, policies_named(plan.policies, bare.action_space))

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
        """Closes the environment."""
        self._env.close()


class Outcomes:
    """What the games that have been played ended with.

    Args:
        plan: The plan.
        games: How many there are to be.
    """

    def __init__(self, plan: Plan, games: int) -> None:
        self._plan = plan
        self._seat: dict[Any, int] = {agent: seat for seat, agent in enumerate(plan.agents)}
        self.done = np.zeros(games, np.bool_)
        self._returns = np.full((games, len(plan.agents)), np.nan)  # of agents that were there
        self._lengths = np.zeros((games, len(plan.agents)), np.int64)

    def record(self, game: int, episode: pm.Episode) -> None:
        """Enters a game."""
        for agent, value, length in zip(episode.agents, episode.returns, episode.lengths, strict=True):
            self._returns[game, self._seat[agent]] = value
            self._lengths[game, self._seat[agent]] = length
        self.done[game] = True

    def episodes(self) -> Iterator[pm.Episode]:
        """Yields the games that have been played by number, whatever the order they were played in."""
        plan = self._plan
        agents = np.array(plan.agents, object)
        sides = np.arange(len(agents))
        if plan.teams:
            for number, seats in enumerate(seats_by_group("--teams", "prefix", plan.agents).values()):
                sides[seats] = number
        games = np.flatnonzero(self.done).tolist()
        for game, policies in zip(games, plan.matchups(games), strict=True):
            there = ~np.isnan(self._returns[game])
            yield pm.Episode(
                policies=np.array(policies)[there].tolist(),
                returns=self._returns[game, there].tolist(),
                lengths=self._lengths[game, there].tolist(),
                sides=sides[there].tolist(),
                agents=agents[there].tolist(),
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns all that must survive an interruption."""
        return {
            "version": STATE_VERSION,
            "plan": self._plan.description(),
            "done": self.done.copy(),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the games of an earlier command; there may be more of them than this one is to play.

        Raises:
            UsageError: If it was another tournament; it names what differs.
        """
        if state.get("version") != STATE_VERSION:
            raise UsageError(f"it has version {state.get('version')!r}, this one reads {STATE_VERSION}")
        theirs = state["plan"]
        differ = [
            f"{name} was {theirs.get(name)!r} and is {mine!r}"
            for name, mine in self._plan.description().items()
            if theirs.get(name) != mine
        ]
        if differ:
            raise UsageError(f"it is of another tournament: {'; '.join(differ)}")
        done, returns, lengths = state["done"], state["returns"], state["lengths"]
        more = max(0, len(self.done) - len(done))
        self.done = np.pad(done, (0, more))
        self._returns = np.pad(returns, ((0, more), (0, 0)), constant_values=np.nan)
        self._lengths = np.pad(lengths, ((0, more), (0, 0)))


def outcomes_at(path: str | None, plan: Plan, games: int) -> Outcomes:
    """Returns the outcomes so far: those in the file, where there is one.

    Raises:
        UsageError: If the file is of another tournament, or of something else.
        CommandError: If it cannot be read.
    """
    outcomes = Outcomes(plan, games)
    if path is None:
        return outcomes
    try:
        outcomes.load_state_dict(pm.load(path)["tournament"])
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CommandError(f"--results: {told(error)}") from error
    except KeyError:
        raise UsageError(f"--results {path}: it holds no tournament; name another file") from None
    except (ValueError, UsageError) as error:
        raise UsageError(f"--results {path}: {told(error)}") from error
    return outcomes
