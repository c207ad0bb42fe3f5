"""Which policies won against which in an episode: the rule of the ledger, as a pure function."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.results.episode import Episode


class Games(NamedTuple):
    """The games of an episode, between the k policies that took part.

    Attributes:
        policies: Who took part, ascending, shape `(k,)`.
        seats: Which of them played each seat, as positions in `policies`.
        played: Whether two policies had a game, shape `(k, k)`.
        results: 1 where the policy of the row won it, -1 where it lost, 0 for a draw or no game, shape `(k, k)`.
    """

    policies: NDArray[np.int64]
    seats: list[int]
    played: NDArray[np.bool_]
    results: NDArray[np.float64]


def games(episode: Episode) -> Games:
    """Returns who won against whom.

    A pair of different policies is one game. Each seat is a side, or each team by its mean score; over all pairs of
    their seats on different sides the mean sign of the difference decides. A policy against itself is no game, nor
    are two policies that shared a side all the time.

    Example:
        >>> from pz_policymap import Episode
        >>> games(Episode(policies=[1, 0, 0], returns=[2.0, 1.0, 3.0])).results.tolist()  # beat a seat, lost to another
        [[0.0, 0.0], [0.0, 0.0]]
        >>> teams = Episode(policies=[1, 0, 0], returns=[2.0, 1.0, 3.0], sides=["blue", "red", "blue"])
        >>> games(teams).results.tolist()  # policy 1 was with blue, which won
        [[0.0, -1.0], [1.0, 0.0]]
    """
    policies = sorted(set(episode.policies))
    position = {policy: i for i, policy in enumerate(policies)}
    seats = [position[policy] for policy in episode.policies]
    plays = np.zeros((len(seats), len(policies)))
    plays[np.arange(len(seats)), seats] = 1.0
    side, standing = _sides(episode)
    # Sums of -1, 0 and 1 are exact; seats of one side stand equal and add nothing.
    ahead = (standing[:, None] > standing).astype(np.float64)
    lead = plays.T @ (ahead - ahead.T) @ plays
    met = plays.T @ (side[:, None] != side).astype(np.float64) @ plays
    np.fill_diagonal(met, 0.0)
    return Games(np.array(policies), seats, met > 0.0, np.sign(lead))


def _sides(episode: Episode) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns for every seat the number of its side, and a number that orders the sides."""
    number: dict[Hashable, int] = {}
    sides = [number.setdefault(side, len(number)) for side in episode.sides]
    if len(number) == len(sides):
        return np.arange(len(sides)), np.array(episode.scores)
    # Means are compared as fractions: in floats, a third of three times 0.1 is more than 0.1.
    members: list[list[Fraction]] = [[] for _ in number]
    for side, score in zip(sides, episode.scores, strict=True):
        members[side].append(Fraction(score))
    means = [sum(scores) / len(scores) for scores in members]
    place = {mean: float(i) for i, mean in enumerate(sorted(set(means)))}
    return np.array(sides), np.array([place[means[side]] for side in sides])
