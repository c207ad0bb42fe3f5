"""`Lineups`: the joint scores of the policies of one episode, for standard errors that count episodes, not games.

The games of one episode are not independent: a seat that came first has won all of them. A lineup is a set of policies
and the number of games between each two. For the vector `v = (1, scores)` of each of its episodes, the sum of `v v^T`
is kept. A score is the number of games won plus half the number of draws, so all sums are exact, in any order. A
cluster of episodes can take the place of an episode.

Memory is bounded. Lineups are ordered by a hash, and the first of them are kept that fit into `BUDGET` floats. A kept
lineup has been kept from its first episode on, so the sums are complete, and do not depend on the order of episodes
and merges. The kept lineups are a random sample of all lineups.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUDGET = 2**18
UNLIMITED = 2**64

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Key = tuple[tuple[int, ...], bytes]


class Lineups:
    """Sums of episodes by lineup."""

    def __init__(self) -> None:
        self._sums: dict[Key, Matrix] = {}
        self._size = 0
        self._limit = UNLIMITED  # lineups whose rank is not below it are left out

    def record(self, policies: tuple[int, ...], played: NDArray[Any], scores: Vector) -> None:
        """Adds one episode: its k distinct policies, the games between them `(k, k)`, and their scores `(k,)`."""
        key = policies, played.astype("<i4").tobytes()
        if key not in self._sums:
            if self._limit != UNLIMITED and _rank(key) >= self._limit:
                return
            self._sums[key] = np.zeros((len(policies) + 1, len(policies) + 1))
            self._size += (len(policies) + 1) ** 2
            if self._size > 2 * BUDGET:
                self._trim()
                if key not in self._sums:
                    return
        vector = np.ones(len(policies) + 1)
        vector[1:] = scores
        self._sums[key] += vector[:, None] * vector

    def merged(self, other: Lineups) -> Lineups:
        """Returns the lineups of both."""
        union = Lineups()
        union._limit = min(self._limit, other._limit)
        union._sums = dict(self._sums)
        for key, sums in other._sums.items():
            union._sums[key] = union._sums[key] + sums if key in union._sums else sums.copy()
        union._sums = {key: union._sums[key] for key in union._sums if _rank(key) < union._limit}
        union._trim()
        return union

    def without(self, policy: int) -> Lineups:
        """Returns the lineups that do not contain a policy."""
        rest = Lineups()
        rest._limit = self._limit
        rest._sums = {key: sums for key, sums in self._sums.items() if policy not in key[0]}
        rest._size = sum(sums.size for sums in rest._sums.values())
        return rest

    def scatter(self, chance: Matrix) -> tuple[Matrix, Matrix, float]:
        """Returns the sum of `g g^T` over episodes, the numbers of games, and the number of episodes.

        Args:
            chance: The probability that i beats j, shape `(num_policies, num_policies)`. The residual `g` of an episode
                is the vector of scores minus their expectation.
        """
        squares, games, episodes = np.zeros_like(chance), np.zeros_like(chance), 0.0
        for policies, played, sums in self._by_size():
            block = policies[:, :, None], policies[:, None, :]
            count, scores, products = sums[:, 0, 0], sums[:, 0, 1:], sums[:, 1:, 1:]
            expected = (chance[block] * played).sum(axis=2)
            crossed = scores[:, :, None] * expected[:, None, :]
            outer = expected[:, :, None] * expected[:, None, :] * count[:, None, None]
            np.add.at(squares, block, products - crossed - crossed.transpose(0, 2, 1) + outer)
            np.add.at(games, block, count[:, None, None] * played)
            episodes += float(count.sum())
        return squares, games, episodes

    def deviations(self, rates: Vector, games: Vector, joint_games: Vector) -> tuple[Vector, Vector]:
        """Returns the sum over all episodes of `(score - rate * games)**2`, and the number of episodes.

        Episodes with several games that are not kept are taken to vary as those that are. The sum over n of them has
        the factor n / (n - 1), as in a sample variance.

        Args:
            rates: The win rate of each policy, shape `(num_policies,)`.
            games: Number of games of each policy, shape `(num_policies,)`.
            joint_games: Number of these in episodes with several games, shape `(num_policies,)`.
        """
        kept, episodes, squares = np.zeros(len(rates)), np.zeros(len(rates)), np.zeros(len(rates))
        for policies, played, sums in self._by_size():
            count, scores = sums[:, :1, 0], sums[:, 0, 1:]
            products = np.diagonal(sums[:, 1:, 1:], axis1=1, axis2=2)
            each = played.sum(axis=2)
            expected = rates[policies] * each
            np.add.at(kept, policies, count * each)
            np.add.at(episodes, policies, count * (each > 0.0))
            np.add.at(squares, policies, products - 2.0 * expected * scores + count * expected**2)
        known = kept > 0.0
        scale = np.divide(joint_games, kept, out=np.zeros(len(rates)), where=known)
        single = np.where(known, games - joint_games, games)
        sample = np.divide(episodes, episodes - 1.0, out=np.ones(len(rates)), where=episodes > 1.0)
        return rates * (1.0 - rates) * single + scale * sample * squares, single + scale * episodes

    def state(self) -> tuple[Vector, int]:
        """Returns all sums as one flat array, and the limit of ranks."""
        self._trim()
        parts = [
            [len(policies), *policies, *np.frombuffer(played, "<i4"), *self._sums[policies, played].ravel()]
            for policies, played in sorted(self._sums)
        ]
        return np.array([number for part in parts for number in part], np.float64), self._limit

    @classmethod
    def from_state(cls, numbers: NDArray[Any], limit: Any, num_policies: int) -> Lineups:
        """Returns the lineups of a state.

        Raises:
            ValueError: If the state is damaged.
        """
        fits = numbers.dtype == np.float64 and numbers.ndim == 1 and bool(np.isfinite(numbers).all())
        if not fits or type(limit) is not int or not 0 <= limit <= UNLIMITED:
            raise ValueError(
                f"state does not fit: 'lineups' must be a vector of finite floats and 'lineups_limit' an integer from "
                f"0 to 2**64, got {numbers.dtype} of shape {numbers.shape} and {limit!r}"
            )
        lineups, place = cls(), 0
        lineups._limit = limit
        while place < len(numbers):
            k = int(numbers[place])
            record = numbers[place + 1 : place + 1 + k + k * k + (k + 1) ** 2]
            policies, played, sums = np.split(record, [k, k + k * k])
            in_range = (np.diff(policies, prepend=-1.0, append=num_policies) > 0.0).all()
            fits = k > 0 and sums.size == (k + 1) ** 2 and bool(in_range and (sums >= 0.0).all())
            key = tuple(map(int, policies)), (played == 1.0).astype("<i4").tobytes()
            fits = fits and bool(np.isin(played, [0.0, 1.0]).all())
            if not fits or key in lineups._sums or _rank(key) >= limit:
                raise ValueError("state does not fit: 'lineups' is damaged")
            lineups._sums[key] = sums.reshape(k + 1, k + 1).copy()
            place += 1 + len(record)
        lineups._size = sum(sums.size for sums in lineups._sums.values())
        return lineups

    def _by_size(self) -> list[tuple[NDArray[np.int64], Matrix, Matrix]]:
        """Returns policies `(n, k)`, games `(n, k, k)` and sums `(n, k+1, k+1)` of all lineups of k policies."""
        self._trim()
        groups: dict[int, list[Key]] = {}
        for key in sorted(self._sums):
            groups.setdefault(len(key[0]), []).append(key)
        return [
            (
                np.array([policies for policies, _ in keys]),
                np.frombuffer(b"".join(played for _, played in keys), "<i4").reshape(-1, k, k).astype(np.float64),
                np.array([self._sums[key] for key in keys]),
            )
            for k, keys in groups.items()
        ]

    def _trim(self) -> None:
        """Keeps the first lineups, by rank, that fit into the budget."""
        self._size = sum(sums.size for sums in self._sums.values())
        if self._size <= BUDGET:
            return
        ranks = sorted((_rank(key), key) for key in self._sums)
        sizes = np.cumsum([self._sums[key].size for _, key in ranks])
        kept = int(np.searchsorted(sizes, BUDGET, side="right"))
        self._limit = ranks[kept][0]
        self._sums = {key: self._sums[key] for _, key in ranks[:kept]}
        self._size = int(sizes[kept - 1]) if kept else 0


def _rank(key: Key) -> int:
    """A hash from 0 to 2**64 - 1, the same in every process."""
    policies, played = key
    return int.from_bytes(hashlib.blake2b(np.array(policies, "<i8").tobytes() + played, digest_size=8).digest(), "big")
