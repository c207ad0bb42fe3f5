"""`possible_policies`: the policies that a mapping may assign."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.fixed import Fixed
from pz_policymap.mappings.uniform import FromPopulation
from pz_policymap.mappings.weighted import Weighted


def possible_policies(mapping: PolicyMapping) -> set[int]:
    """Returns the policies that a mapping may assign: its whole population, but none with a weight of zero.

    A mapping without a known population, such as a plain function, adds nothing.

    Example:
        >>> from pz_policymap import Fixed, Focal, Weighted
        >>> sorted(possible_policies(Focal(Fixed(0), Weighted([0.0, 0.0, 1.0]))))
        [0, 2]
    """
    if isinstance(mapping, Fixed):
        policies = mapping.policy
        return set(policies.values()) if isinstance(policies, Mapping) else {policies}
    if isinstance(mapping, Weighted) and not callable(mapping.weights):
        weights = np.atleast_2d(np.asarray(mapping.weights))
        ids = np.arange(weights.shape[1]) if isinstance(mapping.policies, int | None) else np.array(mapping.policies)
        return set(ids[(weights > 0.0).any(axis=0)].tolist())
    if isinstance(mapping, (FromPopulation, Weighted)) and not isinstance(mapping.policies, int | None):
        return set(mapping.policies)
    if mapping.is_own and mapping.children:
        return set().union(*map(possible_policies, mapping.children))
    return set(range(mapping.num_policies or 0)).union(*map(possible_policies, mapping.children))
