"""Tables, colours and JSON on stdout: plain text unless it is a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pz_policymap.cli.stdout import reader_may_leave, results

if TYPE_CHECKING:
    from rich.console import Console

# Of the 256 colours of terminals, ten that differ in lightness as well: the palette of Okabe and Ito 2008, "Color
# universal design", and three more.
_COLOURS = (39, 208, 36, 220, 175, 32, 166, 250, 141, 107)
BOLD, DIM, RED, YELLOW, GREEN = "bold", "dim", "red", "yellow", "green"
_WIDTH = 120  # characters per line, unless stdout is a terminal


def console() -> Console:
    """Returns a console on stdout: coloured on terminals that support it, without markup."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # where rich would exit with an error of its own

    out = results()
    width = None if out.isatty() else _WIDTH
    return Plain(file=out, width=width, markup=False, emoji=False, highlight=False)


def policy_style(policy: int) -> str:
    """Returns the colour of a policy."""
    return f"color({_COLOURS[policy % len(_COLOURS)]})"


def show(*parts: tuple[str, str] | str) -> None:
    """Writes a line on stdout, made of texts, or of texts with their styles."""
    from rich.text import Text

    with reader_may_leave():
        console().print(Text.assemble(*parts), soft_wrap=True)


def show_table(
    title: str,
    heading: Sequence[str],
    rows: Sequence[Sequence[Any]],
    styles: Sequence[Sequence[str]] | None = None,
    words: int = 1,
) -> None:
    """Writes a table; columns of numbers are right-aligned, others left-aligned.

    Args:
        title: The line above it.
        heading: One name per column.
        rows: Texts, or numbers: floats with two digits, NaN as a dash.
        styles: The style of each cell.
        words: Number of columns of words, from the left.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM)
    for place, name in enumerate(heading):
        table.add_column(Text(name), justify="left" if place < words or not name else "right", no_wrap=True)
    for number, row in enumerate(rows):
        paint = [""] * len(row) if styles is None else styles[number]
        table.add_row(*[Text(cell(value), style) for value, style in zip(row, paint, strict=True)])
    show((title, BOLD))
    out = console()
    out.width = 100_000  # a wide table must not be cut
    with reader_may_leave():
        out.print(table, soft_wrap=True)


def cell(value: Any) -> str:
    """Returns the text of a table cell.

    Example:
        >>> cell(0.666), cell(float("nan")), cell(12), cell("random")
        ('0.67', '-', '12', 'random')
    """
    if isinstance(value, (float, np.floating)):
        return "-" if math.isnan(value) else f"{value:.2f}"
    return str(value)


def show_json(content: Any) -> None:
    """Writes JSON, NaN as null."""
    text = json.dumps(plain(content), indent=2, allow_nan=False)
    with reader_may_leave():
        print(text, file=results())


def plain(value: Any) -> Any:
    """Returns a value as JSON can hold it.

    Example:
        >>> plain({"mean": float("nan"), "games": np.array([1, 2]), 3: (np.float64(4.5), None)})
        {'mean': None, 'games': [1, 2], '3': [4.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
