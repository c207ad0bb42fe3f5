"""Pictures made of cells: assignments over episodes, and win rates between policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.cadence import Cadence
from pz_policymap.plots.checks import names_of, order_of
from pz_policymap.plots.style import (
    MAX_NUMBERED,
    SMALL,
    ink_on,
    label_each,
    number_size,
    plain,
    policy_colors,
    rate_colors,
)
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.ratings import Ratings, bradley_terry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NARROWEST = 1 / 40  # of the width: a narrower block shows no number


def assignments(
    axes: Axes,
    policy_ids: ArrayLike,
    agents: Iterable[Any] | None = None,
    num_policies: int | None = None,
    resample_every: int | None = None,
    warmup_episodes: int = 0,
    key: bool = True,
) -> Axes:
    """Draws which policy controls which agent: one row per agent, one column per episode, a gap at each resample.

    Args:
        axes: Where to draw.
        policy_ids: The policy of each seat in each episode, integers of shape `(num_episodes, num_seats)`. -1 marks an
            agent that did not take part; its cell is hatched.
        agents: Names of the agents in seat order. None: the numbers of the seats.
        num_policies: Size of the population, for the colours. None: up to the highest policy in `policy_ids`.
        resample_every: Number of episodes between resamples, >= 1. None: a gap wherever the assignment changes.
        warmup_episodes: Number of first episodes that each resample, >= 0; used with `resample_every`.
        key: Whether to show the colour of each policy beside the axes.

    Returns:
        The axes.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a shape or a number is out of range.

    Example:
        >>> from matplotlib.figure import Figure
        >>> import pz_policymap as pm
        >>> policy_ids = pm.assignments(4, ["player_0", "player_1"], seed=0, episode=range(20), resample_every=5)
        >>> axes = pm.plots.assignments(Figure().subplots(), policy_ids, resample_every=5)
        >>> axes.images[0].get_array().shape
        (2, 20)
    """
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  # an extra

    ids = _policy_ids(policy_ids)
    num_episodes, num_seats = ids.shape
    names = names_of("agents", agents, num_seats)
    highest = max(int(ids.max()), 0)
    count = highest + 1 if num_policies is None else integer("num_policies", num_policies, highest + 1)
    starts = _starts(ids, resample_every, warmup_episodes)

    colors = policy_colors(count)
    image = np.ma.masked_less(ids.T, 0)
    axes.imshow(image, colors, aspect="auto", interpolation="nearest", vmin=-0.5, vmax=count - 0.5)
    if (ids < 0).any():
        _hatch(axes)
    widths = np.diff(np.append(starts, num_episodes))
    numbered = max(count, num_seats) <= MAX_NUMBERED
    for seat in range(num_seats):
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            policy, x = int(ids[start, seat]), start + (width - 1) / 2.0
            if policy >= 0 and numbered and width >= _NARROWEST * num_episodes:
                _number(axes, x, seat, str(policy), ink_on(colors(policy)), number_size(num_seats))
    _gaps(axes, starts[1:] - 0.5, np.arange(1, num_seats) - 0.5)

    axes.set(xlabel="episode", ylabel="agent" if agents is not None else "seat")
    label_each(axes.yaxis, names)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    plain(axes)
    if key:
        _policy_key(axes, count)
    return axes


def payoff(
    axes: Axes,
    payoff: Payoff,
    names: Iterable[Any] | None = None,
    order: Sequence[int] | None = None,
    key: bool = True,
) -> Axes:
    """Draws the win rate of each policy (row) against each other (column), the best policies first.

    The colour is the win rate. For up to 20 policies a number shows it as well, and for up to 10 the number of games
    is shown below. Pairs without games are hatched; a policy against itself is left blank.

    Args:
        axes: Where to draw.
        payoff: The ledger.
        names: Names of the policies. None: their numbers.
        order: The policies to show, from the first row to the last. None: all, the highest rating first. In a ledger
            without a prior, ratings use a prior of one game.
        key: Whether to show the colour of each win rate beside the axes.

    Returns:
        The axes.

    Raises:
        ValueError: If there is not one name per policy, or if `order` repeats a policy or holds an unknown one.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import Episode, Payoff, plots
        >>> ledger = Payoff(num_policies=3)
        >>> for _ in range(8):
        ...     ledger.record(Episode(policies=[0, 1], returns=[-1.0, 1.0]))
        >>> axes = plots.payoff(Figure().subplots(), ledger)
        >>> [label.get_text() for label in axes.get_yticklabels()]  # 1 beat 0, 2 has not played
        ['1', '2', '0']
    """
    from matplotlib.colors import ListedColormap  # noqa: PLC0415  # an extra

    labels = names_of("names", names, payoff.num_policies)
    shown = order_of(order, rated(payoff).values)
    rates, games = payoff.win_rates[np.ix_(shown, shown)], payoff.games[np.ix_(shown, shown)]
    size = number_size(len(shown))

    colors = rate_colors()
    axes.imshow(np.ma.masked_where(games == 0, rates), colors, aspect="auto", interpolation="nearest", vmin=0, vmax=1)
    _hatch(axes)
    itself = np.ma.masked_equal(np.eye(len(shown)), 0.0)
    axes.imshow(itself, ListedColormap([axes.get_facecolor()]), aspect="auto", interpolation="nearest")
    if len(shown) <= MAX_NUMBERED:
        for row, column in np.argwhere(games).tolist():
            rate, count = float(rates[row, column]), int(games[row, column])
            text = f"{rate:.2f}\n{count}" if size > SMALL else f"{rate:.2f}"
            _number(axes, column, row, text, ink_on(colors(rate)), size)
    borders = np.arange(1, len(shown)) - 0.5
    _gaps(axes, borders, borders)

    axes.set(xlabel="against policy", ylabel="policy")
    for axis in (axes.xaxis, axes.yaxis):
        label_each(axis, [labels[policy] for policy in shown])
    plain(axes)
    if key:
        _rate_key(axes)
    return axes


def rated(payoff: Payoff) -> Ratings:
    """Returns the ratings of a ledger. One without a prior is rated with a prior of one game."""
    if payoff.prior > 0.0:
        return payoff.ratings()
    wins, draws, _, _ = payoff.decayed
    return bradley_terry(wins + draws / 2.0, prior=1.0)


def _policy_ids(value: ArrayLike) -> NDArray[np.int64]:
    """Returns the policies as an array, or raises."""
    ids = np.asarray(value)
    if ids.ndim != 2 or not ids.size:
        raise ValueError(f"policy_ids must have shape (num_episodes, num_seats), both >= 1, got {ids.shape}")
    if not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"policy_ids must be integers, got {ids.dtype}")
    if ids.min() < -1 or ids.max() > MAX_INDEX:
        raise ValueError(f"policy_ids must be from -1 to {MAX_INDEX}, got {ids.min()} to {ids.max()}")
    return ids.astype(np.int64)


def _starts(ids: NDArray[np.int64], resample_every: int | None, warmup_episodes: int) -> NDArray[np.intp]:
    """Returns the first episode of each block; a change within a block begins another one."""
    begins = np.append(True, (ids[1:] != ids[:-1]).any(axis=1))
    if resample_every is not None:
        begins |= Cadence(resample_every, warmup_episodes).due(np.arange(len(ids)))
    return np.flatnonzero(begins)


def _number(axes: Axes, x: float, y: float, text: str, color: str, size: float) -> None:
    """Writes a number into the middle of a cell."""
    axes.text(x, y, text, color=color, fontsize=size, ha="center", va="center", clip_on=True, linespacing=1.0)


def _hatch(axes: Axes) -> None:
    """Hatches the background, which shows in cells that the image leaves out."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415  # an extra

    place, colors = {"transform": axes.transAxes, "zorder": -1.0}, {"facecolor": "#f3f3f3", "edgecolor": "#c4c4c4"}
    background: Any = Rectangle((0.0, 0.0), 1.0, 1.0, hatch="////", linewidth=0.0, **place, **colors)  # type: ignore[arg-type]
    axes.add_patch(background)


