"""Meta-strategies: mixtures over a population that solve the game between its policies."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from pz_policymap.arguments import integer
from pz_policymap.results.probabilities import Exclude, Vector, included, normalised, numbers, spread, uniform_from

_ROUNDING = 1e-12  # of the spread of payoffs


@overload
def nash(payoffs: ArrayLike, two_sided: Literal[False] = False, exclude: Exclude = None) -> Vector: ...


@overload
def nash(payoffs: ArrayLike, two_sided: Literal[True], exclude: Exclude = None) -> tuple[Vector, Vector]: ...


def nash(payoffs: ArrayLike, two_sided: bool = False, exclude: Exclude = None) -> Vector | tuple[Vector, Vector]:
    """Returns the equilibrium mixture of a two-player zero-sum game between policies.

    The value of the game comes from a linear programme (von Neumann 1928; Dantzig 1951). Many mixtures may reach it, if
    policies are alike. The one nearest to uniform is returned: it is unique, and policies that are alike have equal
    shares. Such a mixture is the meta-strategy of the double oracle algorithm (McMahan et al. 2003) and of PSRO
    (Lanctot et al. 2017).

    Args:
        payoffs: `payoffs[i, j]` is what i wins and j loses when they meet, in any unit, shape `(rows, columns)`. In a
            symmetric game, i and j are policies of one population. `Payoff.win_rates` can be used directly: a win rate
            is a payoff up to a constant.
        two_sided: Whether to return the column player's mixture too, for sides with different policies.
        exclude: Policies with probability 0, such as a learner whose opponents are mixed; needs a square matrix. The
            equilibrium is that of the game between the others.

    Returns:
        The row player's probabilities, shape `(rows,)`; in a symmetric game they serve both sides. With `two_sided`
        also the column player's, shape `(columns,)`.

    Raises:
        ArithmeticError: If the solver fails.
        ImportError: If SciPy is not installed.
        TypeError: If `payoffs` does not hold numbers.
        ValueError: If `payoffs` is not a finite matrix, or `exclude` does not fit it.

    Example:
        >>> nash([[0, -1, 2], [1, 0, -1], [-2, 1, 0]]).round(6).tolist()  # rock-paper-scissors; rock wins double
        [0.25, 0.5, 0.25]
    """
    matrix = _finite_matrix("payoffs", payoffs)
    if exclude is None:
        rows = _equilibrium(matrix)
        return (rows, _equilibrium(-matrix.T)) if two_sided else rows
    mask = included(exclude, (_size_of_square("exclude needs payoffs that are", matrix),))
    game = matrix[np.ix_(mask, mask)]
    rows = spread(_equilibrium(game), mask)
    return (rows, spread(_equilibrium(-game.T), mask)) if two_sided else rows


def _equilibrium(payoffs: Vector) -> Vector:
    """Returns the row player's mixture nearest to uniform among those that secure the value of the game."""
    size = len(payoffs)
    uniform = uniform_from(0, size)
    if not payoffs.size or payoffs.min() == payoffs.max():
        return uniform
    try:
        from scipy.optimize import linprog, nnls  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError("nash needs SciPy: pip install scipy") from error
    game = payoffs / np.abs(payoffs).max()
    game = (game - game.min()) / np.ptp(game)
    # Variables: the mixture and the value it secures. Maximise the value under `value <= mixture @ column`.
    solution = linprog(
        c=np.append(np.zeros(size), -1.0),
        A_ub=np.column_stack([-game.T, np.ones(game.shape[1])]),
        b_ub=np.zeros(game.shape[1]),
        A_eq=[[1.0] * size + [0.0]],
        b_eq=[1.0],
    )
    if not solution.success:
        raise ArithmeticError(f"nash found no solution: {solution.message}")
    secure = normalised(np.clip(solution.x[:-1], 0.0, None))
    value = (secure @ game).min()
    # The nearest to uniform that secures as much: least-distance programming (Lawson and Hanson 1974, chapter 23) under
    # `constraints @ (mixture - uniform) >= bounds`, where an equation is two inequalities.
    constraints = np.vstack([game.T, np.eye(size), np.ones(size), -np.ones(size)])
    bounds = np.concatenate([value - _ROUNDING - game.T @ uniform, -uniform, [0.0, 0.0]])
    system = np.vstack([constraints.T, bounds])
    target = np.append(np.zeros(size), 1.0)
    residual = system @ nnls(system, target, maxiter=100 * len(bounds))[0] - target
    nearest = normalised(np.clip(uniform - residual[:-1] / residual[-1], 0.0, None))
    # It loses precision in games whose payoffs are many orders of magnitude apart.
    return nearest if (nearest @ game).min() > value - 1e-9 else secure


