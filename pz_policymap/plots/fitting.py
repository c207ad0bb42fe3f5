"""Numbers and names that fit: sizes are known when a figure is drawn, so that is when it is decided what to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, Locator
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.plots.style import LARGE, SMALL, SMALLEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

LINE = 1.3  # heights of a font from one line to the next
_BELOW = 0.8  # the size of the second line in a cell, in sizes of the first
_FILLED = 0.84  # the part of a cell that its texts may fill
_WIDE = 0.68  # the width of a character, in sizes of the font: that of a digit, and a little
_SPACE = 0.6  # between two labels side by side
READABLE = 6.0  # points: names along an axis that would be smaller are turned or replaced
_MOST_CELLS = 5000  # more have no room for numbers in a figure that anybody looks at


class CellTexts(Artist):
    """Texts in the cells of a grid: as large as fits in all cells of one shape; what cannot be read is hidden.

    Args:
        axes: Where to.
        cells: The centre, the width and the height of each cell in data coordinates, shape `(n, 4)`.
        texts: What stands in each.
        colors: Of each.
        below: What stands below it, smaller, if there is room for that in all cells. Empty: nothing.
        largest: The largest size, in points.
        align: "center", or "right" for a column of numbers, which stand on the background.
    """

    def __init__(
        self,
        axes: Axes,
        cells: Floats,
        texts: Sequence[str],
        colors: Sequence[str],
        below: Sequence[str] = (),
        largest: float = LARGE,
        align: Literal["center", "right"] = "center",
    ) -> None:
        super().__init__()
        self.set_zorder(-1.0)  # first to be drawn
        self.set_in_layout(False)
        self._cells = cells if len(cells) <= _MOST_CELLS else cells[:0]
        _, self._shape = np.unique(self._cells[:, 2:], axis=0, return_inverse=True)
        self._largest = largest
        right = 0.5 * _FILLED if align == "right" else 0.0
        self._texts, self._below = (
            [
                axes.text(x + right * width, y, text, color=color, ha=align, va="center", clip_on=True, in_layout=False)
                for (x, y, width, _), text, color in zip(self._cells, lines, colors, strict=False)
            ]
            for lines in (texts, below)
        )
        if align == "right":
            for text in self._texts:
                text.set_bbox({"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1.5})  # over grid lines
        axes.add_artist(self)

    @override
    def draw(self, renderer: Any) -> None:
        """Decides on sizes, with a `RendererBase`. Axes draw their artists from the lowest up: the texts come later."""
        if self.axes is None or not self._texts:
            return
        ends = [self.axes.transData.transform(self._cells[:, :2] + s * self._cells[:, 2:]) for s in (-0.5, 0.5)]
        room = _FILLED * np.abs(ends[1] - ends[0]) / renderer.points_to_pixels(1.0)
        wide, high = _widths(self._texts, renderer), LINE
        sizes = np.minimum(room[:, 0] / wide, room[:, 1] / high)
        two_lines = False
        if self._below:
            wide, high = np.maximum(wide, _BELOW * _widths(self._below, renderer)), LINE * (1.0 + _BELOW)
            smaller = np.minimum(room[:, 0] / wide, room[:, 1] / high)
            two_lines = bool(_BELOW * smaller.min() >= SMALLEST)
            sizes = smaller if two_lines else sizes
        fits = sizes >= SMALLEST
        common = np.full(len(sizes), self._largest)
        np.minimum.at(common, self._shape.ravel()[fits], sizes[fits])
        for i, text in enumerate(self._texts):
            size = float(common[self._shape.flat[i]])
            text.set(
                visible=bool(fits[i]), fontsize=size, verticalalignment="bottom" if two_lines else "center_baseline"
            )
            if self._below:
                self._below[i].set(visible=two_lines, fontsize=size * _BELOW, verticalalignment="top")


def _widths(texts: Sequence[Text], renderer: Any) -> Floats:
    """How wide each text is, in sizes of its font."""
    known: dict[str, float] = {}
    for text in texts:
        if text.get_text() not in known:
            font: Any = text.get_fontproperties().copy()
            font.set_size(LARGE)
            width, _, _ = renderer.get_text_width_height_descent(text.get_text(), font, False)
            known[text.get_text()] = max(width, 1.0) / renderer.points_to_pixels(LARGE)
    return np.array([known[text.get_text()] for text in texts])


class EveryNth(Locator):
    """Ticks at 0, 1, 2, ... or, where their labels would overlap, at every second, fifth, tenth ... of them.

    Args:
        count: How many there are.
        characters: The length of the longest label.
    """

    def __init__(self, count: int, characters: int) -> None:
        self._count, self._characters = count, characters

    @override
    def __call__(self) -> Any:
        axis: Any = self.axis  # or a stand-in without pixels, which nothing here makes
        label = axis.get_major_ticks(1)[0].label1
        upright = label.get_rotation() % 180.0 != 0.0
        along = axis.axis_name == "x"
        size = label.get_fontsize() * axis.axes.figure.dpi / 72.0
        needed = size * (LINE if along == upright else self._characters * _WIDE + _SPACE)
        box, (low, high) = axis.axes.bbox, sorted(axis.get_view_interval())
        room = (box.width if along else box.height) / max(high - low, 1e-9)
        step = next(n * 10**power for power in range(9) for n in (1, 2, 5) if n * 10**power * room >= needed)
        ticks = np.arange(0, self._count, step)
        return ticks[(low <= ticks) & (ticks <= high)]

    @override
    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The same, whatever the limits: needed for a locator that can be asked without an axis."""
        ticks = np.arange(self._count)
        return ticks[(vmin <= ticks) & (ticks <= vmax)]


def size_along(axis: Any, labels: Sequence[str]) -> float:
    """Returns the size, in points, at which the labels of an x `Axis` of cells fit one beside the other."""
    # Of the width, the layout will take some.
    return 0.8 * room_each(axis, len(labels)) / (max(map(len, labels)) * _WIDE + _SPACE)


def label_each(axis: Any, labels: Sequence[str]) -> None:
    """Puts label i at i on an `Axis` of cells: smaller where rows are thin, and upright where columns are narrow."""
    size = room_each(axis, len(labels)) / LINE
    if axis.axis_name == "x":
        upright = size_along(axis, labels) < READABLE
        axis.set_tick_params(rotation=90 if upright else 0)
        size = 0.8 * size if upright else size_along(axis, labels)
    axis.set_tick_params(labelsize=min(max(size, SMALLEST), SMALL))
    axis.set_major_locator(EveryNth(len(labels), max(map(len, labels))))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: labels[round(value)] if 0 <= round(value) < len(labels) else "")
    )


def room_each(axis: Any, count: int) -> float:
    """Returns how many points of the axis each of so many cells has, if the layout takes nothing of it."""
    box = axis.axes.bbox
    room: float = (box.width if axis.axis_name == "x" else box.height) * 72.0 / axis.axes.figure.dpi / count
    return room
