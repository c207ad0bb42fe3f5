"""Results on stdout, kept apart from what environments, policies and mappings print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

_RESULTS: ContextVar[TextIO | None] = ContextVar("results", default=None)


def results() -> TextIO:
    """Returns the stream for results: the stdout of the command."""
    return _RESULTS.get() or sys.stdout


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Sends everything else that this process, its libraries and its workers print to stderr."""
    with _own_stdout() as out, redirect_stdout(sys.stderr):
        token = _RESULTS.set(out)
        try:
            yield
            with reader_may_leave():
                out.flush()  # here, where a full disk is reported and a closed pipe is not
        finally:
            _RESULTS.reset(token)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Discards output once the reader of stdout has closed it, as `head` does; for writes only."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), results().fileno())


@contextmanager
def _own_stdout() -> Iterator[TextIO]:
    """Yields stdout; what C code and worker processes write to its file descriptor goes to stderr meanwhile."""
    stdout: TextIO | None = sys.stdout
    if stdout is None:  # it was closed when the process started
        with Path(os.devnull).open("w", encoding="utf-8") as nothing:
            yield nothing
        return
    try:
        is_descriptor = stdout.fileno() == 1
    except OSError:  # such as io.UnsupportedOperation
        is_descriptor = False
    if not is_descriptor:
        yield stdout
        return
    stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with open(saved, "w", encoding=stdout.encoding, errors="backslashreplace", closefd=False) as out:
            yield out
    finally:
        os.dup2(saved, 1)
        os.close(saved)
