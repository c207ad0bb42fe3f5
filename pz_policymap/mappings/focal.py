"""`Focal`: some seats for the learner, the others for its background."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.arguments import boolean, integer
from pz_policymap.mappings.base import (
    PolicyIds,
    PolicyMapping,
    as_child,
    checked_assign,
    from_children,
    joint_population,
)
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.philox import IntArray

_MAX_SEATINGS = 1000  # sets of focal seats that `check` tries one by one


@dataclass(frozen=True)
class Focal(PolicyMapping):
    """One mapping for the focal seats, another for the background (Melting Pot, Leibo et al. 2021).

    Both draw for their own seats, numbered in seat order, and independently of each other. Weights in the background
    may be a matrix: `Weighted` then uses the row of the focal policy (with several focal seats, of the first one).
    This holds for `Weighted` inside `Shared`, `Teams` and `Roles` too.

    Args:
        focal: The mapping for the focal seats.
        background: The mapping for all other seats.
        num_focal: Number of focal seats, from 1 to all of them.
        rotate: Whether each draw chooses the focal seats uniformly among all sets of that size. If False, they are the
            first seats.

    Raises:
        TypeError: If `focal` or `background` is not a `PolicyMapping`, `num_focal` a non-integer, or `rotate` not a
            bool.
        ValueError: If `num_focal` is out of range, or if a mapping cannot serve the seats that it may be given.

    Example:
        >>> from pz_policymap import Draw, Fixed, Focal, Uniform, Weighted
        >>> draw = Draw.at(1, ["a", "b", "c"], env_index=[0, 1, 2, 3], episode=[0] * 4)
        >>> Focal(Fixed(9), Uniform(4)).assign(draw).tolist()
        [[1, 9, 2], [9, 3, 0], [2, 1, 9], [9, 3, 0]]
        >>> opponents = Weighted([[0, 0, 1, 1], [1, 1, 0, 0]])  # 0 meets 2 and 3; 1 meets 0 and 1
        >>> Focal(Uniform([0, 1]), opponents, rotate=False).assign(draw).tolist()
        [[0, 2, 3], [1, 1, 0], [0, 3, 2], [0, 3, 2]]
    """

    focal: PolicyMapping
    background: PolicyMapping
    num_focal: int = 1
    rotate: bool = True

    num_policies = from_children(joint_population)
    reads_agents = from_children(any)

    def __post_init__(self) -> None:
        as_child("focal", self.focal)
        as_child("background", self.background)
        object.__setattr__(self, "num_focal", integer("num_focal", self.num_focal, 1))
        object.__setattr__(self, "rotate", boolean("rotate", self.rotate))

    @property
    @override
    def children(self) -> tuple[PolicyMapping, ...]:
        return (self.focal, self.background)

    @property
    @override
    def needs_all_seats(self) -> bool:  # type: ignore[override]
        return self.rotate or any(child.needs_all_seats for child in self.children)

    @property
    @override
    def needs_focal(self) -> bool:  # type: ignore[override]
        return self.focal.needs_focal  # the background receives the focal policy

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        if self.num_focal > len(agents):
            raise ValueError(f"num_focal must be at most the number of seats, got {self.num_focal} of {len(agents)}")
        for chosen in self._seatings(len(agents)):
            self.focal.check(tuple(agents[seat] for seat in sorted(chosen)))
            others = tuple(agent for seat, agent in enumerate(agents) if seat not in chosen)
            if others:
                self.background.check(others)

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        order = self._order(draw)
        policy_ids = np.empty((draw.num_envs, draw.num_seats), np.int32)
        if draw.num_envs == 1:
            policy_ids[0, order[0]] = self._assigned(draw, order[0])[0]
        elif not self.reads_agents:
            np.put_along_axis(policy_ids, order, self._assigned(draw, order[0]), axis=1)
        else:
            for rows in _equal_rows(order):
                policy_ids[rows[:, None], order[rows]] = self._assigned(draw.only(rows), order[rows[0]])
        return policy_ids

    def _assigned(self, draw: Draw, seats: IntArray) -> PolicyIds:
        """Returns the policies of these seats, focal ones first, for environments with the same focal seats."""
        agents = [draw.agents[seat] for seat in seats.tolist()]
        ours, others = agents[: self.num_focal], agents[self.num_focal :]
        focal = checked_assign(self.focal, draw.child("focal", agents=ours))
        if not others:
            return focal
        against = draw.child("background", agents=others).against(focal[:, 0])
        return np.concatenate([focal, checked_assign(self.background, against)], axis=1)

    def _order(self, draw: Draw) -> IntArray:
        """Returns the seats of each environment with the focal ones first, both parts in seat order."""
        shape = (draw.num_envs, draw.num_seats)
        if not self.rotate:
            return np.broadcast_to(np.arange(draw.num_seats), shape)
        shuffled = draw.bits().argsort(axis=1)
        if draw.num_envs == 1:  # the same order in plain integers, which are faster for one environment
            seats = shuffled[0].tolist()
            return np.array([sorted(seats[: self.num_focal]) + sorted(seats[self.num_focal :])])
        background = np.ones(shape, np.bool_)
        np.put_along_axis(background, shuffled[:, : self.num_focal], False, axis=1)
        return np.argsort(background, axis=1, kind="stable")

    def _seatings(self, num_seats: int) -> Iterator[set[int]]:
        """Yields the sets of focal seats to check; if there are too many, the sets of consecutive seats."""
        if not self.rotate or not self.reads_agents:
            yield set(range(self.num_focal))
        elif math.comb(num_seats, self.num_focal) <= _MAX_SEATINGS:
            yield from map(set, combinations(range(num_seats), self.num_focal))
        else:
            for first in range(num_seats):
                yield {(first + i) % num_seats for i in range(self.num_focal)}


def _equal_rows(order: IntArray) -> list[NDArray[np.intp]]:
    """Returns the indices of equal rows, one array per distinct row."""
    by_order = np.lexsort(order.T)
    changes = (order[by_order[1:]] != order[by_order[:-1]]).any(axis=1)
    return np.split(by_order, np.flatnonzero(changes) + 1)
