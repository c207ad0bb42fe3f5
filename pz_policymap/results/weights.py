"""Probability vectors over a population, for `Weighted`: whom to play, by results or by age. Pure functions.

    payoff = pm.Payoff(4)
    opponents = pm.Weighted(lambda: pm.pfsp(payoff.win_rates[0]))   # asked at every draw

Each is total: an empty population has the empty vector, a population of one plays itself, and where a formula gives
weight to nobody (everybody is beaten always, say) all are equally likely. None ever returns NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer, number

Vector = NDArray[np.float64]
Weighting = Literal["hard", "variance", "linear", "linear_capped"] | Callable[[Vector], ArrayLike]

_WEIGHTINGS: Mapping[str, Callable[[Vector], Vector]] = {
    "variance": lambda x: x * (1.0 - x),
    "linear": lambda x: 1.0 - x,
    "linear_capped": lambda x: np.minimum(0.5, 1.0 - x),
}


def pfsp(win_rates: ArrayLike, weighting: Weighting = "hard", power: float = 2.0, floor: float = 0.0) -> Vector:
    """Prioritised fictitious self-play: opponents by how often the learner beats them.

    With x the learner's win rate against an opponent, the opponent's weight is

        hard            (1 - x)**power      those whom the learner cannot beat
        variance        x (1 - x)           those of its own level
        linear          1 - x
        linear_capped   min(1/2, 1 - x)

    Source: AlphaStar (Vinyals et al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement
    learning", Methods and pseudocode).

    Args:
        win_rates: The learner's win rate against each opponent, from 0 to 1, shape `(num_policies,)`; or one row a
            learner, shape `(num_learners, num_policies)`, as `Payoff.win_rates` is. There the diagonal is one half: a
            learner may meet itself, as an equal. Set it to 1 to leave that out (nobody beats itself: weight 0).
        weighting: A name from the table, or a function from win rates to weights of the same shape, not negative.
        power: The exponent of "hard", from 0 (uniform); the greater, the more on the hardest.
        floor: The share, from 0 to 1, that is spread over all opponents equally, so that no result is ever out of date.

    Returns:
        Probabilities, of the shape of `win_rates`; every row sums to 1.

    Raises:
        TypeError: If an argument is of another kind.
        ValueError: If a number is out of range, if `weighting` is no name, or if it returns what are no weights.

    Example:
        >>> pfsp([0.1, 0.5, 0.9]).round(3).tolist()
        [0.757, 0.234, 0.009]
        >>> pfsp([1.0, 1.0], floor=0.1).tolist()  # all beaten: uniform
        [0.5, 0.5]
    """
    rates = _array("win_rates", win_rates)
    if rates.ndim not in (1, 2):
        raise ValueError(f"win_rates must be a vector or a matrix, got shape {rates.shape}")
    if not ((rates >= 0.0) & (rates <= 1.0)).all():  # so written, NaN is refused
        raise ValueError(f"win_rates must be from 0 to 1, got {rates}")
    exponent, share = number("power", power, 0.0), number("floor", floor, 0.0, 1.0)
    if callable(weighting):
        weights = _array("weighting's result", weighting(rates.copy()))
        if weights.shape != rates.shape or not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise ValueError(
                f"weighting must return finite weights, not negative, of shape {rates.shape}, got {weights}"
            )
    elif weighting == "hard":
        # In units of the hardest, whose weight is 1 then, whatever the power.
        weights = _in_units_of_largest(1.0 - rates) ** exponent
    elif weighting in _WEIGHTINGS:
        weights = _WEIGHTINGS[weighting](rates)
    else:
        names = ["hard", *_WEIGHTINGS]
        raise ValueError(f"weighting must be one of {names} or a function, got {weighting!r}")
    mixed: Vector = _probabilities(weights) * (1.0 - share) + share / max(rates.shape[-1], 1)
    return mixed


def latest(num_policies: int, window: int = 10, latest_ratio: float = 0.5) -> Vector:
    """The latest snapshot with a given probability, else one of the last few, the latest among them.

    Source: Unity ML-Agents (Juliani et al. 2020, "Unity: A general platform for intelligent agents"), its settings
    `window` and `play_against_latest_model_ratio`.

    Args:
        num_policies: How many snapshots there are, from 0; the latest is `num_policies - 1`.
        window: How many of them are still played, from 1.
        latest_ratio: The probability, from 0 to 1, of the latest for certain.

    Returns:
        Probabilities, shape `(num_policies,)`.

    Raises:
        TypeError: If an argument is no number.
        ValueError: If it is out of range.

    Example:
        >>> latest(4, window=2, latest_ratio=0.5).tolist()
        [0.0, 0.0, 0.25, 0.75]
    """
    count, kept = integer("num_policies", num_policies, 0), integer("window", window, 1)
    ratio = number("latest_ratio", latest_ratio, 0.0, 1.0)
    weights = _uniform_from(max(count - kept, 0), count) * (1.0 - ratio)
    weights[-1:] += ratio
    return weights


def delta_uniform(num_policies: int, delta: float = 0.5) -> Vector:
    """Uniform over the younger part of all snapshots: those from `delta * v` to v, the latest.

    0 plays the whole history, 1 the latest alone. Source: Bansal et al. 2018, "Emergent complexity via multi-agent
    competition", section 4.2.

    Args:
        num_policies: How many snapshots there are, from 0; the latest is v = `num_policies - 1`.
        delta: From 0 to 1.

    Returns:
        Probabilities, shape `(num_policies,)`.

    Raises:
        TypeError: If an argument is no number.
        ValueError: If it is out of range.

    Example:
        >>> delta_uniform(5, delta=0.5).round(3).tolist()
        [0.0, 0.0, 0.333, 0.333, 0.333]
    """
    count = integer("num_policies", num_policies, 0)
    oldest = number("delta", delta, 0.0, 1.0) * (count - 1)
    return _uniform_from(math.ceil(oldest - 1e-9), count)  # 0.07 * 100 is a little more than 7


@overload
def nash(payoffs: ArrayLike, two_sided: Literal[False] = False) -> Vector: ...


@overload
def nash(payoffs: ArrayLike, two_sided: Literal[True]) -> tuple[Vector, Vector]: ...


def nash(payoffs: ArrayLike, two_sided: bool = False) -> Vector | tuple[Vector, Vector]:
    """The equilibrium mixture of a two-player zero-sum game between policies: no opponent has an answer to it.

    The value of the game comes from a linear programme (von Neumann 1928; Dantzig 1951). Of the mixtures that reach
    it, which are many where policies are alike, the one nearest to uniform is returned: it is unique, and policies
    that are alike have equal shares. Mixing a population like this is the meta-strategy of the double oracle
    algorithm (McMahan et al. 2003) and of PSRO (Lanctot et al. 2017).

    Args:
        payoffs: `payoffs[i, j]` is what i wins and j loses when they meet, in any unit, shape `(rows, columns)`. In a
            symmetric game i and j are policies of one population: `Payoff.win_rates` serves as it is, for a win rate
            is a payoff up to a constant, and its diagonal is a fair game.
        two_sided: Whether to return the column player's mixture too, where the sides have different policies.

    Returns:
        The row player's probabilities, shape `(rows,)`; in a symmetric game they serve both sides. With `two_sided`
        also the column player's, shape `(columns,)`.

    Raises:
        ArithmeticError: If the solver fails, which it should not.
        ImportError: If SciPy is not installed.
        TypeError: If `payoffs` are no numbers.
        ValueError: If they are no matrix, or not finite.

    Example:
        >>> nash([[0, -1, 2], [1, 0, -1], [-2, 1, 0]]).round(6).tolist()  # rock, paper, scissors: rock wins double
        [0.25, 0.5, 0.25]
    """
    matrix = _array("payoffs", payoffs)
    if matrix.shape == (0,):
        matrix = matrix.reshape(0, 0)
    if matrix.ndim != 2:
        raise ValueError(f"payoffs must be a matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"payoffs must be finite, got {matrix}")
    rows = _equilibrium(matrix)
    return (rows, _equilibrium(-matrix.T)) if two_sided else rows


def _equilibrium(payoffs: Vector) -> Vector:
    """The row player's mixture nearest to uniform among those that secure the value of the game."""
    size = len(payoffs)
    uniform = _uniform_from(0, size)
    if not payoffs.size or payoffs.min() == payoffs.max():
        return uniform
    try:
        from scipy.optimize import linprog, nnls  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError("nash needs SciPy: pip install 'pz-policymap[nash]'") from error
    game = payoffs / np.abs(payoffs).max()
    game = (game - game.min()) / np.ptp(game)
    # Variables: the mixture and what it secures, which is to be large; `secured <= mixture @ column` for each column.
    solution = linprog(
        c=np.append(np.zeros(size), -1.0),
        A_ub=np.column_stack([-game.T, np.ones(game.shape[1])]),
        b_ub=np.zeros(game.shape[1]),
        A_eq=[[1.0] * size + [0.0]],
        b_eq=[1.0],
    )
    if not solution.success:
        raise ArithmeticError(f"nash found no solution: {solution.message}")
    secure = _probabilities(np.clip(solution.x[:-1], 0.0, None))
    value = (secure @ game).min()
    # The nearest to uniform that secures as much: least-distance programming (Lawson and Hanson 1974, chapter 23) under
    # `constraints @ (mixture - uniform) >= bounds`, where an equation is two inequalities.
    constraints = np.vstack([game.T, np.eye(size), np.ones(size), -np.ones(size)])
    bounds = np.concatenate([value - _ROUNDING - game.T @ uniform, -uniform, [0.0, 0.0]])
    system = np.vstack([constraints.T, bounds])
    target = np.append(np.zeros(size), 1.0)
    residual = system @ nnls(system, target, maxiter=100 * len(bounds))[0] - target
    nearest = _probabilities(np.clip(uniform - residual[:-1] / residual[-1], 0.0, None))
    # It loses its precision in games whose payoffs lie many orders of magnitude apart.
    return nearest if (nearest @ game).min() > value - 1e-9 else secure


_ROUNDING = 1e-12  # of the spread of payoffs


def _array(name: str, value: Any) -> Vector:
    """Returns an array of floats, or raises."""
    try:
        array: Vector = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {value!r}") from error
    return array


def _uniform_from(first: int, end: int) -> Vector:
    """Equal probabilities from `first` to the end, 0 before."""
    weights = np.zeros(end)
    weights[first:] = 1.0 / max(end - first, 1)
    return weights


def _in_units_of_largest(weights: Vector) -> Vector:
    """Each row over its largest entry, so that neither powers nor sums leave the range of floats; zeros stay."""
    largest = weights.max(axis=-1, keepdims=True, initial=0.0)
    scaled: Vector = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0.0)
    return scaled


def _probabilities(weights: Vector) -> Vector:
    """Each row over its sum; uniform where it is zero."""
    scaled = _in_units_of_largest(weights)
    total = scaled.sum(axis=-1, keepdims=True)
    fallback = np.full_like(scaled, 1.0 / max(scaled.shape[-1], 1))
    probabilities: Vector = np.divide(scaled, total, out=fallback, where=total > 0.0)
    return probabilities
