"""Pictures made of cells: who plays whom over episodes, and who beats whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, integer
from pz_policymap.cadence import Cadence
from pz_policymap.plots.checks import check_axes, names_of, order_of
from pz_policymap.plots.style import SMALL, ink_on, plain, policy_colors, rate_colors
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.ratings import Ratings, bradley_terry

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def assignments(
    axes: Axes,
    policy_ids: ArrayLike,
    agents: Iterable[Any] | None = None,
    num_policies: int | None = None,
    resample_every: int | None = None,
    warmup_episodes: int = 0,
    key: bool = True,
) -> Axes:
    """Draws which policy plays which agent: a row an agent, a column an episode, a gap where a draw was made.

    Args:
        axes: Where to draw.
        policy_ids: Who played each seat in each episode, integers of shape `(num_episodes, num_seats)`; -1: nobody.
        agents: What the agents are called, in seat order. None: the numbers of the seats.
        num_policies: The size of the population, for the colours. None: up to the highest policy that played.
        resample_every: Episodes a draw was held for, as `wrap` takes it. None: as the assignments show, which is
            until one of them changed.
        warmup_episodes: How many episodes at the start drew each for itself; needs `resample_every`.
        key: Whether to show beside the axes which colour is which policy.

    Returns:
        The axes it was given.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If an argument is of another kind.
        ValueError: If it has another shape or is out of range.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import PolicyAssigner, plots
        >>> assigner = PolicyAssigner(4, ["player_0", "player_1"], resample_every=5, seed=0)
        >>> policy_ids = [assigner.begin_episodes()[0] for _ in range(20)]
        >>> axes = plots.assignments(Figure().subplots(), policy_ids, assigner.agents, resample_every=5)
        >>> axes.images[0].get_array().shape
        (2, 20)
    """
    check_axes(axes)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  # an extra

    from pz_policymap.plots.fitting import CellTexts, label_each  # noqa: PLC0415  # needs matplotlib

    ids = _policy_ids(policy_ids)
    names = names_of("agents", agents, ids.shape[1], "a seat")
    highest = max(int(ids.max()), 0)
    count = highest + 1 if num_policies is None else integer("num_policies", num_policies, highest + 1)
    starts = _starts(ids, resample_every, warmup_episodes)

    colors = policy_colors(count)
    image = np.ma.masked_less(ids.T, 0)
    axes.imshow(image, colors, aspect="auto", interpolation="nearest", vmin=-0.5, vmax=count - 0.5)
    widths = np.diff(np.append(starts, len(ids)))
    # A cell for every seat of a block: its centre, width and height.
    seats = np.arange(ids.shape[1])
    x, y = (grid.ravel() for grid in np.meshgrid(starts + (widths - 1) / 2.0, seats))
    cells = np.column_stack([x, y, np.tile(widths, len(seats)), np.ones(len(x))])
    played = ids[starts].T.ravel()
    nobody = played < 0
    _hatch(axes, cells[nobody])
    shown = played[~nobody]
    CellTexts(axes, cells[~nobody], [str(p) for p in shown.tolist()], [ink_on(colors(p)) for p in shown.tolist()])
    _gaps(axes, starts[1:] - 0.5, seats[1:] - 0.5, len(ids) / len(starts))

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
    """Draws how likely each policy beats each other, and in how many games that was found, the best policies first.

    A cell is the policy of its row against the policy of its column: its colour and upper number are the win rate, its
    lower number the games. Pairs that have not met are hatched, a policy against itself is left blank.

    Args:
        axes: Where to draw.
        payoff: The ledger.
        names: What the policies are called. None: their numbers. Where columns are too narrow for names, they have
            numbers, which stand before the names of the rows as well.
        order: The policies to show, from the first row to the last. None: all by their rating, the highest first. In a
            ledger without a prior, ratings are taken to have one of a game.
        key: Whether to show beside the axes which colour is which win rate.

    Returns:
        The axes it was given.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If an argument is of another kind.
        ValueError: If there is not one name a policy, or if `order` repeats a policy or names one that is not there.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from pz_policymap import Episode, Payoff, plots
        >>> ledger = Payoff(num_policies=3)
        >>> for _ in range(8):
        ...     ledger.record(Episode(policies=[0, 1], returns=[-1.0, 1.0]))
        >>> axes = plots.payoff(Figure().subplots(), ledger)
        >>> [label.get_text() for label in axes.get_yticklabels()]  # 1 won against 0, nobody met 2
        ['1', '2', '0']
    """
    check_axes(axes)
    from pz_policymap.plots.fitting import READABLE, CellTexts, label_each, size_along  # noqa: PLC0415  # an extra

    if not isinstance(payoff, Payoff):
        raise TypeError(f"payoff must be a Payoff, got {payoff!r}")
    labels = names_of("names", names, payoff.num_policies, "a policy")
    shown = order_of(order, rated(payoff).values)
    rates, games = payoff.win_rates[np.ix_(shown, shown)], payoff.games[np.ix_(shown, shown)]

    colors = rate_colors()
    axes.imshow(np.ma.masked_where(games == 0, rates), colors, aspect="auto", interpolation="nearest", vmin=0, vmax=1)
    row, column = np.nonzero(games)
    cells = np.column_stack([column, row, np.ones((len(row), 2))]).astype(np.float64)
    CellTexts(
        axes,
        cells,
        [f"{rate:.2f}" for rate in rates[row, column].tolist()],
        [ink_on(colors(rate)) for rate in rates[row, column].tolist()],
        below=[str(count) for count in games[row, column].tolist()],
    )
    row, column = np.nonzero((games == 0) & ~np.eye(len(shown), dtype=np.bool_))
    _hatch(axes, np.column_stack([column, row, np.ones((len(row), 2))]).astype(np.float64))
    borders = np.arange(1, len(shown)) - 0.5
    _gaps(axes, borders, borders, 1.0)

    axes.set(xlabel="against policy", ylabel="policy")
    numbers, labels = [str(policy) for policy in shown], [labels[policy] for policy in shown]
    if size_along(axes.xaxis, labels) < READABLE:  # columns are numbers then, which the rows explain
        pairs = zip(numbers, labels, strict=True)
        labels = [name if name.split()[:1] == [number] else f"{number} {name}" for number, name in pairs]
        label_each(axes.xaxis, numbers)
    else:
        label_each(axes.xaxis, labels)
    label_each(axes.yaxis, labels)
    plain(axes)
    if key:
        _rate_key(axes)
    return axes


def rated(payoff: Payoff) -> Ratings:
    """Returns the ratings of a ledger; without a prior, which they need, they are taken to have one of a game."""
    if payoff.prior > 0.0:
        return payoff.ratings()
    wins, draws, _, _ = payoff.decayed
    return bradley_terry(wins + draws / 2.0, prior=1.0)


def _policy_ids(value: ArrayLike) -> NDArray[np.int64]:
    """Returns who played whom as an array, or raises."""
    try:
        ids = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"policy_ids must have the shape (num_episodes, num_seats), got {value!r}") from error
    if ids.ndim != 2 or not ids.size:
        raise ValueError(f"policy_ids must have the shape (num_episodes, num_seats), none 0, got shape {ids.shape}")
    if not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"policy_ids must be integers, got {ids.dtype}")
    if ids.min() < -1 or ids.max() > MAX_INDEX:
        raise ValueError(f"policy_ids must be from -1 (nobody) to {MAX_INDEX}, got {ids.min()} to {ids.max()}")
    return ids.astype(np.int64)


def _starts(ids: NDArray[np.int64], resample_every: int | None, warmup_episodes: int) -> NDArray[np.intp]:
    """Returns the episodes at which a block begins."""
    if resample_every is None:
        if integer("warmup_episodes", warmup_episodes, 0):
            raise ValueError(f"warmup_episodes={warmup_episodes} needs resample_every, got None")
        begins = np.append(True, (ids[1:] != ids[:-1]).any(axis=1))
    else:
        begins = Cadence(resample_every, warmup_episodes).due(np.arange(len(ids)))
        held = ids[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        if (held != ids).any():
            episode = int(np.flatnonzero((held != ids).any(axis=1))[0])
            raise ValueError(
                f"policy_ids must stay as they are between draws, with resample_every={resample_every} and "
                f"warmup_episodes={warmup_episodes}, but they change at episode {episode}"
            )
    return np.flatnonzero(begins)


def _hatch(axes: Axes, cells: NDArray[np.float64]) -> None:
    """Marks cells that hold nothing, of which the centre, the width and the height are given."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415  # an extra

    if not len(cells):
        return
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    outlines = cells[:, None, :2] + corners * cells[:, None, 2:]
    axes.add_collection(
        PolyCollection(list(outlines), facecolor="#f3f3f3", edgecolor="#c4c4c4", hatch="////", linewidth=0.0),
        autolim=False,
    )


