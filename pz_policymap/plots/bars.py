"""Pictures with one row per policy: ratings, and shares of the experience."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.plots.checks import names_of, order_of, shares_of
from pz_policymap.plots.style import FAINT, MAX_NUMBERED, POLICY_COLORS, SMALL, label_each, number_size, plain
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.ratings import Ratings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ratings(
    axes: Axes,
    ratings: Payoff | Ratings,
    names: Iterable[Any] | None = None,
    order: Sequence[int] | None = None,
) -> Axes:
    """Draws the rating of each policy with its standard error, the best first.

    Args:
        axes: Where to draw.
        ratings: A ledger, or what its `ratings()` returned.
        names: Names of the policies. None: their numbers.
        order: The policies to show, from the first row to the last. None: all, the highest rating first.

    Returns:
        The axes.

    Raises:
        ValueError: If there is not one name per policy, if `order` repeats a policy or holds an unknown one, or if the
            ledger has no prior, which ratings need.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import Episode, Payoff, plots
        >>> ledger = Payoff(num_policies=2)
        >>> for _ in range(10):
        ...     ledger.record(Episode(policies=[0, 1], returns=[1.0, 0.0]))
        >>> axes = plots.ratings(Figure().subplots(), ledger)
        >>> axes.lines[-1].get_xdata().round().tolist()
        [239.0, -239.0]
    """
    values, errors = (np.asarray(part) for part in (ratings.ratings() if isinstance(ratings, Payoff) else ratings))
    labels = names_of("names", names, len(values))
    shown = order_of(order, values)
    values, errors = values[shown], errors[shown]

    rows = np.arange(len(shown))
    low, high = float((values - errors).min()), float((values + errors).max())
    spread = max(high - low, 1.0)
    numbered = len(shown) <= MAX_NUMBERED
    _set_up(axes, len(shown), low - 0.06 * spread, high + (0.3 if numbered else 0.06) * spread)
    axes.axvline(0.0, color=FAINT, linewidth=1.2, zorder=0.5)  # the mean of all
    axes.hlines(rows, values - errors, values + errors, color=POLICY_COLORS[0], linewidth=2.0)
    axes.plot(values, rows, "o", color=POLICY_COLORS[0], markersize=6.0 if numbered else 4.0)
    if numbered:
        _numbers(axes, [f"{value:+.0f} ± {error:.0f}" for value, error in zip(values, errors, strict=True)])

    axes.set(xlabel="rating in Elo points, ± its standard error", ylabel="policy")
    label_each(axes.yaxis, [labels[policy] for policy in shown])
    plain(axes)
    return axes


def shares(
    axes: Axes,
    counts: ArrayLike | Mapping[str, ArrayLike],
    ideal: ArrayLike | None = None,
    names: Iterable[Any] | None = None,
) -> Axes:
    """Draws the share of the experience that each policy had, with its ideal share as a line.

    Args:
        axes: Where to draw.
        counts: Experience of each policy, in any unit, shape `(num_policies,)`. `np.bincount(policy_ids.ravel())`
            counts seats, `PolicyStatistics.steps` steps. A dict of several arrays compares up to 10 of them by name.
        ideal: Ideal share of each policy; need not sum to 1, like the weights of `Balanced`. None: equal shares.
        names: Names of the policies. None: their numbers.

    Returns:
        The axes.

    Raises:
        ValueError: If a shape is wrong, if counts are negative or all 0, or if more than ten are compared.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import plots
        >>> axes = plots.shares(Figure().subplots(), [30, 50, 20], ideal=[1, 2, 1])
        >>> [float(bar.get_width()) for bar in axes.patches]
        [0.3, 0.5, 0.2]
    """
    compared = _compared(counts)
    single = len(compared) == 1
    size = len(next(iter(compared.values())))
    due = shares_of("ideal", np.ones(size) if ideal is None else ideal, size)
    labels = names_of("names", names, size)

    rows = np.arange(size)
    highest = max(float(due.max()), *(float(share.max()) for share in compared.values()))
    numbered = single and size <= MAX_NUMBERED
    _set_up(axes, size, 0.0, highest * (1.18 if numbered else 1.04))
    thick = (0.7 if single else 0.84) / len(compared)
    handles: list[Any] = []
    for i, (name, share) in enumerate(compared.items()):
        bars = rows + (i - (len(compared) - 1) / 2.0) * thick
        handles.append(axes.barh(bars, share, 0.9 * thick, color=POLICY_COLORS[i], label=name))
    rim, ink = axes.get_facecolor(), axes.xaxis.label.get_color()
    axes.vlines(due, rows - 0.46, rows + 0.46, color=rim, linewidth=3.5, zorder=3.0)  # so that the line shows on bars
    handles.append(axes.vlines(due, rows - 0.46, rows + 0.46, color=ink, linewidth=1.5, zorder=3.1, label="ideal"))
    if numbered:
        _numbers(axes, [f"{100.0 * part:.1f}%" for part in next(iter(compared.values()))])

    axes.set(xlabel="share, and the ideal as a line" if single else "share", ylabel="policy")
    label_each(axes.yaxis, labels)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:.4g}%")
    plain(axes)
    if not single:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL)
    return axes


def _compared(counts: Any) -> dict[str, NDArray[np.float64]]:
    """Returns the shares of all policies, by the name of what is compared."""
    if not isinstance(counts, Mapping):
        return {"share": shares_of("counts", counts)}
    if not 1 <= len(counts) <= len(POLICY_COLORS):
        raise ValueError(f"counts must have from 1 to {len(POLICY_COLORS)} entries, got {len(counts)}")
    size = np.size(next(iter(counts.values())))
    return {str(name): shares_of(f"counts[{name!r}]", value, size) for name, value in counts.items()}


def _set_up(axes: Axes, count: int, low: float, high: float) -> None:
    """Sets the limits and the grid for one row per policy, the first on top."""
    axes.set(xlim=(low, high), ylim=(count - 0.5, -0.5))
    axes.tick_params(labelsize=SMALL)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.8)
    axes.set_axisbelow(True)


def _numbers(axes: Axes, texts: Sequence[str]) -> None:
    """Writes one text per row at the right border, over the grid lines."""
    box = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1.0}
    size, ink = min(SMALL, number_size(len(texts))), axes.xaxis.label.get_color()
    for row, text in enumerate(texts):
        shown, beside = text.replace("-", "\N{MINUS SIGN}"), axes.get_yaxis_transform()
        axes.text(0.99, row, shown, transform=beside, color=ink, fontsize=size, ha="right", va="center", bbox=box)
