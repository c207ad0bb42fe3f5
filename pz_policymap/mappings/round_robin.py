"""`RoundRobin`: a tournament that visits every matchup."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import boolean, integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.matchups import count_matchups, matchups
from pz_policymap.mappings.uniform import FromPopulation
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted


@dataclass(frozen=True)
class RoundRobin(FromPopulation):
    """A tournament for any number of seats: a cycle holds every matchup once, and then the next cycle begins.

    Environment e gets matchup number `b * num_envs + e` at block b, so all environments together work through a cycle.
    By default each episode is a block. Matchups are computed from their numbers; none is stored.

    Args:
        policies: Number of policies, or a list of policy indices.
        num_envs: Number of environments that share the work.
        order: "lexicographic": the last seat changes fastest. "seeded": a random order, a new one in each cycle.
        self_matches: Whether a policy may control several seats of a matchup.
        ordered_seats: Whether the same policies in other seats are another matchup. If False, each set of policies
            meets once, the lower index in the earlier seat.

    Raises:
        TypeError: If `policies` or `num_envs` is a non-integer, or if `self_matches` or `ordered_seats` is not a bool.
        ValueError: If an argument is out of range, if there are more than 2**63 matchups, or if `self_matches=False`
            and there are fewer policies than seats.

    Example:
        >>> from pz_policymap import Draw, RoundRobin
        >>> rule = RoundRobin(3, num_envs=2, self_matches=False, ordered_seats=False)
        >>> rule.num_matchups(num_seats=2), rule.num_blocks(num_seats=2)
        (3, 2)
        >>> rule.assign(Draw.at(0, ["a", "b"], env_index=[0, 1, 0, 1], episode=[0, 0, 10, 10])).tolist()
        [[0, 1], [0, 2], [1, 2], [0, 1]]
    """

    num_envs: int = 1
    order: Literal["lexicographic", "seeded"] = "lexicographic"
    self_matches: bool = True
    ordered_seats: bool = True

    needs_all_seats = True
    counts_blocks = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_envs", integer("num_envs", self.num_envs, 1))
        if self.order not in ("lexicographic", "seeded"):
            raise ValueError(f"order must be 'lexicographic' or 'seeded', got {self.order!r}")
        for name in ("self_matches", "ordered_seats"):
            object.__setattr__(self, name, boolean(name, getattr(self, name)))

    @property
    @override
    def needs_env_index(self) -> bool:  # type: ignore[override]
        return self.num_envs > 1

    @property
    @override
    def needs_seed(self) -> bool:  # type: ignore[override]
        return self.num_envs > 1 or self.order == "seeded"

    def num_matchups(self, num_seats: int) -> int:
        """Returns the number of matchups in a cycle.

        Args:
            num_seats: Number of seats of one environment, >= 1.

        Raises:
            TypeError: If `num_seats` is a non-integer.
            ValueError: If it is out of range.
        """
        seats = integer("num_seats", num_seats, 1)
        return count_matchups(self.size, seats, self.ordered_seats, self.self_matches)

    def num_blocks(self, num_seats: int) -> int:
        """Returns the number of blocks in which all environments together visit every matchup.

        If `num_envs` does not divide the number of matchups, the next cycle begins in the last of these blocks.

        Args:
            num_seats: Number of seats of one environment, >= 1.

        Raises:
            TypeError, ValueError: As `num_matchups` does.
        """
        return -(-self.num_matchups(num_seats) // self.num_envs)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        count = self.num_matchups(len(agents))
        if not count:
            raise ValueError(
                f"self_matches=False needs at least one policy per seat, got {self.size} policies for "
                f"{len(agents)} seats"
            )
        if count > 2**63:
            raise ValueError(f"policies must make at most 2**63 matchups, got {count}")

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        self.check(draw.agents)
        count = self.num_matchups(draw.num_seats)
        number = (draw.block * self.num_envs + draw.env_index).view(np.uint64)  # 2**63 does not fit into int64
        cycle, position = (part.view(np.int64) for part in np.divmod(number, np.uint64(count)))
        if self.order == "seeded":
            position = permuted(position, count, draw.keys(cycle))
        return self.indices(matchups(position, self.size, draw.num_seats, self.ordered_seats, self.self_matches))
