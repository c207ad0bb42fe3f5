"""Confidence intervals of win rates and of means, for independent units."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import number

Floats = NDArray[np.float64]


class Intervals(NamedTuple):
    """Estimates with standard errors and confidence intervals, arrays of one shape.

    Attributes:
        values: The estimates; NaN without results.
        lows: Lower limits of the intervals; NaN with too few units.
        highs: Upper limits of the intervals.
        units: Number of independent units, such as episodes.
        errors: Standard errors of the estimates; NaN with fewer than two units.
    """

    values: Floats
    lows: Floats
    highs: Floats
    units: Floats
    errors: Floats


def confidence_of(confidence: float) -> float:
    """Returns the argument, or raises an error.

    Raises:
        TypeError: If it is not a number.
        ValueError: If it is not above 0 and below 1.
    """
    level = number("confidence", confidence, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence!r}")
    return level


def wilson(rates: Floats, games: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Returns the limits of the score interval of win rates (Wilson 1927, "Probable inference").

    Args:
        rates: Win rates from 0 to 1; NaN without games.
        games: Number of independent games of each.
        confidence: Probability that an interval covers the true win rate.

    Example:
        >>> low, high = wilson(np.array([0.8]), np.array([10.0]))
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.49], [0.943])
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    extra = np.divide(z * z, games, out=np.full(games.shape, np.nan), where=games > 0.0)
    centre = rates + extra / 2.0
    spread = np.sqrt(extra * (np.maximum(rates * (1.0 - rates), 0.0) + extra / 4.0))
    return np.maximum(0.0, (centre - spread) / (1.0 + extra)), np.minimum(1.0, (centre + spread) / (1.0 + extra))


def clustered_wilson(
    rates: Floats, games: Floats, squares: Floats, units: Floats, confidence: float = 0.95
) -> Intervals:
    """Returns score intervals of win rates whose games come in clusters.

    The number of games is divided by the design effect (Kish 1965): the variance of the win rate with independent
    clusters, over its variance if games were independent. It is also multiplied by `(z / t)**2`, with Student's t for
    the number of clusters (Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
    positive counts"). Without any variance between clusters, each cluster counts as one game.

    Args:
        rates: Win rates from 0 to 1; NaN without games.
        games: Number of games of each.
        squares: Sum over clusters of `(score - rate * games in the cluster)**2`, times n / (n - 1) for n clusters.
        units: Number of clusters of each.
        confidence: Probability that an interval covers the true win rate.
    """
    effective = units.copy()
    np.divide(rates * (1.0 - rates) * games**2, squares, out=effective, where=squares > 0.0)
    effective = np.minimum(effective, games)
    clustered = games > units
    ratio = NormalDist().inv_cdf(0.5 + confidence / 2.0) / student_t(units[clustered] - 1.0, confidence)
    effective[clustered] *= np.nan_to_num(ratio, nan=1.0) ** 2
    return Intervals(rates, *wilson(rates, effective, confidence), units, ratio_errors(games, squares, units))


def mean_intervals(units: Floats, sums: Floats, squares: Floats, confidence: float = 0.95) -> Intervals:
    """Returns Student's intervals of means; NaN limits below two units, or where squares overflowed.

    Args:
        units: Number of independent values of each mean.
        sums: Their sums.
        squares: The sums of their squares; infinite where unknown.
        confidence: Probability that an interval covers the true mean.

    Example:
        >>> means = mean_intervals(np.array([3.0]), np.array([6.0]), np.array([14.0]))  # of 1, 2 and 3
        >>> means.values.tolist(), means.lows.round(2).tolist(), means.highs.round(2).tolist()
        ([2.0], [-0.48], [4.48])
    """
    means = np.divide(sums, units, out=np.full(units.shape, np.nan), where=units > 0.0)
    return student_intervals(means, units, mean_errors(units, sums, squares), confidence)


def student_intervals(means: Floats, units: Floats, errors: Floats, confidence: float = 0.95) -> Intervals:
    """Returns Student's intervals of means with known standard errors."""
    half = errors * student_t(units - 1.0, confidence)
    return Intervals(means, means - half, means + half, units, errors)


def ratio_errors(totals: Floats, squares: Floats, units: Floats) -> Floats:
    """Returns standard errors of ratios, from totals, squares and units as `ratio_sums` returns them."""
    errors: Floats = np.divide(np.sqrt(squares), totals, out=np.full(totals.shape, np.nan), where=units > 1.0)
    return errors


def mean_errors(units: Floats, sums: Floats, squares: Floats) -> Floats:
    """Returns standard errors of means, from the arguments of `mean_intervals`; NaN with too few units."""
    errors = np.full(units.shape, np.nan)
    known = (units > 1.0) & np.isfinite(squares)
    count, total = units[known], sums[known]
    variance = np.maximum(squares[known] - total * (total / count), 0.0) / (count - 1.0)
    errors[known] = np.sqrt(variance / count)
    return errors


def ratio_sums(numerators: Floats, denominators: Floats) -> tuple[float, float, float, float]:
    """Returns a ratio, its total denominator, corrected squares and the number of clusters, for `clustered_wilson`.

    The squares are the sum over n clusters of `(numerator - ratio * denominator)**2`, times n / (n - 1): the variance
    of a ratio estimate is their quotient by the squared total denominator (Cochran 1977, "Sampling techniques").

    Args:
        numerators: The sum of each cluster, shape `(num_clusters,)`.
        denominators: The divisors, such as numbers of games, of the same shape; 0 where a cluster has none.
    """
    total, units = float(denominators.sum()), int(np.count_nonzero(denominators > 0.0))
    if total == 0.0:
        return math.nan, 0.0, 0.0, 0.0
    ratio = float(numerators.sum()) / total
    squares = float(((numerators - ratio * denominators) ** 2).sum())
    return ratio, total, squares * (units / (units - 1.0) if units > 1 else 1.0), units


def student_t(degrees: Floats, confidence: float = 0.95) -> Floats:
    """Returns the two-sided quantile of Student's distribution for integer degrees of freedom; NaN below 1.

    Source: Hill 1970, "Student's t-quantiles", Communications of the ACM 13(10), algorithm 396.

    Example:
        >>> student_t(np.array([1.0, 2.0, 9.0, 1e6])).round(3).tolist()
        [12.706, 4.303, 2.262, 1.96]
    """
    distinct, place = np.unique(degrees, return_inverse=True)
    quantiles: Floats = np.array([_student_t(n, 1.0 - confidence) for n in distinct.tolist()])
    return quantiles[place].reshape(degrees.shape)


def _student_t(n: float, tail: float) -> float:
    """Returns the quantile for one number of degrees of freedom and the probability of both tails together."""
    if not n >= 1.0:
        return math.nan
    if n == 1.0:
        return 1.0 / math.tan(tail * math.pi / 2.0)
    if n == 2.0:
        return math.sqrt(2.0 / (tail * (2.0 - tail)) - 2.0)
    a = 1.0 / (n - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * math.sqrt(a * math.pi / 2.0) * n
    y = (d * tail) ** (2.0 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2.0)
        y = x * x
        if n < 5.0:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
        y = math.expm1(a * y * y)
    else:
        y = (1.0 / ((n + 6.0) / (n * y) - 0.089 * d - 0.822) / (3.0 * (n + 2.0)) + 0.5 / (n + 4.0)) * y - 1.0
        y = y * (n + 1.0) / (n + 2.0) + 1.0 / ((d * tail) ** (2.0 / n))
    return math.sqrt(n * y)
