"""A line on stderr that says how far a command is; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Callable[[], object]]:
    """Shows a bar, the rate and the time that is left, until the end of the `with`.

    Args:
        what: What is counted: "episodes".
        total: How many there are.
        done: How many were done before, by an earlier command.

    Yields:
        What is to be called after each.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """How many a second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g} a second")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda: bar.advance(task)
