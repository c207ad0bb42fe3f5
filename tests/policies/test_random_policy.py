"""`RandomPolicy`: uniform over allowed actions, reproducible, and without an effect on the environment's spaces."""

from collections import Counter

import numpy as np
import pytest
from gymnasium import spaces

from pz_policymap.policies.random_policy import RandomPolicy

SPACES = [
    spaces.Discrete(6, start=3),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(4),
    spaces.Box(-1.0, 1.0, (2,)),
    spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))),
]


def actions(space, seed, count=40, observation=None, info=None):
    policy, rng = RandomPolicy(lambda agent: space), np.random.default_rng(seed)
    return [policy(observation, "a", info or {}, rng=rng) for _ in range(count)]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_actions_follow_from_the_generator_and_leave_the_space_alone(space):
    space.seed(5)
    first = actions(space, 1)
    assert all(space.contains(action) for action in first)
    assert str(first) == str(actions(space, 1))
    assert str(first) != str(actions(space, 2))
    after = str(space.sample())
    space.seed(5)
    assert after == str(space.sample())


@pytest.mark.parametrize("kind", [np.array, list, lambda mask: np.array(mask, bool)])
@pytest.mark.parametrize("place", ["observation", "info"])
def test_masked_actions_are_never_chosen(kind, place):
    mask = kind([0, 1, 0, 0, 1, 0])
    counts = Counter(map(int, actions(SPACES[0], 0, 2_000, **{place: {"action_mask": mask}})))
    assert set(counts) == {4, 7}  # places 1 and 4 of a space that starts at 3
    assert 850 < counts[4] < 1150


def test_masks_of_other_spaces_are_respected():
    mask = (np.array([0, 1], np.int8), np.array([0, 0, 1], np.int8))
    assert {tuple(action.tolist()) for action in actions(SPACES[1], 0, info={"action_mask": mask})} == {(1, 2)}


def test_mask_that_allows_nothing_gives_the_first_action():
    assert set(map(int, actions(SPACES[0], 0, info={"action_mask": np.zeros(6, np.int8)}))) == {3}
