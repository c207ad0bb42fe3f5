"""Numbers and names that fit: sizes are known when a figure is drawn, so that is when it is decided what to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
_MOST_CELLS = 5000  # more have no room for numbers in a figure that anybody looks at


class CellTexts(Artist):
    """Texts in the cells of a grid, in one size: the largest that fits; where even the smallest does not, none.

    Args:
        axes: Where to.
        cells: The centre, the width and the height of each cell in data coordinates, shape `(n, 4)`.
        texts: What stands in each.
        colors: Of each.
        below: What stands below it, smaller, if there is room for that in all cells. Empty: nothing.
    """

    def __init__(
        self, axes: Axes, cells: Floats, texts: Sequence[str], colors: Sequence[str], below: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.set_zorder(-1.0)  # first to be drawn
        self.set_in_layout(False)
        self._cells = cells if len(cells) <= _MOST_CELLS else cells[:0]
        self._texts, self._below = (
            [
                axes.text(x, y, text, color=color, ha="center", va="center", clip_on=True, in_layout=False)
                for (x, y, _, _), text, color in zip(self._cells, lines, colors, strict=False)
            ]
            for lines in (texts, below)
        )
        axes.add_artist(self)

    @override
    def draw(self, renderer: Any) -> None:
        """Decides on sizes, with a `RendererBase`. Axes draw their artists from the lowest up: the texts come later."""
        if self.axes is None or not self._texts:
            return
        ends = [self.axes.transData.transform(self._cells[:, :2] + s * self._cells[:, 2:]) for s in (-0.5, 0.5)]
        room = _FILLED * np.abs(ends[1] - ends[0]) / renderer.points_to_pixels(1.0)
        two_lines = False
        if self._below:
            wide = np.maximum(_widths(self._texts, renderer), _BELOW * _widths(self._below, renderer))
            sizes = np.minimum(room[:, 0] / wide, room[:, 1] / (LINE * (1.0 + _BELOW)))
            two_lines = bool(_BELOW * sizes.min() >= SMALLEST)
        if not two_lines:
            sizes = np.minimum(room[:, 0] / _widths(self._texts, renderer), room[:, 1] / LINE)
        fits = sizes >= SMALLEST
        size = float(np.minimum(sizes[fits], LARGE).min(initial=LARGE))
        for text, shown in zip(self._texts, fits.tolist(), strict=True):
            text.set(visible=shown, fontsize=size, verticalalignment="bottom" if two_lines else "center")
        for text in self._below:
            text.set(visible=two_lines, fontsize=size * _BELOW, verticalalignment="top")


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
    def __call__(self) -> list[int]:
        axis: Any = self.axis  # or a stand-in without pixels, which nothing here makes
        label = axis.get_major_ticks(1)[0].label1
        upright = label.get_rotation() % 180.0 != 0.0
        along = axis.axis_name == "x"
        size = label.get_fontsize() * axis.axes.figure.dpi / 72.0
        needed = size * (LINE if along == upright else self._characters * _WIDE + 1.0)
        box, (low, high) = axis.axes.bbox, sorted(axis.get_view_interval())
        room = (box.width if along else box.height) / max(high - low, 1e-9)
        step = next(n * 10**power for power in range(9) for n in (1, 2, 5) if n * 10**power * room >= needed)
        return [i for i in range(0, self._count, step) if low <= i <= high]

    @override
    def tick_values(self, vmin: float, vmax: float) -> list[int]:
        """The same, whatever the limits: needed for a locator that can be asked without an axis."""
        return [i for i in range(self._count) if vmin <= i <= vmax]


def label_each(axis: Any, labels: Sequence[str]) -> None:
    """Puts label i at i on an `Axis` of cells: upright below narrow columns, smaller where rows are thin."""
    box, characters = axis.axes.bbox, max(map(len, labels))
    room = (box.width if axis.axis_name == "x" else box.height) / len(labels) * 72.0 / axis.axes.figure.dpi
    if axis.axis_name == "x":
        upright = characters > 3 and 0.7 * room < SMALL * _WIDE * characters  # the layout will take some of the width
        room = room if upright else 1.2 * room / (_WIDE * characters)
        axis.set_tick_params(rotation=90 if upright else 0)
    axis.set_tick_params(labelsize=min(max(room / LINE, SMALLEST), SMALL))
    axis.set_major_locator(EveryNth(len(labels), characters))
    axis.set_major_formatter(FuncFormatter(lambda value, _: labels[round(value)]))
