"""One Bradley-Terry rating per policy from all games, with a standard error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games
from pz_policymap.results.lineups import Lineups

Vector = NDArray[np.float64]

ELO = 400.0 / math.log(10.0)  # points per unit of log-odds: 400 points are odds of ten to one
_CLOSE = 1e-9  # log-odds; Newton's last step squares it
_MAX_STEPS = 100  # a dozen suffice, unless the prior is so small that rounding prevents convergence to _CLOSE


class Ratings(NamedTuple):
    """Ratings in points of the Elo scale, with mean 0.

    Attributes:
        values: One rating per policy, shape `(num_policies,)`.
        errors: Standard error of each rating's distance to the mean, shape `(num_policies,)`.
    """

    values: Vector
    errors: Vector


def bradley_terry(
    wins: Vector, prior: float, lineups: Lineups | None = None, joint_games: Vector | None = None
) -> Ratings:
    """Returns the most likely ratings, given that each policy is about average beforehand.

    i beats j with the odds `exp(r[i] - r[j])` (Zermelo 1929; Bradley and Terry 1952). Maximum likelihood is infinite
    for a policy that won every game, and for two groups that never met. Therefore each policy is also taken to have won
    and lost `prior` games against one more policy, rated 0: the virtual games of Coulom 2008, "Whole-history rating",
    and a conjugate prior as in Caron and Doucet 2012. The log-posterior is then strictly concave, and its maximum
    unique and finite.

    Without lineups, games count as independent, and the errors are those of the normal distribution that fits the
    maximum (Laplace). With lineups, the games of one episode are one cluster: the errors are those of the sandwich
    estimator (Huber 1967; Liang and Zeger 1986).

    Args:
        wins: Number of games i won against j, a draw being half a win for both, shape `(num_policies, num_policies)`.
        prior: Number of virtual wins and losses, > 0. With 1, the prior density of each rating is the logistic one.
        lineups: Scores by episode, of the episodes that held several games, or of a sample of them.
        joint_games: Number of games in episodes with several games, of the shape of `wins`.

    Raises:
        ValueError: If `prior` is not above 0, or if rounding loses it (below about 1e-16 of the games).

    Example:
        >>> wins = np.array([[0.0, 30.0], [10.0, 0.0]])  # odds of three to one: 191 points, with a small prior
        >>> bradley_terry(wins, prior=1e-6).values.round(1).tolist()
        [95.4, -95.4]
    """
    if not prior > 0.0:
        raise ValueError(f"prior must be above 0 for ratings to be finite, got {prior}")
    games = wins + wins.T
    ratings = np.zeros(len(wins))
    for _ in range(_MAX_STEPS):
        expected = _logistic(ratings[:, None] - ratings)
        virtual = _logistic(ratings)
        # Not the difference of two large numbers: the few losses of a strong policy carry the information.
        slope = (wins * expected.T - wins.T * expected).sum(axis=1) + prior * (_logistic(-ratings) - virtual)
        from_prior = 2.0 * prior * virtual * _logistic(-ratings)
        between = _laplacian(games * expected * expected.T)
        try:
            step = np.linalg.solve(between + np.diag(from_prior), slope)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"prior must not vanish beside {games.max():g} games of a pair, got {prior}") from error
        # Newton's step, shortened so that it climbs from any start: the third derivative of a logistic likelihood is
        # bounded by its second (Sun and Tran-Dinh 2019, "Generalized self-concordant functions").
        reach = max(np.ptp(step), np.abs(step).max())
        ratings += step * (math.log1p(reach) / reach if reach > 0.0 else 1.0)
        if reach < _CLOSE:
            break
    covariance = _centered_inverse(between, from_prior)
    if lineups is not None and joint_games is not None:
        excess = _scatter(expected, joint_games, lineups) - _laplacian(joint_games * expected * expected.T)
        covariance += covariance @ excess @ covariance
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Ratings((ratings - ratings.mean()) * ELO, errors * ELO)


def clustered_ratings(
    episodes: Sequence[Episode], num_policies: int, clusters: Sequence[Hashable], prior: float = 1.0
) -> Ratings:
    """Returns the ratings of some episodes, with errors that count clusters of episodes as independent.

    Args:
        episodes: The episodes.
        num_policies: Size of the population.
        clusters: A label per episode; episodes with equal labels are not independent.
        prior: As in `bradley_terry`.
    """
    wins, played, lineups = np.zeros((num_policies,) * 2), np.zeros((num_policies,) * 2), Lineups()
    number = {label: i for i, label in enumerate(dict.fromkeys(clusters))}
    by_cluster = sorted(range(len(episodes)), key=lambda position: number[clusters[position]])
    for _, positions in groupby(by_cluster, key=lambda position: number[clusters[position]]):
        found = [games(episodes[position]) for position in positions]
        policies = sorted({policy for each in found for policy in each.policies.tolist()})
        won, met = np.zeros((len(policies),) * 2), np.zeros((len(policies),) * 2)
        for each in found:
            cells = np.ix_(*[np.searchsorted(policies, each.policies)] * 2)
            won[cells] += (each.results + each.played) / 2.0
            met[cells] += each.played
        wins[np.ix_(policies, policies)] += won
        played[np.ix_(policies, policies)] += met
        lineups.record(tuple(policies), met, won.sum(axis=1))
    return bradley_terry(wins, prior, lineups, played)


def decayed_ratings(decayed_wins: Vector, wins: Vector, prior: float, lineups: Lineups, joint_games: Vector) -> Ratings:
    """Returns ratings from decayed games. Other arguments are those of `bradley_terry`, without decay.

    Errors are approximate: those of independent decayed games, times the ratio of clustered to independent errors over
    all games.
    """
    values, errors = bradley_terry(decayed_wins, prior)
    clustered = bradley_terry(wins, prior, lineups, joint_games).errors
    independent = bradley_terry(wins, prior).errors
    ratio = np.divide(clustered, independent, out=np.ones(len(wins)), where=independent > 0.0)
    return Ratings(values, errors * ratio)


def _scatter(chance: Vector, joint_games: Vector, lineups: Lineups) -> Vector:
    """Returns the covariance of the slope that comes from episodes with several games.

    Lineups that were left out are taken to vary as those that were kept. The factor n / (n - 1) for n episodes is that
    of a sample variance. Without two kept episodes, games of different episodes count as independent, and those of the
    same pair in one cluster of episodes as equal.
    """
    squares, kept_games, episodes = lineups.scatter(chance)
    if episodes < 2.0 or not joint_games.any():
        return _laplacian(joint_games * np.maximum(kept_games, 1.0) * chance * chance.T)
    scale: float = joint_games.sum() / kept_games.sum() * episodes / (episodes - 1.0)
    return scale * squares


def _centered_inverse(laplacian: Vector, diagonal: Vector) -> Vector:
    """Returns the inverse of `laplacian + diag(diagonal)`, with rows and columns centered on their means.

    The mean is eliminated first (Schur complement), so that a small diagonal costs no precision.
    """
    reduced = laplacian + np.diag(diagonal) - np.outer(diagonal, diagonal) / diagonal.sum()
    # Adding a constant to all entries makes the matrix invertible and changes only the part that centering removes.
    inverse: Vector = np.linalg.inv(reduced + (np.trace(reduced) or 1.0) / len(reduced) ** 2)
    inverse -= inverse.mean(axis=0)
    inverse -= inverse.mean(axis=1, keepdims=True)
    return inverse


def _laplacian(weights: Vector) -> Vector:
    """Returns the matrix of the quadratic form that sums `weights[i, j] * (x[i] - x[j])**2` over pairs."""
    matrix: Vector = np.diag(weights.sum(axis=1)) - weights
    return matrix


def _logistic(odds: Vector) -> Vector:
    """Returns 1 / (1 + exp(-odds)), as precise near 0 as near 1/2, without overflow."""
    probability: Vector = np.exp(-np.logaddexp(0.0, -odds))
    return probability
