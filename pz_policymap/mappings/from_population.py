"""`FromPopulation`: the base of mappings over one population."""

# Annotations are evaluated here: dataclasses of other modules inherit the one of `policies`.
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.arguments import population
from pz_policymap.mappings.base import PolicyIds, PolicyMapping


@dataclass(frozen=True)
class FromPopulation(PolicyMapping):
    """A mapping over policies given as a count or as a list of indices."""

    policies: int | Sequence[int]

    reads_agents = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "policies", population("policies", self.policies))

    @property
    @override
    def num_policies(self) -> int | None:  # type: ignore[override]
        return self.policies if isinstance(self.policies, int) else None

    @cached_property
    def size(self) -> int:
        """Number of policies."""
        return self.policies if isinstance(self.policies, int) else len(self.policies)

    def indices(self, picks: PolicyIds) -> PolicyIds:
        """Returns the index of each policy, given its position from 0 to `size - 1`."""
        return picks if isinstance(self.policies, int) else self._table[picks]

    @cached_property
    def _table(self) -> NDArray[np.int32]:
        """The indices of a population given as a list."""
        return np.array(self.policies, np.int32)
