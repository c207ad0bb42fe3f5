"""Colours, sizes and labels that all pictures share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Colours of policies 0, 1, ... They differ in lightness, so they are distinguishable in grey and without red or green.
POLICY_COLORS = (
    "#1f55a8",  # blue
    "#dba63f",  # gold
    "#cf5f3a",  # rust
    "#93d3bd",  # mint
    "#1e1a52",  # indigo
    "#f5da84",  # straw
    "#6c9be0",  # sky
    "#0f7a68",  # green
    "#6b1f45",  # wine
    "#f5efe0",  # cream
)
RATE_COLORS = ("#16305f", "#44689f", "#a9adb4", "#e9bd6c", "#fff2cc")  # from dark to light, also in grey
INK, FAINT, PAPER = "#262626", "#8c8c8c", "#ffffff"
LARGE, SMALL, TINY = 10.0, 9.0, 7.0  # font sizes in points
MAX_NUMBERED = 20  # rows or columns with a number in each cell; beyond, a cell is too small
_FEW = 10  # rows or columns with numbers of full size
_MAX_LABELS = 32  # labels along one axis
_ONE_LINE = 70  # characters of all labels that fit side by side below an axis


def side_by_side(*parts: Callable[[Axes], object], sizes: Sequence[tuple[float, float]]) -> Figure:
    """Returns a figure of parts that are drawn side by side.

    Args:
        *parts: Functions that draw on an `Axes`.
        sizes: Width and height of each in inches.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra

    widths = [width for width, _ in sizes]
    figure = Figure(figsize=(sum(widths), max(height for _, height in sizes)), layout="constrained")
    grid = figure.subplots(1, len(parts), squeeze=False, width_ratios=widths)
    for axes, part in zip(grid[0], parts, strict=True):
        part(axes)
    return figure


def policy_colors(num_policies: int) -> Colormap:
    """Returns one colour per policy: distinct ones for up to 10 policies, a sequential map beyond."""
    import matplotlib  # noqa: PLC0415  # an extra
    from matplotlib.colors import ListedColormap  # noqa: PLC0415

    if num_policies <= len(POLICY_COLORS):
        return ListedColormap(list(POLICY_COLORS[:num_policies]), "policies")
    return matplotlib.colormaps["viridis"].resampled(num_policies)


def rate_colors() -> Colormap:
    """Returns the colours of win rates: dark blue for 0, grey for 0.5, light gold for 1."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415  # an extra

    return LinearSegmentedColormap.from_list("win_rates", list(RATE_COLORS))


def ink_on(color: tuple[float, float, float, float]) -> str:
    """Returns the text colour with the greater contrast on a background colour.

    Source: relative luminance and contrast as in the Web Content Accessibility Guidelines 2.2.

    Example:
        >>> ink_on((1.0, 1.0, 0.5, 1.0)), ink_on((0.0, 0.0, 0.5, 1.0))
        ('#262626', '#ffffff')
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return INK if (luminance + 0.05) ** 2 > 1.05 * 0.07 else PAPER  # luminance of the ink: 0.02


def number_size(count: int) -> float:
    """Returns the font size of numbers in a grid with this many rows or columns."""
    return LARGE if count <= _FEW else TINY


def label_each(axis: Any, labels: Sequence[str]) -> None:
    """Puts label i at position i of an `Axis`; of many labels only every 2nd, 5th, 10th, ... is shown."""
    steps = (n * 10**power for power in range(9) for n in (1, 2, 5))
    shown = range(0, len(labels), next(step for step in steps if len(labels) <= step * _MAX_LABELS))
    size = SMALL if len(labels) <= MAX_NUMBERED / 2 else TINY
    widest = max(len(labels[i]) + 1 for i in shown)  # a label must fit below its own cell
    upright = axis.axis_name == "x" and widest * len(shown) * size > _ONE_LINE * SMALL
    axis.set_ticks(list(shown), [labels[i] for i in shown], fontsize=size, rotation=90 if upright else 0)


def plain(axes: Axes) -> None:
    """Removes the frame and the tick marks."""
    axes.spines[:].set_visible(False)
    axes.tick_params(which="both", length=0)