def _gaps(axes: Axes, x: NDArray[Any], y: NDArray[Any]) -> None:
    """Draws lines in the background colour between cells, thinner where there are many."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    color = axes.get_facecolor()
    axes.vlines(x, low, high, color=color, linewidth=min(1.5, 40.0 / max(len(x), 1)))
    axes.hlines(y, left, right, color=color, linewidth=min(1.5, 20.0 / max(len(y), 1)))


def _policy_key(axes: Axes, count: int) -> None:
    """Shows the colour of each policy."""
    key = axes.inset_axes((1.02, 0.0, 0.025, 1.0))
    key.imshow(np.arange(count)[:, None], policy_colors(count), aspect="auto", interpolation="nearest")
    key.yaxis.tick_right()
    label_each(key.yaxis, [str(policy) for policy in range(count)])
    _gaps(key, np.array([]), np.arange(1, count) - 0.5)
    _finish_key(key, "policy")


def _rate_key(axes: Axes) -> None:
    """Shows the colour of each win rate."""
    key = axes.inset_axes((1.02, 0.0, 0.025, 1.0))
    extent = (0.0, 1.0, 0.0, 1.0)
    key.imshow(np.linspace(1.0, 0.0, 256)[:, None], rate_colors(), aspect="auto", extent=extent, vmin=0, vmax=1)
    key.yaxis.tick_right()
    key.set_yticks([0.0, 0.5, 1.0], ["0", "0.5", "1"], fontsize=SMALL)
    _finish_key(key, "win rate")


def _finish_key(key: Axes, label: str) -> None:
    key.set_xticks([])
    key.yaxis.set_label_position("right")
    key.set_ylabel(label)
    plain(key)
