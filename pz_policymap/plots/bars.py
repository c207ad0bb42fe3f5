"""Pictures with a row a policy: how good each is, and how much each played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.plots.checks import amounts, check_axes, names_of, order_of
from pz_policymap.plots.style import FAINT, POLICY_COLORS, SMALL, plain
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
    """Draws how good each policy is, with the standard error of that, the best first.

    Args:
        axes: Where to draw.
        ratings: The ledger, or the ratings that it returned.
        names: What the policies are called. None: their numbers.
        order: The policies to show, from the first row to the last. None: all, the highest rating first.

    Returns:
        The axes it was given.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If an argument is of another kind.
        ValueError: If there is not one name a policy, if `order` repeats a policy or names one that is not there, or if
            the ledger has no prior, which ratings need.

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
    check_axes(axes)
    from pz_policymap.plots.fitting import CellTexts, label_each, room_each  # noqa: PLC0415  # needs matplotlib

    values, errors = _values_and_errors(ratings)
    labels = names_of("names", names, len(values), "a policy")
    shown = order_of(order, values)
    values, errors = values[shown], errors[shown]

    rows = np.arange(len(shown))
    low, high = float((values - errors).min()), float((values + errors).max())
    spread = max(high - low, 1.0)
    _rows(axes, len(shown), low - 0.06 * spread, high + 0.3 * spread)
    axes.axvline(0.0, color=FAINT, linewidth=1.2, zorder=0.5)  # the mean of all
    axes.hlines(rows, values - errors, values + errors, color=POLICY_COLORS[0], linewidth=2.0)
    axes.plot(values, rows, "o", color=POLICY_COLORS[0], markersize=min(6.0, 0.45 * room_each(axes.yaxis, len(rows))))
    column = [[high + 0.165 * spread, row, 0.27 * spread, 1.0] for row in rows]
    texts = [
        f"{value:+.0f} ± {error:.0f}".replace("-", "\N{MINUS SIGN}")
        for value, error in zip(values, errors, strict=True)
    ]
    CellTexts(axes, np.array(column), texts, [_ink(axes)] * len(texts), largest=SMALL, align="right")

    axes.set(xlabel="rating in points of Elo's scale, ± its standard error", ylabel="policy")
    label_each(axes.yaxis, [labels[policy] for policy in shown])
    plain(axes)
    return axes


def shares(
    axes: Axes,
    counts: ArrayLike | Mapping[str, ArrayLike],
    ideal: ArrayLike | None = None,
    names: Iterable[Any] | None = None,
) -> Axes:
    """Draws what share of all each policy played, and what its share should be.

    Args:
        axes: Where to draw.
        counts: How much each policy played, in any unit (`np.bincount(policy_ids.ravel())` counts seats,
            `PolicyStatistics.steps` steps), shape `(num_policies,)`; or several of these by name, to compare them.
        ideal: What each policy is due: numbers that need not sum to 1, as the weights of `Balanced`. None: the same.
        names: What the policies are called. None: their numbers.

    Returns:
        The axes it was given.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If an argument is of another kind.
        ValueError: If it has another shape, holds negative numbers or only zeros, or names more than ten counts.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import plots
        >>> axes = plots.shares(Figure().subplots(), [30, 50, 20], ideal=[1, 2, 1])
        >>> [float(bar.get_width()) for bar in axes.patches]
        [0.3, 0.5, 0.2]
    """
    check_axes(axes)
    from pz_policymap.plots.fitting import CellTexts, label_each  # noqa: PLC0415  # needs matplotlib

    played = _played(counts)
    size = len(next(iter(played.values())))
    due = amounts("ideal", np.ones(size) if ideal is None else ideal, size)
    due = due / due.sum()
    labels = names_of("names", names, size, "a policy")

    rows = np.arange(size)
    highest = max(float(due.max()), *(float(share.max()) for share in played.values()))
    single = len(played) == 1
    _rows(axes, size, 0.0, highest * (1.18 if single else 1.04))
    thick = (0.7 if single else 0.84) / len(played)
    handles: list[Any] = []
    for i, (name, share) in enumerate(played.items()):
        bars = rows + (i - (len(played) - 1) / 2.0) * thick
        handles.append(axes.barh(bars, share, 0.9 * thick, color=POLICY_COLORS[i], label=name))
    # With a rim, so that they are seen on bars, too.
    axes.vlines(due, rows - 0.46, rows + 0.46, color=axes.get_facecolor(), linewidth=3.5, zorder=3.0)
    handles.append(
        axes.vlines(due, rows - 0.46, rows + 0.46, color=_ink(axes), linewidth=1.5, zorder=3.1, label="ideal")
    )
    if single:
        column = [[highest * 1.1, row, highest * 0.14, 1.0] for row in rows]
        share = next(iter(played.values()))
        CellTexts(
            axes,
            np.array(column),
            [f"{100.0 * part:.1f}%" for part in share],
            [_ink(axes)] * size,
            largest=SMALL,
            align="right",
        )

    axes.set(xlabel="share" if not single else "share, and the ideal as a line", ylabel="policy")
    label_each(axes.yaxis, labels)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:.4g}%")
    plain(axes)
    if not single:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL)
    return axes


def _values_and_errors(ratings: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the numbers of ratings, or of the ledger that has them, or raises."""
    if isinstance(ratings, Payoff):
        ratings = ratings.ratings()
    if not isinstance(ratings, Ratings):
        raise TypeError(f"ratings must be a Payoff, or what its ratings() returns, got {ratings!r}")
    values, errors = (np.asarray(part, np.float64) for part in ratings)
    if values.ndim != 1 or not values.size or values.shape != errors.shape or not np.isfinite([values, errors]).all():
        raise ValueError(f"ratings must hold one finite value and error a policy, got {ratings!r}")
    return values, errors


def _played(counts: Any) -> dict[str, NDArray[np.float64]]:
    """Returns the shares of every policy, by what is compared, or raises."""
    if not isinstance(counts, Mapping):
        played = {"share": amounts("counts", counts)}
    else:
        if not 1 <= len(counts) <= len(POLICY_COLORS):
            raise ValueError(f"counts must name from 1 to {len(POLICY_COLORS)} of them, got {len(counts)}")
        size = np.size(next(iter(counts.values())))
        played = {str(name): amounts(f"counts[{name!r}]", value, size) for name, value in counts.items()}
    return {name: share / share.sum() for name, share in played.items()}


def _rows(axes: Axes, count: int, low: float, high: float) -> None:
    """Sets the limits for a row a policy, the first on top."""
    axes.set(xlim=(low, high), ylim=(count - 0.5, -0.5))
    axes.tick_params(labelsize=SMALL)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.8)
    axes.set_axisbelow(True)


def _ink(axes: Axes) -> Any:
    """The colour of the axes' own text, which is to be seen on the background, dark or light."""
    return axes.xaxis.label.get_color()
