"""Ratios of costs, measured side by side in one run.

Absolute times differ between machines, so each target is set for the ratio of two medians. The functions are timed in
turns, in processor time, which does not count other processes. A test fails beyond its tolerance, which is wide enough
for noise.
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

SAMPLE = 0.002  # seconds of repetitions per sample, so that reading the clock costs nothing


@dataclass(frozen=True)
class Ratio:
    """One row of the table.

    Attributes:
        what: Name of the measured operation.
        against: Name of the reference.
        measured: Ratio of costs, or of speeds if `more_is_better`.
        target: Bound that the ratio should meet.
        tolerance: Bound beyond which the test fails.
        more_is_better: Whether target and tolerance are lower bounds.
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
        """The cells of this row of the table."""
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
    """Returns the median processor time per call of each function, in seconds.

    Args:
        functions: Timed in turns; the order is reversed each round.
        rounds: Number of turns of each function.
        before: Called before each turn and not timed; each turn is then a single call.
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
    """Returns the number of repetitions of a function in one turn; also warms it up."""
    function()
    return max(1, int(SAMPLE / min(_timed(function, 1) for _ in range(3))))
