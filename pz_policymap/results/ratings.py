"""`bradley_terry`: one number a policy from all games between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

ELO = 400.0 / math.log(10.0)  # points a unit of log-odds: 400 points are odds of ten to one
_CLOSE = 1e-9  # log-odds; Newton's last step squares it
_MOST_STEPS = 100  # a dozen do, but for priors so small that rounding keeps the last ones from being that close


class Ratings(NamedTuple):
    """Ratings in points of Elo's scale; their mean is 0.

    Attributes:
        values: One rating a policy, shape `(num_policies,)`.
        errors: The standard error of each, as far as it is from the mean of all.
    """

    values: Vector
    errors: Vector


def bradley_terry(wins: Vector, prior: float) -> Ratings:
    """Returns the ratings under which the games were likeliest, given that each policy is about average beforehand.

    i beats j with the odds `exp(r[i] - r[j])` (Zermelo 1929; Bradley and Terry 1952). Maximum likelihood has no finite
    answer where somebody won everything, or where two groups never met, so every policy is also taken to have won and
    lost `prior` games against one more, rated 0: the virtual games of Coulom 2008, "Whole-history rating", and a
    conjugate prior as in Caron and Doucet 2012. With them the log-posterior is strictly concave, and its maximum unique
    and finite. The errors are those of the normal distribution that fits that maximum (Laplace).

    Args:
        wins: How many games i won against j, a draw being half a win for both, shape `(num_policies, num_policies)`.
        prior: Above 0; 1 makes the density of each rating beforehand the logistic one.

    Raises:
        ValueError: If `prior` is not above 0, or so small beside the games that rounding loses it (1 in some 10**16).

    Example:
        >>> wins = np.array([[0.0, 30.0], [10.0, 0.0]])  # three to one: 191 points apart, but for the prior
        >>> bradley_terry(wins, prior=1e-6).values.round(1).tolist()
        [95.4, -95.4]
    """
    if not prior > 0.0:
        raise ValueError(f"prior must be above 0 for ratings to be finite, got {prior}")
    games = wins + wins.T
    ratings = np.zeros(len(wins))
    for _ in range(_MOST_STEPS):
        expected = _logistic(ratings[:, None] - ratings)
        virtual = _logistic(ratings)
        # No differences of large numbers here: what somebody has who won nearly everything is in the small ones.
        slope = (wins * expected.T - wins.T * expected).sum(axis=1) + prior * (_logistic(-ratings) - virtual)
        curvature = games * expected * expected.T
        precision = np.diag(curvature.sum(axis=1) + 2.0 * prior * virtual * _logistic(-ratings)) - curvature
        try:
            step = np.linalg.solve(precision, slope)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"prior must not vanish beside {games.max():g} games of a pair, got {prior}") from error
        # Newton's step, shortened by so much that it climbs from anywhere: the third derivative of a logistic
        # likelihood is bounded by its second (Sun and Tran-Dinh 2019, "Generalized self-concordant functions").
        reach = max(np.ptp(step), np.abs(step).max())
        ratings += step * (math.log1p(reach) / reach if reach > 0.0 else 1.0)
        if reach < _CLOSE:
            break
    centred = np.linalg.inv(precision)
    centred -= centred.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    errors = np.sqrt(np.maximum(np.diag(centred), 0.0))
    return Ratings((ratings - ratings.mean()) * ELO, errors * ELO)


def _logistic(odds: Vector) -> Vector:
    """1 / (1 + exp(-odds)), as precise near 0 as near 1/2, without overflow."""
    probability: Vector = np.exp(-np.logaddexp(0.0, -odds))
    return probability
