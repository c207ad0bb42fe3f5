"""A progress bar on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Callable[[], object]]:
    """Shows a bar, the rate and the remaining time, until the end of the `with`.

    Args:
        what: The unit: "episodes".
        total: Number in all.
        done: Number done by an earlier command.

    Yields:
        A function to call after each.
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
        """The rate per second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g} a second")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda: bar.advance(task)
