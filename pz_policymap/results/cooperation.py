"""`cooperation`: the gap between self-play and cross-play of each policy, and its worst partner."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import integer
from pz_policymap.results.episode import Episode
from pz_policymap.results.ledger import check_episode

Vector = NDArray[np.float64]


class Cooperation(NamedTuple):
    """Returns of policies with themselves and with others, arrays of shape `(num_policies,)`; NaN where unknown.

    Attributes:
        self_play: Mean return in episodes in which the policy controlled all seats, two or more.
        cross_play: Mean over the other policies of the mean return in episodes shared with them.
        gaps: `self_play - cross_play`.
        gap_errors: Standard errors of the gaps; NaN if a mean is over fewer than two clusters.
        worst_partners: The other policy with which the mean return was lowest; -1 without one.
        worst_returns: That mean return.
    """

    self_play: Vector
    cross_play: Vector
    gaps: Vector
    gap_errors: Vector
    worst_partners: NDArray[np.int64]
    worst_returns: Vector


def cooperation(
    episodes: Iterable[Episode], num_policies: int, *, clusters: Iterable[Hashable] | None = None
) -> Cooperation:
    """Returns the gap between self-play and cross-play, and the worst partner, of each policy.

    A policy that has a large gap relies on conventions which its partners do not share. Source: Hu et al. 2020,
    "Other-Play for zero-shot coordination". The worst partner bounds what the policy achieves in a team of unknown
    policies, as in Wang et al. 2025, "ROTATE: Regret-driven open-ended training for ad hoc teamwork".

    An episode counts once per policy, with the mean return over its seats. All partners have equal weight, however
    many episodes they shared. Errors are those of a linear function of means (delta method), with clusters as the
    independent unit.

    Args:
        episodes: The episodes, such as those of `tournament(..., self_matches=True)`.
        num_policies: Size of the population, >= 1.
        clusters: A label per episode; episodes with equal labels are not independent, such as those that share an
            environment seed. None: episodes are independent.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a policy is not in the population, or if `clusters` does not hold one label per episode.

    Example:
        >>> from pz_policymap import Episode
        >>> results = [([0, 0], 8.0), ([1, 1], 6.0), ([0, 1], 1.0), ([1, 0], 3.0)]
        >>> found = cooperation([Episode(policies, [r, r]) for policies, r in results * 2], num_policies=2)
        >>> found.self_play.tolist(), found.cross_play.tolist(), found.gaps.tolist()
        ([8.0, 6.0], [2.0, 2.0], [6.0, 4.0])
        >>> found.worst_partners.tolist()
        [1, 0]
    """
    size = integer("num_policies", num_policies, 1)
    numbers: dict[Hashable, int] = {}
    rows: list[tuple[int, int, int, float]] = []  # policy, partner, cluster, return
    for episode, cluster in zip(episodes, count() if clusters is None else clusters, strict=clusters is not None):
        check_episode(episode, size)
        number = numbers.setdefault(cluster, len(numbers))
        means = episode.mean_returns
        alone = len(means) == 1 and len(episode.policies) > 1
        for policy, mean in means.items():
            rows += [(policy, partner, number, mean) for partner in means if partner != policy or alone]
    return _estimates(rows, size)


def _estimates(rows: list[tuple[int, int, int, float]], size: int) -> Cooperation:
    """Returns the estimates from one row per policy, partner and episode; a policy is its own partner in self-play."""
    policy, partner, cluster, values = (np.array(column) for column in (zip(*rows) if rows else [()] * 4))  # noqa: B905
    policy, partner, cluster = (column.astype(np.int64) for column in (policy, partner, cluster))
    cell = policy * size + partner
    counts = np.bincount(cell, minlength=size * size)
    means = np.divide(
        np.bincount(cell, values, minlength=size * size), counts, out=np.full(size * size, np.nan), where=counts > 0
    )
    matrix = means.reshape(size, size)
    own, others = np.diag(matrix), np.where(np.eye(size, dtype=np.bool_), np.nan, matrix)
    partners = (~np.isnan(others)).sum(axis=1)
    cross = np.divide(np.nansum(others, axis=1), partners, out=np.full(size, np.nan), where=partners > 0)
    lowest = np.where(np.isnan(others), np.inf, others)
    worst = np.where(partners > 0, lowest.argmin(axis=1), -1)

    # What each row adds to the gap, by how far it is from the mean of its cell; summed by policy and cluster.
    units = np.bincount(np.unique(np.stack([cell, cluster]), axis=1)[0], minlength=size * size)
    sample = np.divide(units, units - 1.0, out=np.full(size * size, np.nan), where=units > 1)
    weight = np.where(policy == partner, 1.0, -1.0 / np.maximum(partners, 1)[policy]) / counts[cell]
    distances = weight * (values - means[cell]) * np.sqrt(sample[cell])
    _, place = np.unique(np.stack([policy, cluster]), axis=1, return_inverse=True)
    total = np.bincount(place.ravel(), distances)
    owner = np.zeros(len(total), np.int64)
    owner[place.ravel()] = policy
    gaps = own - cross
    errors = np.where(np.isnan(gaps), np.nan, np.sqrt(np.bincount(owner, total**2, minlength=size)))
    return Cooperation(own, cross, gaps, errors, worst, np.where(partners > 0, lowest.min(axis=1), np.nan))
