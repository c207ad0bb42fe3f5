"""Prints one table of all measured ratios after the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from tests.benchmarks.ratios import Ratio, markdown, medians, table

MEASURED = pytest.StashKey[list[Ratio]]()


@pytest.fixture
def side_by_side(benchmark: Any) -> Callable[..., list[float]]:
    """`medians`, in the one round that pytest-benchmark times."""

    def measure(*functions: Callable[[], Any], **settings: Any) -> list[float]:
        return benchmark.pedantic(medians, functions, settings)

    return measure


@pytest.fixture
def report(benchmark: Any, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Adds a `Ratio` to the table, and fails if it is beyond its tolerance."""

    def put(*fields: Any, **more: Any) -> None:
        ratio = Ratio(*fields, **more)
        request.config.stash.setdefault(MEASURED, []).append(ratio)
        benchmark.extra_info[ratio.what] = ratio.measured
        if not benchmark.stats:
            benchmark.pedantic(lambda: None)  # pytest-benchmark needs a time, whatever was measured
        assert ratio.within(ratio.tolerance), f"{ratio.measured:.3g} is beyond the tolerance of {ratio.tolerance:g}"

    return put


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds an option to print the table in Markdown, for the README."""
    parser.addoption("--markdown", action="store_true", help="print the table of ratios in Markdown")


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Prints the table."""
    ratios = config.stash.get(MEASURED, [])
    if ratios and config.getoption("markdown"):
        print(markdown(ratios))  # noqa: T201
    elif ratios:
        Console(width=max(120, Console().width)).print(table(ratios))