def _gaps(axes: Axes, x: NDArray[Any], y: NDArray[Any], width: float) -> None:
    """Draws lines of the background between cells, much thinner than cells of this mean width and of height 1."""
    box, (left, right), (low, high) = axes.bbox, axes.get_xlim(), axes.get_ylim()
    points = 72.0 / axes.figure.dpi
    across = 0.12 * points * width * box.width / abs(right - left)
    down = 0.12 * points * box.height / abs(high - low)
    axes.vlines(x, low, high, color=axes.get_facecolor(), linewidth=min(across, 1.6))
    axes.hlines(y, left, right, color=axes.get_facecolor(), linewidth=min(down, 1.6))


def _policy_key(axes: Axes, count: int) -> None:
    """Shows which colour is which policy."""
    from pz_policymap.plots.fitting import label_each  # noqa: PLC0415  # needs matplotlib

    key = axes.inset_axes((1.02, 0.0, 0.025, 1.0))
    key.imshow(np.arange(count)[:, None], policy_colors(count), aspect="auto", interpolation="nearest")
    key.yaxis.tick_right()
    label_each(key.yaxis, [str(policy) for policy in range(count)])
    _gaps(key, np.array([]), np.arange(1, count) - 0.5, 1.0)
    _finish_key(key, "policy")


def _rate_key(axes: Axes) -> None:
    """Shows which colour is which win rate."""
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
