"""What all pictures have in common: colours that differ in lightness, sizes, and axes without clutter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

# Of policies 0, 1, ...: whoever sees only lightness, or no red and green, can still tell them apart.
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
RATE_COLORS = ("#16305f", "#44689f", "#a9adb4", "#e9bd6c", "#fff2cc")  # from dark to light, so in grey, too
INK, FAINT, PAPER = "#262626", "#8c8c8c", "#ffffff"  # in cells, whose colours are known; else those of the axes
LARGE, SMALL, SMALLEST = 11.0, 9.0, 5.5  # points


def policy_colors(num_policies: int) -> Colormap:
    """Returns a colour a policy: a sequential map where there are too many to tell apart."""
    import matplotlib  # noqa: PLC0415  # an extra
    from matplotlib.colors import ListedColormap  # noqa: PLC0415

    if num_policies <= len(POLICY_COLORS):
        return ListedColormap(list(POLICY_COLORS[:num_policies]), "policies")
    return matplotlib.colormaps["viridis"].resampled(num_policies)


def rate_colors() -> Colormap:
    """Returns the colours of win rates: dark blue for losing, grey for even, light gold for winning."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415  # an extra

    return LinearSegmentedColormap.from_list("win_rates", list(RATE_COLORS))


def ink_on(color: tuple[float, float, float, float]) -> str:
    """Returns the colour of text that can be read on another: the one with the greater contrast.

    Source: relative luminance and contrast as in the Web Content Accessibility Guidelines 2.2.

    Example:
        >>> ink_on((1.0, 1.0, 0.5, 1.0)), ink_on((0.0, 0.0, 0.5, 1.0))
        ('#262626', '#ffffff')
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return INK if (luminance + 0.05) ** 2 > 1.05 * 0.07 else PAPER  # luminance of the ink: 0.02


def plain(axes: Axes) -> None:
    """Takes away the frame and the tick marks, which cells and bars do without."""
    axes.spines[:].set_visible(False)
    axes.tick_params(which="both", length=0)