def alpha_rank(
    payoffs: ArrayLike,
    column_payoffs: ArrayLike | None = None,
    *,
    alpha: float = 100.0,
    population_size: int = 50,
    local_selection: bool = True,
    epsilon: float = 0.01,
    exclude: Exclude = None,
) -> Vector:
    """Ranks policies by the long-run share of time that evolution spends at each of them.

    A mutant enters a population of one policy. It takes over with a probability that grows with its advantage, scaled
    by `alpha`. The shares are the stationary distribution of this Markov chain. Unlike `nash`, it also serves games
    that are not zero-sum. Source: Omidshafiei et al. 2019, "alpha-Rank: Multi-agent evaluation by evolution". The
    defaults are those of OpenSpiel's `alpharank`.

    Args:
        payoffs: `payoffs[i, j]` is the payoff of i against j, such as `Payoff.win_rates` or `Payoff.mean_returns`. The
            game is symmetric, with shape `(num_policies, num_policies)`, unless `column_payoffs` is given.
        column_payoffs: For two populations with different policies: the payoff of the column player, of the shape
            `(rows, columns)` of `payoffs`.
        alpha: Intensity of selection, > 0, in units of 1 / payoff. `math.inf` is the limit, in which the better
            policy takes over with probability `1 - epsilon`, the worse with `epsilon`, and an equal one with 1/2.
        population_size: Number of individuals in each population, >= 2.
        local_selection: Whether a mutant is compared with its opponent only. False: with the present mixture of the
            population; for one population and finite alpha.
        epsilon: Probability of a mistake when `alpha` is infinite, above 0 and below 1/2.
        exclude: Policies left out of the game, with share 0; for one population.

    Returns:
        Shares that sum to 1, shape `(num_policies,)`; for two populations the share of each pair, shape
        `(rows, columns)`.

    Raises:
        TypeError: If an argument is not a number or a matrix of numbers.
        ValueError: If a number is out of range, or a matrix has the wrong shape or is not finite.

    Example:
        >>> alpha_rank([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]).round(6).tolist()  # rock-paper-scissors
        [0.333333, 0.333333, 0.333333]
    """
    matrix = _finite_matrix("payoffs", payoffs)
    size = integer("population_size", population_size, 2)
    if not (isinstance(alpha, (int, float)) and alpha > 0.0):
        raise ValueError(f"alpha must be a number above 0, or math.inf, got {alpha!r}")
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon must be above 0 and below 1/2, got {epsilon!r}")
    if math.isinf(alpha) and not local_selection:
        raise ValueError("alpha must be finite where local_selection is False, got inf")
    if column_payoffs is None:
        mask = included(exclude, (_size_of_square("payoffs must be", matrix),))
        game = matrix[np.ix_(mask, mask)]
        if local_selection:
            return spread(_stationary(_log_fixation(game.T - game, alpha, size, epsilon)), mask)
        return spread(_stationary(_log_fixation_in_population(game, alpha, size)), mask)
    columns = _finite_matrix("column_payoffs", column_payoffs)
    if columns.shape != matrix.shape:
        raise ValueError(f"column_payoffs must have the shape {matrix.shape} of payoffs, got {columns.shape}")
    if exclude is not None or not local_selection:
        raise ValueError("column_payoffs must be None where exclude or local_selection=False is given")
    # State (i, j) moves to (i', j) by the row player's advantage, and to (i, j') by the column player's.
    rows, width = np.arange(matrix.shape[0]), np.arange(matrix.shape[1])
    rates = np.full(matrix.shape * 2, -np.inf)
    row_advantage = matrix.T[:, None, :] - matrix.T[:, :, None]
    column_advantage = columns[:, None, :] - columns[:, :, None]
    rates[:, width, :, width] = _log_fixation(row_advantage, alpha, size, epsilon)
    rates[rows, :, rows, :] = _log_fixation(column_advantage, alpha, size, epsilon)
    return _stationary(rates.reshape(matrix.size, matrix.size)).reshape(matrix.shape)


def _log_fixation(advantage: Vector, alpha: float, population_size: int, epsilon: float) -> Vector:
    """Returns the logarithm of the probability that a mutant with each advantage takes over."""
    if math.isinf(alpha):
        equal = np.abs(advantage) <= _ROUNDING * np.abs(advantage).max(initial=0.0)
        return np.log(np.where(equal, 0.5, np.where(advantage > 0.0, 1.0 - epsilon, epsilon)))
    strength = np.abs(alpha * advantage)
    neutral = strength == 0.0
    safe = np.where(neutral, 1.0, strength)
    log: Vector = np.log(-np.expm1(-safe)) - np.log(-np.expm1(-population_size * safe))
    log -= np.where(advantage < 0.0, (population_size - 1) * safe, 0.0)
    log[neutral] = -math.log(population_size)
    return log


def _log_fixation_in_population(payoffs: Vector, alpha: float, population_size: int) -> Vector:
    """Returns the same, with fitness against the present population; row: the resident, column: the mutant."""
    m, own = population_size, np.diag(payoffs)
    total, exponent = np.zeros_like(payoffs), np.zeros_like(payoffs)
    for mutants in range(1, m):
        mutant = (mutants - 1) * own[None, :] + (m - mutants) * payoffs.T
        resident = (m - mutants - 1) * own[:, None] + mutants * payoffs
        exponent -= alpha * (mutant - resident) / (m - 1)
        total = np.logaddexp(total, exponent)
    return -total


def _stationary(log_rates: Vector) -> Vector:
    """Returns the stationary distribution of a Markov chain with these logarithms of transition rates.

    Source: the algorithm of Grassmann, Taksar and Heyman 1985, which subtracts nothing; on logarithms it neither loses
    precision nor underflows, with any `alpha`.
    """
    log, size = log_rates.copy(), len(log_rates)
    for k in range(size - 1, 0, -1):
        log[:k, k] -= np.logaddexp.reduce(log[k, :k])
        log[:k, :k] = np.logaddexp(log[:k, :k], log[:k, k, None] + log[k, :k])
    shares = np.zeros(size)
    for k in range(1, size):
        shares[k] = np.logaddexp.reduce(shares[:k] + log[:k, k])
    return normalised(np.exp(shares - shares.max(initial=0.0)))


def _finite_matrix(name: str, value: ArrayLike) -> Vector:
    matrix = numbers(name, value, (2,))
    if matrix.shape == (0,):
        return matrix.reshape(0, 0)
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got {matrix}")
    return matrix


def _size_of_square(what: str, matrix: Vector) -> int:
    if len(set(matrix.shape)) != 1:
        raise ValueError(f"{what} a square matrix, got shape {matrix.shape}")
    return len(matrix)
