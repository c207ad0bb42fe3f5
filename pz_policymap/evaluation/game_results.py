"""The finished games of a tournament, and the file that keeps them."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pz_policymap.checkpoint import load, save
from pz_policymap.evaluation.games import FinishedGame, Game
from pz_policymap.results.episode import Episode

STATE_VERSION = 1
_NO_FORFEIT = -1


class GameResults:
    """Finished games by the names of their entrants, in any order.

    Args:
        settings: Plain values that must be equal for games to be comparable: environment, agents, seed.
        agents: The agents in seat order.
    """

    def __init__(self, settings: Mapping[str, Any], agents: Sequence[Any]) -> None:
        self._settings, self._agents = dict(settings), tuple(agents)
        self._games: dict[Game, tuple[list[float], list[int], int]] = {}  # by seat; the number of the forfeiting seat

    def __contains__(self, game: Game) -> bool:
        return game in self._games

    def record(self, finished: FinishedGame) -> None:
        """Adds a game. Agents that were never there have a return of NaN."""
        game = finished.game
        self._games[game] = (
            [finished.returns.get(agent, np.nan) for agent in self._agents],
            [finished.lengths.get(agent, 0) for agent in self._agents],
            _NO_FORFEIT if finished.forfeit is None else game.names.index(finished.forfeit),
        )

    def episodes(self, names: Sequence[str], sides: Sequence[Hashable]) -> Iterator[tuple[Episode, str | None]]:
        """Yields the games among some entrants in a fixed order, each with the entrant that forfeited it.

        Args:
            names: The entrants; the policy id of an entrant is its position.
            sides: The team of every seat.
        """
        position = {name: number for number, name in enumerate(names)}
        for game in sorted(self._games):
            if not position.keys() >= set(game.names):
                continue
            returns, lengths, forfeit = self._games[game]
            there = [seat for seat, value in enumerate(returns) if not np.isnan(value)]
            loser = None if forfeit == _NO_FORFEIT else game.names[forfeit]
            losing = {sides[seat] for seat, name in enumerate(game.names) if name == loser}
            yield (
                Episode(
                    policies=[position[game.names[seat]] for seat in there],
                    returns=[returns[seat] for seat in there],
                    lengths=[lengths[seat] for seat in there],
                    sides=[sides[seat] for seat in there],
                    scores=[] if loser is None else [-1.0 if sides[seat] in losing else 0.0 for seat in there],
                    agents=[self._agents[seat] for seat in there],
                ),
                loser,
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns all games in plain types and arrays."""
        games, seats = list(self._games), len(self._agents)
        names = sorted({name for game in games for name in game.names})
        number = {name: index for index, name in enumerate(names)}
        kept = list(self._games.values())
        return {
            "version": STATE_VERSION,
            "settings": self._settings,
            "names": names,
            "matchups": np.array([[number[name] for name in game.names] for game in games], np.int64).reshape(
                -1, seats
            ),
            "repetitions": np.array([game.repetition for game in games], np.int64),
            "returns": np.array([returns for returns, _, _ in kept], np.float64).reshape(-1, seats),
            "lengths": np.array([lengths for _, lengths, _ in kept], np.int64).reshape(-1, seats),
            "forfeits": np.array([forfeit for _, _, forfeit in kept], np.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Adds the games of a saved tournament.

        Raises:
            ValueError: If it has another version or other settings; names what differs.
        """
        if state.get("version") != STATE_VERSION:
            raise ValueError(f"version must be {STATE_VERSION}, got {state.get('version')!r}")
        theirs = state["settings"]
        differ = [
            f"{name} was {theirs.get(name)!r} and is {mine!r}"
            for name, mine in self._settings.items()
            if theirs.get(name) != mine
        ]
        if differ:
            raise ValueError(f"it holds another tournament: {'; '.join(differ)}")
        names = state["names"]
        columns = (state[name].tolist() for name in ("matchups", "repetitions", "returns", "lengths", "forfeits"))
        for matchup, repetition, returns, lengths, forfeit in zip(*columns, strict=True):
            game = Game(tuple(names[index] for index in matchup), repetition)
            self._games[game] = returns, lengths, forfeit


class ResultsFile:
    """Keeps games in a file, written so seldom that this takes at most 5% of the time.

    Args:
        path: The file; None: nothing is kept. Games that it holds already are added to `results`.
        results: The games.

    Raises:
        ValueError: If the file holds something else.
        OSError: If it cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, results: GameResults) -> None:
        self._path, self._results, self._next = path, results, 0.0
        if path is None:
            return
        try:
            state = load(path)
            if "tournament" not in state:
                raise ValueError("it holds no tournament; name another file")
            results.load_state_dict(state["tournament"])
        except FileNotFoundError:
            self.save()  # a file that cannot be written is noticed before hours of play
        except ValueError as error:
            raise ValueError(f"results {os.fspath(path)}: {error}") from error

    def save_if_due(self) -> None:
        """Writes the games, unless that was done a moment ago."""
        if self._path is not None and time.monotonic() >= self._next:
            self.save()

    def save(self) -> None:
        """Writes the games."""
        if self._path is None:
            return
        begun = time.monotonic()
        save(self._path, tournament=self._results)
        now = time.monotonic()
        self._next = now + max(1.0, 20.0 * (now - begun))
