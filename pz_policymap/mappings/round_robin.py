"""`RoundRobin`: a tournament that plays every matchup."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import boolean, integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.matchups import count_matchups, matchups
from pz_policymap.mappings.population import FromPopulation
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted


@dataclass(frozen=True)
class RoundRobin(FromPopulation):
    """A tournament for any number of seats: a full cycle plays every matchup once, and then the next begins.

    Environment e plays at block b the matchup number `b * num_envs + e`, so all environments together work through the
    cycle. Matchups are computed from their number, and so is the seeded order; none is stored.

    Args:
        policies: How many policies there are, or the list of them.
        num_envs: How many environments share the work.
        order: "lexicographic": the last seat changes fastest. "seeded": a random order, another one in each cycle.
        self_matches: Whether a policy may play several seats of a matchup.
        ordered_seats: Whether the same policies in other seats are another matchup. If False, each set of policies
            meets once, the lower index in the earlier seat.

    Raises:
        TypeError: If `policies` or `num_envs` is no integer, or `self_matches` or `ordered_seats` no bool.
        ValueError: If an argument is out of range; if there are more than 2**63 matchups, or with `self_matches=False`
            none, for there are fewer policies than seats.

    Example:
        >>> from pz_policymap import Draw, RoundRobin
        >>> rule = RoundRobin(3, num_envs=2, self_matches=False, ordered_seats=False)
        >>> rule.num_matchups(num_seats=2), rule.num_blocks(num_seats=2)
        (3, 2)
        >>> rule.assign(Draw.at(0, ["a", "b"], env_index=[0, 1, 0, 1], episode=[0, 0, 10, 10])).tolist()
        [[0, 1], [0, 2], [1, 2], [0, 1]]
    """

    num_envs: int = 1  # a field where the base has a property
    order: Literal["lexicographic", "seeded"] = "lexicographic"
    self_matches: bool = True
    ordered_seats: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_envs", integer("num_envs", self.num_envs, 1))
        if self.order not in ("lexicographic", "seeded"):
            raise ValueError(f"order must be 'lexicographic' or 'seeded', got {self.order!r}")
        for name in ("self_matches", "ordered_seats"):
            object.__setattr__(self, name, boolean(name, getattr(self, name)))

    @property
    @override
    def needs_env_index(self) -> bool:
        return True

    @property
    @override
    def needs_seed(self) -> bool:
        return True

    @property
    @override
    def needs_all_seats(self) -> bool:
        return True

    @property
    @override
    def counts_blocks(self) -> bool:
        return True

    def num_matchups(self, num_seats: int) -> int:
        """Returns how many matchups a full cycle holds.

        Args:
            num_seats: The seats of one environment, from 1.

        Raises:
            TypeError: If `num_seats` is no integer.
            ValueError: If it is out of range.
        """
        seats = integer("num_seats", num_seats, 1)
        return count_matchups(self.size, seats, self.ordered_seats, self.self_matches)

    def num_blocks(self, num_seats: int) -> int:
        """Returns how many blocks every environment must play until all matchups have been played.

        Where `num_envs` does not divide the matchups, the next cycle begins in the last of these blocks.

        Args:
            num_seats: As in `num_matchups`.

        Raises:
            TypeError, ValueError: As `num_matchups` does.
        """
        return -(-self.num_matchups(num_seats) // self.num_envs)

    @override
    def check(self, agents: tuple[Hashable, ...]) -> None:
        count = self.num_matchups(len(agents))
        if not count:
            raise ValueError(f"self_matches=False needs a policy a seat: {len(agents)} seats, {self.size} policies")
        if count > 2**63:
            raise ValueError(f"policies must make at most 2**63 matchups, {self.policies} make {count}")

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        self.check(draw.agents)
        count = self.num_matchups(draw.num_seats)
        number = (draw.block * self.num_envs + draw.env_index).view(np.uint64)  # for 2**63 is no int64
        cycle, position = (part.view(np.int64) for part in np.divmod(number, np.uint64(count)))
        if self.order == "seeded":
            position = permuted(position, count, draw.keys(cycle))
        return self.indices(matchups(position, self.size, draw.num_seats, self.ordered_seats, self.self_matches))
