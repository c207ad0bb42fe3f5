"""`PerWorker`: each worker needs only a few policies at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pz_policymap.arguments import integer
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.uniform import FromPopulation
from pz_policymap.randomness.draw import Draw
from pz_policymap.randomness.permutation import permuted
from pz_policymap.randomness.philox import IntArray


@dataclass(frozen=True)
class PerWorker(FromPopulation):
    """Each worker uses a few of the policies at a time, and replaces one of them from block to block.

    Every worker arranges the policies in a circle, in its own seeded order. At block b its environments use
    the `policies_per_worker` policies from position b on; each seat is drawn uniformly from them. So one policy leaves
    and one joins at every block. Environments that are d blocks apart need d more policies. Over as many blocks as
    there are policies, every worker uses each policy for the same number of blocks.

    Args:
        policies: Number of policies, or a list of policy indices.
        policies_per_worker: Number of policies that a worker uses in one block.
        envs_per_worker: Number of environments per worker: worker w has env indices from `w * envs_per_worker` on.

    Raises:
        TypeError: If an argument is a non-integer.
        ValueError: If an argument is out of range, or if `policies_per_worker` exceeds the number of policies.

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

    needs_env_index = True
    needs_seed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        per_worker = integer("policies_per_worker", self.policies_per_worker, 1, self.size)
        object.__setattr__(self, "policies_per_worker", per_worker)
        object.__setattr__(self, "envs_per_worker", integer("envs_per_worker", self.envs_per_worker, 1))

    @override
    def assign(self, draw: Draw) -> PolicyIds:
        return self._at(draw, draw.block[:, None] + draw.integers(self.policies_per_worker))

    def needed(self, seed: int | Sequence[int], worker: int, block: int, last_block: int | None = None) -> list[int]:
        """Returns the policies that a worker needs while its environments are in these blocks, the longest used last.

        It holds for the mapping on its own or in `Shared`; inside other mappings the order differs.

        Args:
            seed: The pinned seed.
            worker: Index of the worker, >= 0.
            block: Smallest block among the worker's environments, >= 0.
            last_block: Largest block among them; add 1 to learn what to load next. None: `block`.

        Raises:
            TypeError: If an argument is a non-integer.
            ValueError: If an argument is out of range.
        """
        first = integer("block", block, 0)
        last = first if last_block is None else integer("last_block", last_block, first)
        count = min(last - first + self.policies_per_worker, self.size)
        env_index = integer("worker", worker, 0) * self.envs_per_worker
        draw = Draw.at(seed, ["any"], [env_index], [0])  # the order is the same at every episode
        policies: list[int] = self._at(draw, first + np.arange(count)[None]).tolist()[0]
        return policies

    def _at(self, draw: Draw, positions: IntArray) -> PolicyIds:
        """Returns the policies at these positions of the circle of each environment's worker."""
        keys = draw.keys(draw.env_index // self.envs_per_worker)
        return self.indices(permuted(positions % self.size, self.size, keys[:, None]))
