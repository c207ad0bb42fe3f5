"""Games in this process, or in the workers of a joblib backend: processes, a Dask cluster, a Ray cluster."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, redirect_stdout
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from pz_policymap.evaluation.episode_loop import PlayError, error_text
from pz_policymap.evaluation.games import FinishedGame, Game, GamePlayer

_BATCH_SECONDS = 0.3  # a batch of games that takes less costs more in messages than in games
_WAVE_SECONDS = 3.0  # the same for backends that return all batches of a call at once


class Plan(NamedTuple):
    """The arguments of `GamePlayer`."""

    make_env: Callable[[], Any]
    entrants: dict[str, Any]
    seed: int
    agents: tuple[Any, ...]
    forfeits: bool


class _Batch(NamedTuple):
    """The answer of a worker: the games before the first error, that error, and the time they took."""

    games: list[FinishedGame]
    failure: PlayError | None
    seconds: float


def num_workers(n_jobs: int) -> int:
    """Returns the number of workers that `n_jobs` stands for; -1 is all that the backend has."""
    return n_jobs if n_jobs > 0 else int(_joblib().effective_n_jobs(n_jobs))


def played(plan: Plan, games: Iterator[Game], count: int, jobs: int) -> Generator[FinishedGame, None, None]:
    """Yields games as they finish, in any order.

    Args:
        plan: Environment and entrants.
        games: The games.
        count: Number of them.
        jobs: Number of workers; 1: this process.

    Raises:
        PlayError: If a game fails or a worker dies.
        ImportError: If joblib is needed and missing.
    """
    if jobs == 1:
        player = GamePlayer(*plan)
        with closing(player), player.session():
            for game in games:
                yield player.play(game)
        return
    joblib = _joblib()
    payload, token = import_module("cloudpickle").dumps(plan), uuid.uuid4().hex  # pickled once, not once per batch
    pace = _Pace(count, jobs)
    calls = (joblib.delayed(_play_batch)(token, payload, batch, os.getpid()) for batch in pace.batches(games))
    failure: PlayError | None = None
    try:
        with closing(_results(calls, jobs, pace)) as batches:
            for batch in batches:
                pace.add(batch)
                yield from batch.games
                failure = failure or batch.failure
    except Exception as error:  # each backend raises another error for a dead worker
        raise PlayError(f"a worker failed: {error_text(error)}") from error
    if failure is not None:
        raise failure


def _joblib() -> Any:
    try:
        import_module("cloudpickle")
        return import_module("joblib")  # an extra without type hints
    except ImportError as error:
        raise ImportError("n_jobs other than 1 needs joblib: pip install joblib cloudpickle") from error


class _Pace:
    """Cuts games into batches of some tenths of a second; single games at first and in the end."""

    def __init__(self, count: int, jobs: int) -> None:
        self._left, self._jobs, self._seconds, self._games = count, jobs, 0.0, 0
        self.target = _BATCH_SECONDS

    def add(self, batch: _Batch) -> None:
        """Counts a finished batch; after a failure no more batches are sent."""
        self._seconds, self._games = self._seconds + batch.seconds, self._games + len(batch.games)
        if batch.failure is not None:
            self._left = 0

    def batches(self, games: Iterator[Game]) -> Iterator[list[Game]]:
        """Yields batches until all games are in one."""
        while self._left:
            fair = -(-self._left // (2 * self._jobs))
            size = int(self.target * self._games / self._seconds) if self._seconds else 1
            batch = list(itertools.islice(games, max(1, min(size, fair))))
            self._left = max(0, self._left - len(batch))
            yield batch


def _results(calls: Iterator[Any], jobs: int, pace: _Pace) -> Generator[_Batch, None, None]:
    """Yields batches as they finish, or in waves where the backend (Ray's) cannot return them one by one."""
    joblib = _joblib()
    try:
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # joblib offers no other way to detect this
        pace.target = _WAVE_SECONDS
        with joblib.Parallel(n_jobs=jobs, batch_size=1) as parallel:  # keeps its workers from wave to wave
            while wave := list(itertools.islice(calls, jobs)):
                yield from parallel(wave)
        return
    if type(parallel._backend).__name__ == "DaskDistributedBackend":
        _report_lost_batches(parallel._backend)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*tasks .*(executed|being processed)", UserWarning)  # when interrupted
        with closing(parallel(calls)) as batches:
            yield from batches


def _report_lost_batches(backend: Any) -> None:
    """Makes joblib's Dask backend report a batch whose workers died, for which joblib 1.6 waits for ever."""
    submit = backend.submit

    def reporting(batch: Any, callback: Any = None) -> Any:
        future = submit(batch, callback)
        future.add_done_callback(lambda done: done.exception() and callback(done.exception()))
        return future

    backend.submit = reporting


# A worker makes the environment and loads the policies once per tournament. Games seed the global generators, which
# threads share, so the threads of a process play one batch at a time.
_playing = threading.Lock()
_players: dict[str, GamePlayer] = {}  # at most one, by the token of its tournament


@cache
def _become_worker(parent: int) -> None:
    """Leaves Ctrl-C to the parent process, and ends this process when the parent has ended."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _play_batch(token: str, payload: bytes, games: Sequence[Game], parent: int) -> _Batch:
    """Plays games in a worker."""
    with _playing, redirect_stdout(sys.stderr):  # stdout belongs to the parent process
        if os.getppid() == parent:
            _become_worker(parent)
        begun, finished = time.perf_counter(), list[FinishedGame]()
        try:
            if token not in _players:
                _players.clear()
                _players[token] = GamePlayer(*pickle.loads(payload))  # noqa: S301  # from the process that asked
            player = _players[token]
            begun = time.perf_counter()
            with player.session():
                for game in games:
                    finished.append(player.play(game))  # an error keeps those before it
        except PlayError as error:
            return _Batch(finished, error, time.perf_counter() - begun)
        return _Batch(finished, None, time.perf_counter() - begun)
