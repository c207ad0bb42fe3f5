"""Games in several processes: who is idle gets the next one, and an interruption ends them all."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import pz_policymap as pm
from pz_policymap.cli.errors import CommandError
from pz_policymap.evaluation.games import Match, Plan

Record = Callable[[int, pm.Episode], None]


def play_games(plan: Plan, games: Iterable[int], jobs: int, record: Record) -> Callable[[], None]:
    """Plays games and hands on each as it ends, in any order.

    Args:
        plan: The tournament.
        games: Their numbers.
        jobs: How many processes play at once; 1: this one alone.
        record: Gets the number and the outcome of each.

    Returns:
        What closes the environment, for when the results are safe.

    Raises:
        UsageError, CommandError: If environment or policies fail; all games that have ended were handed on.
    """
    if jobs > 1:
        _play_apart(plan, iter(games), jobs, record)
        return lambda: None  # the processes are gone, and theirs with them
    match = Match(plan)
    for game in games:
        record(game, match.play(game))
    return match.close


def _play_apart(plan: Plan, games: Iterator[int], jobs: int, record: Record) -> None:
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads and the locks of others' libraries
    workers: dict[Connection, SpawnProcess] = {}
    try:
        with _interrupts_ignored():  # they are born with it: a Ctrl-C, which all get, is this process's to answer
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(theirs, plan), daemon=True)
                worker.start()
                theirs.close()
                workers[ours] = worker
        busy = [connection for connection in workers if _hand_out(connection, workers, games)]
        while busy:
            ready = set(wait(busy))
            for connection in [connection for connection in busy if connection in ready]:
                _take(connection, workers, record)
                if not _hand_out(connection, workers, games):
                    busy.remove(connection)
    finally:
        for worker in workers.values():
            worker.terminate()
        for worker in workers.values():
            worker.join()


def _hand_out(connection: Connection, workers: dict[Connection, SpawnProcess], games: Iterator[int]) -> bool:
    """Sends the next game to a worker; returns False if there is none."""
    game = next(games, None)
    if game is None:
        return False
    try:
        connection.send(game)
    except OSError:
        raise _died(workers[connection]) from None
    return True


def _take(connection: Connection, workers: dict[Connection, SpawnProcess], record: Record) -> None:
    try:
        game, outcome, where = connection.recv()
    except (EOFError, OSError):
        raise _died(workers[connection]) from None
    if isinstance(outcome, CommandError):
        raise outcome from CommandError(f"in the process that played:\n{where}")  # no traceback goes through a pipe
    record(game, outcome)


def _died(worker: SpawnProcess) -> CommandError:
    worker.join()
    return CommandError(f"a process that played games died, exit code {worker.exitcode}")


def _work(connection: Connection, plan: Plan) -> None:
    """What a process does: games by number, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    match: Match | None = None
    with suppress(EOFError, OSError):  # whoever asked is gone
        while True:
            game, where = connection.recv(), ""
            try:
                match = match or Match(plan)
                outcome: pm.Episode | CommandError = match.play(game)
            except CommandError as error:
                outcome, where = error, traceback.format_exc()
            connection.send((game, outcome, where))


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignores Ctrl-C for a moment, in what is started meanwhile for good."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which is not asked
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
