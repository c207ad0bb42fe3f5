"""What the games of a tournament ended with, and the file that keeps them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import pz_policymap as pm
from pz_policymap.cli.errors import CommandError, UsageError, told
from pz_policymap.evaluation.games import Plan
from pz_policymap.mappings.groups import seats_by_group

STATE_VERSION = 1


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


class Keeper:
    """Writes the games to their file, seldom enough that this takes at most 5% of the time.

    Args:
        path: The file; None: nothing is kept.
        outcomes: The games.
    """

    def __init__(self, path: str | None, outcomes: Outcomes) -> None:
        self._path, self._outcomes = path, outcomes
        self._next = 0.0

    def keep_now_and_then(self) -> None:
        """Writes them, unless it was done a moment ago."""
        if time.monotonic() >= self._next:
            self.keep()

    def keep(self) -> None:
        """Writes them.

        Raises:
            CommandError: If the file cannot be written.
        """
        if self._path is None:
            return
        begun = time.monotonic()
        try:
            pm.save(self._path, tournament=self._outcomes)
        except OSError as error:
            raise CommandError(f"--results: {told(error)}") from error
        now = time.monotonic()
        self._next = now + max(1.0, 20.0 * (now - begun))
