"""Cost of the tag in a batch, for steps without and with ends of episodes."""

from itertools import cycle
from typing import Any, ClassVar

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", minversion="1.0")

from pz_policymap import PolicyMapVector  # noqa: E402

NUM_POLICIES = 8
ROWS = 16_384


class Still(gymnasium.vector.VectorEnv):
    """Does nothing except ending rows, at no cost."""

    metadata: ClassVar[dict[str, Any]] = {}
    single_action_space = single_observation_space = gymnasium.spaces.Discrete(2)

    def __init__(self, num_envs, share=0.0, seed=0):
        self.num_envs = num_envs
        self.nothing = np.zeros(num_envs)
        self.no_end = np.zeros(num_envs, np.bool_)
        self.infos = {}
        rng = np.random.default_rng(seed)
        self.ends = cycle([rng.random(num_envs) < share for _ in range(100)])

    def reset(self, *, seed=None, options=None):
        return self.nothing, self.infos

    def step(self, actions):
        return self.nothing, self.nothing, next(self.ends), self.no_end, self.infos


def wrapped(env, mode="NextStep", resample_every=10):
    env = PolicyMapVector(env, NUM_POLICIES, resample_every=resample_every, seed=0, autoreset_mode=mode)
    env.reset()
    return env


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_step_without_an_end_costs_the_same_at_any_number_of_rows(side_by_side, report, mode):
    many, few = wrapped(Still(ROWS), mode), wrapped(Still(64), mode)
    times = side_by_side(lambda: many.step(None), lambda: few.step(None), rounds=101)
    what = f"PolicyMapVector.step, no end, {mode}, 16,384 rows"
    report(what, "the same, 64 rows", times[0] / times[1], 1.2, 2)


@pytest.mark.parametrize(("resample_every", "target", "tolerance"), [(10, 3, 6), (1, 10, 20)])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_step_with_ends_costs_about_unseeded_numpy(side_by_side, report, mode, resample_every, target, tolerance):
    env, bare = wrapped(Still(ROWS, 0.01), mode, resample_every), Still(ROWS, 0.01)
    rng = np.random.default_rng()
    policy_ids = rng.integers(0, NUM_POLICIES, ROWS)
    episodes = np.zeros(ROWS, np.int64)
    begins = np.zeros(ROWS, np.bool_)

    def by_hand():
        nonlocal begins
        observations, rewards, terminations, truncations, infos = bare.step(None)
        ended = terminations | truncations
        begun, begins = (begins, ended) if mode == "NextStep" else (ended, begins)
        if resample_every > 1:
            episodes[begun] += 1
            begun &= episodes % resample_every == 0
        policy_ids[begun] = rng.integers(0, NUM_POLICIES, np.count_nonzero(begun))
        return observations, rewards, terminations, truncations, {**infos, "policy_id": policy_ids}

    for _ in range(1000):  # until the rows are at different episodes
        env.step(None), by_hand()
    ours, persons = side_by_side(lambda: env.step(None), by_hand, rounds=101)
    what = f"PolicyMapVector.step, 1% of 16,384 rows end, {mode}, resample_every={resample_every}"
    report(what, "hand-written NumPy, unseeded", ours / persons, target, tolerance)
