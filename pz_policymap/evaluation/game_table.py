"""`GameTable`: the finished games of a tournament in compact columns, and the episodes among some entrants."""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from pz_policymap.evaluation.games import FinishedGame, Game
from pz_policymap.results.episode import Episode

ENOUGH_TO_TELL = 5  # equal games that random policies are unlikely to play
_NO_FORFEIT = -1


class GameTable:
    """Finished games in any order, about 50 bytes per game of two seats.

    Args:
        agents: The agents in seat order.
    """

    def __init__(self, agents: Sequence[Any]) -> None:
        self.agents = tuple(agents)
        self.names: list[str] = []  # of the entrants, in the order of their first game
        self._number: dict[str, int] = {}
        self._matchups, self._repetitions = array("i"), array("q")
        self._returns, self._lengths, self._moves = array("d"), array("q"), array("Q")
        self._forfeits = array("i")  # the entrant that lost by forfeit, or -1
        self._reasons: dict[int, str] = {}  # of the forfeits, by position

    def __len__(self) -> int:
        return len(self._repetitions)

    def add(self, finished: FinishedGame) -> None:
        """Adds a game; of several equal ones, `in_order` returns the first."""
        for name in finished.game.names:
            if name not in self._number:
                self._number[name] = len(self.names)
                self.names.append(name)
        self._matchups.extend(self._number[name] for name in finished.game.names)
        self._repetitions.append(finished.game.repetition)
        self._returns.extend(finished.returns)
        self._lengths.extend(finished.lengths)
        self._moves.append(finished.moves)
        loser = finished.forfeit
        self._forfeits.append(_NO_FORFEIT if loser is None else self._number[loser])
        if loser is not None:
            self._reasons[len(self) - 1] = finished.reason

    def missing(self, games: Iterable[Game]) -> NDArray[np.int64]:
        """Returns the positions of the games that are not in the table."""
        known = {(*matchup, repetition) for matchup, repetition in zip(self._rows(), self._repetitions, strict=True)}
        positions = (
            position
            for position, game in enumerate(games)
            if (*(self._number.get(name, -1) for name in game.names), game.repetition) not in known
        )
        return np.fromiter(positions, np.int64)

    def _rows(self) -> Iterator[tuple[int, ...]]:
        seats = len(self.agents)
        return zip(*(self._matchups[seat::seats] for seat in range(seats)), strict=True)

    def finished(self, index: int) -> FinishedGame:
        """Returns the game at a position."""
        seats = slice(index * len(self.agents), (index + 1) * len(self.agents))
        loser = self._forfeits[index]
        return FinishedGame(
            Game(tuple(self.names[entrant] for entrant in self._matchups[seats]), self._repetitions[index]),
            self._returns[seats],
            self._lengths[seats],
            self._moves[index],
            None if loser == _NO_FORFEIT else self.names[loser],
            self._reasons.get(index, ""),
        )

    def in_order(self, names: Sequence[str] | None = None) -> NDArray[np.intp]:
        """Returns the positions of the games among some entrants, sorted by their names and repetition.

        Args:
            names: The entrants. None: all.
        """
        if not self._repetitions:
            return np.zeros(0, np.intp)
        place = {name: number for number, name in enumerate(sorted(self.names))}
        rank = np.array([place[name] for name in self.names])
        wanted = np.array([names is None or name in names for name in self.names])
        matchups = np.array(self._matchups).reshape(-1, len(self.agents))
        keys = np.column_stack([rank[matchups], np.array(self._repetitions)])
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        new = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
        kept: NDArray[np.intp] = order[new & wanted[matchups[order]].all(axis=1)]
        return kept

    def clusters(self, order: NDArray[np.intp], identical: Container[tuple[str, ...]]) -> list[Hashable]:
        """Returns a label per game; games with equal labels are not independent.

        These are the games of the same entrants under the same environment seed, and identical games of a matchup.

        Args:
            order: Positions of the games, as `in_order` returns them.
            identical: The matchups whose games are all identical.
        """
        games = (self.finished(index).game for index in order.tolist())
        return [
            game.names if game.names in identical else (tuple(sorted(game.names)), game.repetition) for game in games
        ]

    def forfeited(self, order: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Returns which of some games were forfeited."""
        forfeited: NDArray[np.bool_] = np.array(self._forfeits, np.int64)[order] != _NO_FORFEIT
        return forfeited

    def identical(self, order: NDArray[np.intp]) -> dict[tuple[str, ...], int]:
        """Returns the matchups whose games are all identical, with the number of their games.

        Games with the same actions, returns and lengths are identical. Forfeited games, and matchups of fewer than
        `ENOUGH_TO_TELL` games, are left out: short games of random policies can be equal by chance.

        Args:
            order: Positions of the games, as `in_order` returns them.
        """
        first: dict[tuple[int, ...], FinishedGame | None] = {}  # None once games differ
        counts: dict[tuple[int, ...], int] = {}
        seats = len(self.agents)
        for index in order[~self.forfeited(order)].tolist():
            matchup = tuple(self._matchups[index * seats : (index + 1) * seats])
            counts[matchup] = counts.get(matchup, 0) + 1
            before = first.setdefault(matchup, self.finished(index))
            if before is not None and repr(before[1:]) != repr(self.finished(index)[1:]):
                first[matchup] = None
        return {
            tuple(self.names[entrant] for entrant in matchup): counts[matchup]
            for matchup, game in first.items()
            if game is not None and counts[matchup] >= ENOUGH_TO_TELL
        }


class Episodes(Sequence[Episode]):
    """The games among some entrants as episodes, each made when it is asked for.

    Args:
        table: The games.
        order: Positions of the games in the table.
        names: The entrants; the policy id of an entrant is its position.
        sides: The team of every seat.
    """

    def __init__(
        self, table: GameTable, order: NDArray[np.intp], names: Sequence[str], sides: Sequence[Hashable]
    ) -> None:
        self._table, self.order, self._sides = table, order, sides
        self._position = {name: position for position, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Episodes) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # games may be added to the table

    def __repr__(self) -> str:
        return f"<Episodes: {len(self)} games of {list(self._position)}>"

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice | NDArray[np.bool_]) -> Episodes: ...
    def __getitem__(self, index: int | slice | NDArray[np.bool_]) -> Episode | Episodes:
        if isinstance(index, (slice, np.ndarray)):
            return Episodes(self._table, self.order[index], tuple(self._position), self._sides)
        finished, sides, agents = self._table.finished(int(self.order[index])), self._sides, self._table.agents
        names, loser = finished.game.names, finished.forfeit
        there = [seat for seat, value in enumerate(finished.returns) if not math.isnan(value)]
        losing = {sides[seat] for seat, name in enumerate(names) if name == loser}
        return Episode(
            policies=[self._position[names[seat]] for seat in there],
            returns=[finished.returns[seat] for seat in there],
            lengths=[finished.lengths[seat] for seat in there],
            sides=[sides[seat] for seat in there],
            scores=[] if loser is None else [-1.0 if sides[seat] in losing else 0.0 for seat in there],
            agents=[agents[seat] for seat in there],
        )
