"""Ratios of costs, measured side by side in one run.

Machines differ, so a time by itself says little. Two ways to do the same are timed in turns, and the ratio of their
medians is what a target is set for. The clock is that of the processor, which stands still while others are served. A
tolerance lies so far behind the target that noise cannot reach it: past that, the test fails.
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

SAMPLE = 0.002  # seconds that a function is repeated for, so that reading the clock does not show


@dataclass(frozen=True)
class Ratio:
    """One row of the table.

    Attributes:
        what: What is measured.
        against: What it is compared with.
        measured: The ratio of costs, or of speeds where more is better.
        target: What it is to be, at most or at least.
        tolerance: What it must not be beyond.
        more_is_better: Whether the target is the least it may be.
    """

    what: str
    against: str
    measured: float
    target: float
    tolerance: float
    more_is_better: bool = False

    def within(self, limit: float) -> bool:
        return self.measured >= limit if self.more_is_better else self.measured <= limit

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """What the table shows of it."""
        bound = "at least" if self.more_is_better else "at most"
        answer = "yes" if self.within(self.target) else "no"
        digits = 2 if self.measured < 10 else 1 if self.measured < 20 else 0
        return (
            self.what,
            self.against,
            f"{self.measured:.{digits}f}",
            f"{bound} {self.target:g}",
            answer,
        )


def medians(*functions: Callable[[], Any], rounds: int = 31, before: Callable[[], Any] | None = None) -> list[float]:
    """Returns the median time of a call of each function, in seconds of the processor.

    Args:
        functions: They take turns, in an order that is reversed every round.
        rounds: How many turns each has.
        before: Called before every turn, off the clock; each turn is then a single call.
    """
    repeats = [1 if before else _repeats(function) for function in functions]
    samples: list[list[float]] = [[] for _ in functions]
    turns = list(zip(functions, repeats, samples, strict=True))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds):
            for function, repeat, times in turns if number % 2 else reversed(turns):
                if before:
                    before()
                times.append(_timed(function, repeat))
    finally:
        if collecting:
            gc.enable()
    return [statistics.median(times) for times in samples]


def table(ratios: Sequence[Ratio]) -> Any:
    """Returns the table that rich prints."""
    from rich.table import Table

    shown = Table(title=_title())
    for name in ("what", "against"):
        shown.add_column(name, overflow="fold")
    for name in ("measured", "target", "met"):
        shown.add_column(name, justify="right", no_wrap=True)
    for ratio in ratios:
        shown.add_row(*ratio.cells)
    return shown


def markdown(ratios: Sequence[Ratio]) -> str:
    """Returns the same table in Markdown."""
    rows = [("what", "against", "measured", "target", "met"), ("---", "---", "--:", "--:", "--:")]
    lines = ["| " + " | ".join(cells) + " |" for cells in (*rows, *(ratio.cells for ratio in ratios))]
    return "\n".join([f"{_title()}:", "", *lines])


def _title() -> str:
    packages = (f"{name} {version(name)}" for name in ("numpy", "gymnasium", "pettingzoo", "torch") if find_spec(name))
    return f"Costs side by side, {date.today()}, Python {platform.python_version()}, {', '.join(packages)}"


def _timed(function: Callable[[], Any], repeat: int) -> float:
    turns = range(repeat)
    start = time.process_time()
    for _ in turns:
        function()
    return (time.process_time() - start) / repeat


def _repeats(function: Callable[[], Any]) -> int:
    """Returns how often to repeat a function in one turn; calling it also warms it up."""
    function()
    return max(1, int(SAMPLE / min(_timed(function, 1) for _ in range(3))))
