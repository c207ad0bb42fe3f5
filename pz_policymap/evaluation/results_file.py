"""The results file of a tournament: one line of JSON per finished game, appended as it finishes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from pz_policymap.checkpoint import replacing
from pz_policymap.evaluation.game_table import GameTable
from pz_policymap.evaluation.games import FinishedGame, Game
from pz_policymap.results.episode import MAX_RETURN

_FORMAT = {"format": "pz_policymap games", "version": 1}


class ResultsFile:
    """Finished games in an append-only file, so that no game is lost if the process dies.

    The first line holds the settings. Each further line holds one game, or the version of an entrant. A last line that
    is cut off, by a full disk or a loss of power, is ignored and then overwritten. One process at a time may write.

    Args:
        path: The file; it need not exist.
        settings: Plain values that must be equal for games to be comparable: environment, agents, seed. None: those of
            the file.

    Raises:
        ValueError: If the file holds something else; names what differs.
        OSError: If it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        self._file: FileIO | None = None
        self._length = 0  # of the complete lines, in bytes
        self._size = 0  # of the file when it was read, in bytes
        self.versions: dict[str, str] = {}  # of the entrants that have one
        try:
            header = self._header(settings)
        except FileNotFoundError:
            if settings is None:
                raise
            header = None
        if header is None and settings is None:
            raise self._invalid("it is not a results file")
        self.settings = dict(settings or {}) if header is None else header
        for name, mine in (settings or {}).items():
            if self.settings.get(name) != mine:
                was = self.settings.get(name)
                raise self._invalid(f"it holds another tournament: {name} was {was!r} and is {mine!r}")
        self._new = header is None
        self.games = GameTable(self.settings["agents"])
        if not self._new:
            self._read()

    def _invalid(self, why: str) -> ValueError:
        return ValueError(f"results {self.path}: {why}")

    def _lines(self) -> Iterator[bytes]:
        """Yields the complete lines, and sets `_length` to the number of bytes in them."""
        self._length = self._size = 0
        with self.path.open("rb") as file:
            for line in file:
                self._size += len(line)
                if line.endswith(b"\n"):
                    self._length += len(line)
                    yield line

    def _header(self, settings: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Returns the settings of the file; None if it is empty or holds a part of the header of these settings."""
        first = next(self._lines(), None)
        if first is None and _line({**_FORMAT, **(settings or {})}).startswith(self.path.read_bytes()):
            return None
        with suppress(ValueError):
            header = json.loads(first or b"")
            ours = isinstance(header, dict) and isinstance(header.get("agents"), list)
            if ours and {name: header.pop(name, None) for name in _FORMAT} == _FORMAT:
                return dict(header)
        raise self._invalid("it is not a results file of this version; name another file")

    def _read(self) -> None:
        seats = len(self.games.agents)
        for number, line in enumerate(self._lines(), 1):
            if number == 1:
                continue
            try:
                entry = json.loads(line)
                if "entrant" in entry:
                    self.versions[entry["entrant"]] = entry["entrant_version"]
                    continue
                self.games.add(_finished(entry, seats))
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise self._invalid(f"line {number} is damaged: {error!r}") from error

    def check_versions(self, versions: Mapping[str, str]) -> None:
        """Raises a ValueError if an entrant has other contents than in the games of this file."""
        for name, version in versions.items():
            held = self.versions.get(name)
            if held != version and (held is not None or name in self.games.names):
                what = "without a version" if held is None else f"in version {held!r}"
                raise self._invalid(
                    f"it holds games of entrant {name!r} {what}, got {version!r}; give changed contents another name"
                )

    def open(self, versions: Mapping[str, str]) -> None:
        """Opens the file for appending, and adds the versions of the entrants that it does not hold.

        Raises:
            ValueError: If another process has written to the file since it was read.
        """
        self._file = self.path.open("ab", buffering=0)
        if (size := self.path.stat().st_size) != self._size:
            self.close()
            raise self._invalid(f"another process writes it, {size} bytes instead of {self._size}; give each its own")
        self._file.truncate(self._length)
        if self._new:
            self._append({**_FORMAT, **self.settings})
        for name, version in versions.items():
            if name not in self.versions:
                self._append(_version(name, version))
                self.versions[name] = version

    def append(self, finished: FinishedGame) -> None:
        """Adds a game to the table and to the file.

        Raises:
            OSError: If it cannot be written; games before it are kept.
        """
        self._append(_entry(finished))
        self.games.add(finished)

    def _append(self, entry: dict[str, Any]) -> None:
        line = _line(entry)
        if self._file is None or self._file.write(line) != len(line):  # what was written is a line that is cut off
            raise OSError(f"{self.path} cannot be written: the disk is full")

    def close(self) -> None:
        """Flushes the file to disk and closes it."""
        if self._file is not None:
            with self._file as file:
                os.fsync(file.fileno())
            self._file = None


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _version(name: str, version: str) -> dict[str, Any]:
    return {"entrant": name, "entrant_version": version}


def _entry(finished: FinishedGame) -> dict[str, Any]:
    """Returns the line of a game as plain values."""
    entry = {
        "names": finished.game.names,
        "repetition": finished.game.repetition,
        "returns": [None if math.isnan(value) else value for value in finished.returns],
        "lengths": list(finished.lengths),
        "moves": finished.moves,
    }
    if finished.forfeit is not None:
        entry |= {"forfeit": finished.forfeit, "reason": finished.reason}
    return entry


def _finished(entry: dict[str, Any], seats: int) -> FinishedGame:
    """Returns the game of a line, or raises a ValueError, KeyError, TypeError or OverflowError."""
    names, returns, lengths = tuple(entry["names"]), entry["returns"], entry["lengths"]
    if not len(names) == len(returns) == len(lengths) == seats or not all(isinstance(name, str) for name in names):
        raise ValueError(f"a game must have {seats} seats, got {entry}")
    if not all(value is None or abs(value) <= MAX_RETURN for value in returns):
        raise ValueError(f"returns must be from -1e300 to 1e300, got {returns}")
    if min(*lengths, entry["repetition"], entry["moves"]) < 0:
        raise ValueError(f"lengths, repetition and moves must not be negative, got {entry}")
    return FinishedGame(
        Game(names, int(entry["repetition"])),
        [math.nan if value is None else float(value) for value in returns],
        [int(steps) for steps in lengths],
        int(entry["moves"]),
        entry.get("forfeit"),
        entry.get("reason", ""),
    )


def merged_file(paths: Sequence[str | os.PathLike[str]], into: str | os.PathLike[str] | None) -> ResultsFile:
    """Returns the games of several files, and writes them to one, sorted by names and repetition.

    Args:
        paths: Results files, at least one.
        into: The file to write, or None. It is replaced at once, and may be one of `paths`.

    Raises:
        ValueError: If one of them is not a results file, if settings or the versions of an entrant differ, or if a game
            ended differently in two files.
        OSError: If a file cannot be read or written.
    """
    for path in paths[1:]:
        if not Path(path).stat().st_size:
            raise ValueError(f"results {os.fspath(path)}: it is empty, so its shard has not begun")
    first = ResultsFile(paths[0])
    known = {first.games.finished(index).game: index for index in range(len(first.games))}
    for path in paths[1:]:
        other = ResultsFile(path, first.settings)
        other.check_versions(first.versions)
        first.check_versions(other.versions)
        first.versions |= other.versions
        for index in range(len(other.games)):
            finished = other.games.finished(index)
            if finished.game not in known:
                known[finished.game] = len(first.games)
                first.games.add(finished)
            elif not _same(finished, first.games.finished(known[finished.game])):
                raise ValueError(f"results {os.fspath(path)}: {finished.game} ended differently in another file")
    if into is not None:
        with replacing(into) as file:
            file.write(_line({**_FORMAT, **first.settings}))
            file.writelines(_line(_version(name, version)) for name, version in sorted(first.versions.items()))
            file.writelines(_line(_entry(first.games.finished(index))) for index in first.games.in_order().tolist())
    return first


def _same(one: FinishedGame, other: FinishedGame) -> bool:
    """Whether two games ended in the same way; reasons may name different places."""
    return repr(one._replace(reason="")) == repr(other._replace(reason=""))
