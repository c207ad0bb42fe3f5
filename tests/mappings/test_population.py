"""`possible_policies`: the policies that a mapping may assign."""

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.population import possible_policies


class Own(PolicyMapping):
    """Policies of its own population, or of a child."""

    def __init__(self, child, num_policies):
        self.child, self.num_policies = child, num_policies

    @property
    def children(self):
        return (self.child,)

    def assign(self, draw):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (pm.Fixed(3), {3}),
        (pm.Fixed({"a": 4, "b": 1}), {1, 4}),
        (pm.Uniform(3), {0, 1, 2}),
        (pm.Uniform([5, 7]), {5, 7}),
        (pm.Weighted([0, 1, 2]), {1, 2}),
        (pm.Weighted([0, 1, 2], [4, 6, 8]), {6, 8}),
        (pm.Weighted(lambda: [1, 1], 2), {0, 1}),
        (pm.Weighted(lambda: [1, 1], [4, 6]), {4, 6}),
        (pm.Weighted(lambda: [1, 1]), set()),
        (pm.Focal(pm.Fixed(0), pm.Weighted([[0, 1, 0, 0], [0, 0, 0, 1]])), {0, 1, 3}),
        (pm.Teams(pm.Uniform([2, 9])), {2, 9}),
        (pm.FromFunction(lambda agents, draw: {}), set()),
        (Own(pm.Fixed(8), 2), {0, 1, 8}),
    ],
)
def test_possible_policies_are_those_with_a_weight(mapping, expected):
    assert possible_policies(mapping) == expected


def test_possible_policies_cover_many_draws():
    mapping = pm.Focal(pm.Uniform([0, 4]), pm.Weighted([0, 1, 3, 0], policies=[1, 2, 6, 7]), rotate=False)
    drawn = pm.assignments(mapping, ["a", "b", "c"], seed=0, episode=np.arange(200), resample_every=1)
    assert set(drawn.ravel().tolist()) == possible_policies(mapping)
