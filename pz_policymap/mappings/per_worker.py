"""`PerWorker`: a worker holds few networks at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.population import FromPopulation
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted
from pz_policymap.randomness.philox import IntArray


@dataclass(frozen=True)
class PerWorker(FromPopulation):
    """The seats of a worker's environments draw from a few of the policies, others from block to block.

    Every worker has the policies in a seeded order of its own, round a circle. At block b its environments play the
    `policies_per_worker` policies from position b on, each seat one of them uniformly. So one policy leaves and one
    joins at every block, environments that have drifted d blocks apart need d policies more, and over as many blocks as
    there are policies each is played for the same number of blocks, on every worker.

    Args:
        policies: How many policies there are, or the list of them.
        policies_per_worker: How many of them a worker plays in one block.
        envs_per_worker: How many environments a worker has: worker w has env indices from `w * envs_per_worker` on.

    Raises:
        TypeError: If an argument is no integer.
        ValueError: If one is out of range, `policies_per_worker` above the number of policies included.

    Example:
        >>> from pz_policymap import Draw, PerWorker
        >>> rule = PerWorker(6, policies_per_worker=2, envs_per_worker=2)
        >>> rule.needed(seed=2, worker=1, block=0)
        [4, 3]
        >>> rule.needed(seed=2, worker=1, block=0, last_block=1)  # 2 joins at the next block
        [4, 3, 2]
        >>> rule.assign(Draw.at(2, ["a", "b", "c"], env_index=[2, 3], episode=[0, 0])).tolist()
        [[3, 3, 4], [3, 3, 4]]
    """

    policies_per_worker: int
    envs_per_worker: int

    def __post_init__(self) -> None:
        super().__post_init__()
        per_worker = integer("policies_per_worker", self.policies_per_worker, 1, self.size)
        object.__setattr__(self, "policies_per_worker", per_worker)
        object.__setattr__(self, "envs_per_worker", integer("envs_per_worker", self.envs_per_worker, 1))

    @property
    @override
    def needs_env_index(self) -> bool:
        return True

    @property
    @override
    def needs_seed(self) -> bool:
        return True

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        return self._standing(draw, draw.block[:, None] + draw.integers(self.policies_per_worker))

    def needed(self, seed: int | Sequence[int], worker: int, block: int, last_block: int | None = None) -> list[int]:
        """Returns the policies that a worker needs while its environments play these blocks, those that stay last.

        It holds for the rule as it stands alone or in `Shared`; inside another rule it has an order of its own.

        Args:
            seed: The pinned seed.
            worker: From 0.
            block: The block of the environment that is furthest behind, from 0.
            last_block: The block of the one that is furthest ahead; one more, to know what to load next. None: `block`.

        Raises:
            TypeError: If an argument is no integer.
            ValueError: If one is out of range.
        """
        first = integer("block", block, 0)
        last = first if last_block is None else integer("last_block", last_block, first)
        count = min(last - first + self.policies_per_worker, self.size)
        env_index = integer("worker", worker, 0) * self.envs_per_worker
        draw = Draw.at(seed, ["any"], [env_index], [0])  # the order is the same at every episode
        policies: list[int] = self._standing(draw, first + np.arange(count)[None]).tolist()[0]
        return policies

    def _standing(self, draw: Draw, positions: IntArray) -> PolicyIds:
        """Returns the policies that stand at these positions of the circle, in the order of each one's worker."""
        keys = draw.keys(draw.env_index // self.envs_per_worker)
        return self.indices(permuted(positions % self.size, self.size, keys[:, None]))
