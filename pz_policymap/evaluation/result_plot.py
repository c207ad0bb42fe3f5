"""The picture of a tournament."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pz_policymap import plots
from pz_policymap.plots.checks import names_of
from pz_policymap.plots.style import MAX_NUMBERED, ink_on, label_each, number_size, plain, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pz_policymap.evaluation.tournament_result import TournamentResult


def figure_of(result: TournamentResult) -> Figure:
    """Returns a figure of win rates and ratings, or of mean returns if no game was won."""
    tall = max(3.5, 0.4 * len(result.names))
    if not result.competitive:
        return side_by_side(lambda axes: _mean_returns(axes, result), sizes=[(tall + 2.5, tall)])
    return side_by_side(
        lambda axes: plots.payoff(axes, result.payoff, result.names, result.order),
        lambda axes: plots.ratings(axes, result.ratings(), result.names, result.order),
        sizes=[(tall + 1.5, tall), (5.0, tall)],
    )


def _mean_returns(axes: Axes, result: TournamentResult) -> None:
    """Draws the mean return of each entrant (row) with each partner (column)."""
    order = result.order
    names = names_of("names", result.names, len(order))
    values = result.payoff.mean_returns[np.ix_(order, order)]
    image = axes.imshow(values, cmap="viridis", aspect="auto", interpolation="nearest")
    if len(order) <= MAX_NUMBERED:
        for row, column in np.argwhere(~np.isnan(values)).tolist():
            value = values[row, column]
            ink = ink_on(image.to_rgba(np.array([value]))[0])
            axes.text(
                column, row, f"{value:.2f}", color=ink, fontsize=number_size(len(order)), ha="center", va="center"
            )
    axes.set(xlabel="with", ylabel="mean return of")
    for axis in (axes.xaxis, axes.yaxis):
        label_each(axis, [names[policy] for policy in order])
    plain(axes)
    axes.figure.colorbar(image, ax=axes, label="mean return")
