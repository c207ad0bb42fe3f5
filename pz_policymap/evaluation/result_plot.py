"""The picture of a tournament."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pz_policymap import plots
from pz_policymap.plots.checks import names_of
from pz_policymap.plots.style import MAX_NUMBERED, ink_on, label_each, number_size, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pz_policymap.evaluation.tournament_result import TournamentResult


def figure_of(result: TournamentResult) -> Figure:
    """Returns a figure of win rates and ratings, or of mean returns if no game was won."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra

    tall = max(3.5, 0.4 * len(result.names))
    if not result.competitive:
        figure = Figure(figsize=(tall + 2.5, tall), layout="constrained")
        _mean_returns(figure.subplots(), result)
        return figure
    figure = Figure(figsize=(tall + 6.5, tall), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[tall + 1.5, 5.0])
    plots.payoff(left, result.payoff, result.names, result.order)
    plots.ratings(right, result.payoff, result.names, result.order)
    return figure


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
