"""`games`: the results between the policies of one episode, as a pure function."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode


class Games(NamedTuple):
    """The games of one episode, between its k distinct policies.

    Attributes:
        policies: The distinct policies, ascending, shape `(k,)`.
        seats: For each seat, the position of its policy in `policies`.
        played: Whether two policies had a game, shape `(k, k)`.
        results: 1 where the policy of the row won, -1 where it lost, 0 for a draw or no game, shape `(k, k)`.
    """

    policies: NDArray[np.int64]
    seats: list[int]
    played: NDArray[np.bool_]
    results: NDArray[np.float64]


def games(episode: Episode) -> Games:
    """Returns the games of an episode and their results.

    Every pair of different policies with seats on different sides has one game. A side has the mean score of its
    seats. The game is decided by the mean sign of the difference over all pairs of seats on different sides. A policy
    against itself is not a game.

    Example:
        >>> from pz_policymap import Episode
        >>> games(Episode(policies=[1, 0, 0], returns=[2.0, 1.0, 3.0])).results.tolist()  # beat one seat, lost to one
        [[0.0, 0.0], [0.0, 0.0]]
        >>> teams = Episode(policies=[1, 0, 0], returns=[2.0, 1.0, 3.0], sides=["blue", "red", "blue"])
        >>> games(teams).results.tolist()  # policy 1 was on the blue side, which won
        [[0.0, -1.0], [1.0, 0.0]]
    """
    policies = sorted(set(episode.policies))
    position = {policy: i for i, policy in enumerate(policies)}
    seats = [position[policy] for policy in episode.policies]
    side, standing = side_standings(episode)
    if len(policies) == len(seats):
        seat_of = np.argsort(seats)
        side, standing = side[seat_of], standing[seat_of]
        return Games(np.array(policies), seats, side[:, None] != side, np.sign(standing[:, None] - standing))
    holds = np.zeros((len(seats), len(policies)))
    holds[np.arange(len(seats)), seats] = 1.0
    # Sums of -1, 0 and 1 are exact. Seats of one side have equal standings and add nothing.
    lead = holds.T @ np.sign(standing[:, None] - standing) @ holds
    met = holds.T @ (side[:, None] != side).astype(np.float64) @ holds
    np.fill_diagonal(met, 0.0)
    return Games(np.array(policies), seats, met > 0.0, np.sign(lead))


def side_standings(episode: Episode) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns the number of each seat's side, and for each seat a number that orders the sides."""
    number: dict[Hashable, int] = {}
    sides = [number.setdefault(side, len(number)) for side in episode.sides]
    if len(number) == len(sides):
        return np.arange(len(sides)), np.array(episode.scores)
    members: list[list[float]] = [[] for _ in number]
    for side, score in zip(sides, episode.scores, strict=True):
        members[side].append(score)
    if all(min(scores) == max(scores) for scores in members):  # rewards are shared
        return np.array(sides), np.array(episode.scores)
    rounded = [math.fsum(scores) / len(scores) for scores in members]
    ranked = sorted(rounded)
    if all(high - low > 2.0**-50 * max(abs(low), abs(high)) for low, high in pairwise(ranked)):
        return np.array(sides), np.array([rounded[side] for side in sides])
    # Means that are close are compared as fractions: in floats, the mean of three times 0.1 is more than 0.1.
    means = [sum(map(Fraction, scores)) / len(scores) for scores in members]
    place = {mean: float(i) for i, mean in enumerate(sorted(set(means)))}
    return np.array(sides), np.array([place[means[side]] for side in sides])
