"""Tables, colours and JSON on stdout: plain text where it is no terminal."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

# Of the 256 colours of terminals, ten that differ in lightness as well: the palette of Okabe and Ito 2008, "Color
# universal design", and three more.
_COLOURS = (39, 208, 36, 220, 175, 32, 166, 250, 141, 107)
BOLD, DIM, RED, YELLOW, GREEN = "1", "2", "31", "33", "32"


def in_colour(stream: TextIO | None = None) -> bool:
    """Whether colours are shown: on a terminal, unless NO_COLOR is set (no-color.org)."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, style: str) -> str:
    """Returns a text in a style where colours are shown."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and in_colour() else text


def policy_style(policy: int) -> str:
    """Returns the colour of a policy."""
    return f"38;5;{_COLOURS[policy % len(_COLOURS)]}"


def width() -> int:
    """Returns how many characters fit on a line; where it is no terminal, 120."""
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120


def show(text: str = "") -> None:
    """Writes a line on stdout."""
    print(text)


def show_table(
    title: str,
    heading: Sequence[str],
    rows: Sequence[Sequence[Any]],
    styles: Sequence[Sequence[str]] | None = None,
    words: int = 1,
) -> None:
    """Writes a table: columns of numbers to the right, of words and without a name to the left.

    Args:
        title: What stands above it.
        heading: One name a column.
        rows: Texts, or numbers: floats with two digits, NaN as a dash.
        styles: The style of each cell.
        words: How many columns, from the left, are of words.
    """
    texts = [[cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heading, *texts, strict=True)]

    def line(cells: Sequence[str], paint: Sequence[str]) -> str:
        parts = [
            painted(text.ljust(size) if place < words or not heading[place] else text.rjust(size), style)
            for place, (text, size, style) in enumerate(zip(cells, widths, paint, strict=True))
        ]
        return "  ".join(parts).rstrip()

    show(painted(title, BOLD))
    show(line(heading, [DIM] * len(heading)))
    for number, row in enumerate(texts):
        show(line(row, [""] * len(row) if styles is None else styles[number]))


def cell(value: Any) -> str:
    """Returns what stands in a table for a value.

    Example:
        >>> cell(0.666), cell(float("nan")), cell(12), cell("random")
        ('0.67', '-', '12', 'random')
    """
    if isinstance(value, (float, np.floating)):
        return "-" if math.isnan(value) else f"{value:.2f}"
    return str(value)


def show_json(content: Any) -> None:
    """Writes JSON, NaN as null."""
    print(json.dumps(plain(content), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Returns what JSON can hold of a value.

    Example:
        >>> plain({"mean": float("nan"), "games": np.array([1, 2]), 3: (4.5, None)})
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
