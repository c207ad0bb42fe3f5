"""`LearnerVectorEnv`: opponents of several environments act in one batch, and nothing else changes."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.learner.together import PreparedEnv
from pz_policymap.wrappers.autoreset import Autoreset
from tests.learner_envs import Survival
from tests.vector_envs import in_mode, needs_modes

SEATED = pm.Focal(pm.Fixed(0), pm.Uniform([1, 2]))
MEETS_ITSELF = pm.Focal(pm.Fixed(0), pm.Weighted([0.8, 0.2]))


class Network:
    """Chooses by a sum over the observation, so that equal observations give equal actions in any batch."""

    def __init__(self):
        self.sizes = []

    def predict(self, observation, action_masks=None):
        self.sizes.append(len(observation))
        values = np.reshape(observation, (len(observation), -1)).astype(np.int64)
        number = (values * np.arange(1, 1 + values.shape[1])).sum(axis=1)
        if action_masks is None:
            return number % 3, None
        return np.array(
            [np.flatnonzero(mask)[n % mask.sum()] for n, mask in zip(number, action_masks, strict=True)]
        ), None


class Remembers:
    """Has a state: the number of its calls in the episode."""

    def predict(self, observation, state=None, action_masks=None):
        count = 0 if state is None else state
        legal = np.arange(3) if action_masks is None else np.flatnonzero(action_masks[0])
        return legal[[count % len(legal)]], count + 1


def draws(observation, agent, info, rng):
    mask = observation["action_mask"] if isinstance(observation, dict) else np.ones(3)
    return int(rng.choice(np.flatnonzero(mask)))


ENVS = {
    "connect four": connect_four_v3.env,
    "tic-tac-toe": tictactoe_v3.env,
    "rock paper scissors": lambda: rps_v2.parallel_env(max_cycles=3),
    "survival": Survival,
}
OPPONENTS = {
    "batched": lambda: {1: Network(), 2: Network()},
    "one network under two ids": lambda: dict.fromkeys([1, 2], Network()),
    "with a state": lambda: {1: Remembers(), 2: Remembers()},
    "mixed": lambda: {1: Network(), 2: draws},
    "random": lambda: {1: "random", 2: draws},
    "itself": lambda: {0: Network(), 1: draws},
}


def makers(make, policies, isolate=False, count=4):
    mapping = MEETS_ITSELF if 0 in policies else SEATED

    def learner_env():
        env = pm.record_results(pm.wrap(make(), mapping, resample_every=1))
        return pm.LearnerEnv(env, policies, isolate_randomness=isolate)

    return [learner_env] * count


def trajectory(envs, mode, steps=25):
    """Returns everything that a vector environment shows in some steps, from legal actions."""
    rng = np.random.default_rng(0)
    seen = [envs.reset(seed=7)]
    for _ in range(steps):
        masks = np.array(envs.call("action_masks"))
        masks[~masks.any(axis=1)] = True  # the last one of an episode may allow nothing
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        seen.append((*envs.step(actions), envs.call("agent"), masks))
        over = seen[-1][2] | seen[-1][3]
        if mode is Autoreset.DISABLED and over.any():
            seen.append(envs.reset(options={"reset_mask": over}))
    return seen


def assert_equal_trajectories(name, opponents, mode, isolate=False):
    separate, together = (
        trajectory(in_mode(kind, makers(ENVS[name], OPPONENTS[opponents](), isolate), mode), mode)
        for kind in (SyncVectorEnv, pm.LearnerVectorEnv)
    )
    assert data_equivalence(separate, together)
    assert sum(len(pm.finished_episodes(part[4])) for part in separate if len(part) > 4) > 4


@pytest.mark.parametrize("opponents", OPPONENTS)
@pytest.mark.parametrize("name", ENVS)
def test_outcomes_equal_those_of_separate_environments(name, opponents):
    assert_equal_trajectories(name, opponents, Autoreset.NEXT_STEP)


@needs_modes
@pytest.mark.parametrize("mode", Autoreset)
@pytest.mark.parametrize("isolate", [False, True])
def test_outcomes_equal_those_of_separate_environments_in_every_mode(mode, isolate):
    assert_equal_trajectories("tic-tac-toe", "mixed", mode, isolate)


def test_observations_of_all_environments_are_one_batch():
    network = Network()
    envs = pm.LearnerVectorEnv(makers(Survival, {1: network, 2: network}, count=3))
    envs.reset(seed=0)
    network.sizes.clear()
    envs.step(np.zeros(3, np.int64))
    assert network.sizes[0] == 3 * 3
    assert len(network.sizes) < 6


def test_environments_with_isolated_randomness_act_alone():
    network = Network()
    envs = pm.LearnerVectorEnv(makers(Survival, {1: network, 2: network}, isolate=True, count=3))
    envs.reset(seed=0)
    network.sizes.clear()
    envs.step(np.zeros(3, np.int64))
    assert max(network.sizes) == 3


class FailsOnce:
    """A stateless policy that raises at its second call."""

    calls = 0

    def predict(self, observation):
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("out of memory")
        return np.zeros(len(observation), np.int64), None


def test_after_an_error_a_reset_begins_afresh():
    policy = FailsOnce()
    envs = pm.LearnerVectorEnv(makers(ENVS["rock paper scissors"], {1: policy, 2: policy}, count=2))
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    with pytest.raises(RuntimeError, match="out of memory"):
        envs.step(np.zeros(2, np.int64))
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, np.int64))
    envs.reset()
    envs.step(np.zeros(2, np.int64))


def test_outcomes_of_a_failed_step_are_dropped():
    policy = FailsOnce()
    make = ENVS["rock paper scissors"]
    failing = makers(make, {1: policy, 2: policy}, isolate=True, count=1)  # which is stepped alone, in its turn
    envs = pm.LearnerVectorEnv([*failing, *makers(make, ["random"] * 3, count=1)])
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    with pytest.raises(RuntimeError, match="out of memory"):
        envs.step(np.zeros(2, np.int64))
    observations, _ = envs.reset()
    assert observations.tolist() == [3, 3]  # no hands have been shown yet


def test_prepared_environment_without_outcomes_steps_the_environment():
    (make,) = makers(ENVS["rock paper scissors"], {1: Network(), 2: Network()}, count=1)
    envs = make(), PreparedEnv(make())
    alone, ahead = ([env.reset(seed=3), env.step(0), env.step(1)] for env in envs)
    assert data_equivalence(alone, ahead)


def test_an_environment_that_is_not_a_learner_env_is_refused():
    with pytest.raises(TypeError, match="env_fns must return LearnerEnvs, got <TimeLimit"):
        pm.LearnerVectorEnv([lambda: TimeLimit(makers(Survival, ["random"] * 3)[0](), 3)])


@pytest.mark.skipif(find_spec("stable_baselines3") is not None, reason="stable-baselines3 is installed")
def test_adapter_without_stable_baselines3_names_the_install_command():
    with pytest.raises(ImportError, match="pip install 'stable-baselines3>=2.9'"):
        import_module("pz_policymap.adapters.stable_baselines3")


def test_policies_are_replaced_through_the_vector_environment():
    first, second = Network(), Network()
    envs = pm.LearnerVectorEnv(makers(Survival, {1: first, 2: first}, count=2))
    envs.call("set_policies", {1: second, 2: second})
    envs.reset(seed=0)
    envs.step(np.zeros(2, np.int64))
    assert second.sizes
    assert not first.sizes


def test_environments_pinned_to_the_same_assignments_are_refused():
    def make(env_index):
        env = pm.wrap(Survival(), pm.Focal(pm.Fixed(0), pm.Uniform([1, 2])), seed=3, env_index=env_index)
        return pm.LearnerEnv(env, {1: "random", 2: "random"})

    assert pm.LearnerVectorEnv([lambda i=i: make(i) for i in range(2)]).num_envs == 2
    with pytest.raises(ValueError, match=r"different assignments, got \(seed, env_index\) \[\(3, 0\), \(3, 0\)\]"):
        pm.LearnerVectorEnv([lambda: make(0)] * 2)
