"""Transfers between devices, counted with a tensor that refuses every implicit conversion, as those of a GPU do."""

from collections import Counter

import numpy as np
import pytest
from gymnasium.vector import VectorEnv

import pz_policymap as pm
from tests.simulators import AGENTS, ScriptedSimulator
from tests.vector_envs import BOX, TWO

torch = pytest.importorskip("torch")

MOVED: Counter[str] = Counter()
CUDA = torch.device("cuda")
# Each of these waits for the device and copies.
IMPLICIT = {
    getattr(torch.Tensor, name)
    for name in (
        "__array__",
        "__bool__",
        "__float__",
        "__index__",
        "__int__",
        "item",
        "numpy",
        "nonzero",
        "tolist",
    )
}


class OnDevice(torch.Tensor):
    """A tensor that says it is on a GPU: only `cpu` brings it to the host, and the copies are counted."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in IMPLICIT:
            raise TypeError(f"{function.__name__} would copy a tensor to the host")
        if function == torch.Tensor.device.__get__:
            return CUDA
        if function is torch.Tensor.cpu:
            MOVED["to host"] += 1
            return args[0].as_subclass(torch.Tensor)
        if function is torch.Tensor.copy_:
            MOVED["to device"] += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def on_device(array):
    return torch.as_tensor(array).as_subclass(OnDevice)


class Vector(VectorEnv):
    """A vector of tensors: rows 0 and 1, the seats of environment 0, end at every fourth step."""

    metadata = {"autoreset_mode": "SameStep"}  # noqa: RUF012
    single_observation_space, single_action_space, num_envs = BOX, TWO, 6

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return on_device(np.zeros((6, 1), np.float32)), {}

    def step(self, actions):
        self.time += 1
        ended = np.zeros(6, bool)
        ended[:2] = self.time % 4 == 0
        rewards = on_device(np.ones(6, np.float32))
        return self.reset_observations(), rewards, on_device(ended), on_device(~ended & ended), {}

    def reset_observations(self):
        return on_device(np.zeros((6, 1), np.float32))


def simulator():
    return ScriptedSimulator(3, [[], [], [], [1], [], [], [], [1]], convert=on_device)


def isaac():
    env = simulator()
    env.reset_buf = on_device(np.zeros(3, bool))
    return env


MAKES = {"vector": (Vector, {"agents": 2}), "by agent": (simulator, {}), "reset_buf": (isaac, {})}


def moved_in(env, steps=8):
    """Transfers to the host in each of some steps."""
    counts = []
    for _ in range(steps):
        MOVED.clear()
        env.step(None)
        counts.append(MOVED["to host"])
    return counts


def test_the_stand_in_refuses_implicit_conversions():
    tensor = on_device(np.zeros(1))
    for convert in (np.asarray, bool, float, int, torch.Tensor.tolist, torch.Tensor.item, torch.Tensor.nonzero):
        with pytest.raises(TypeError, match="would copy a tensor to the host"):
            convert(tensor)


@pytest.mark.parametrize("name", MAKES)
def test_a_step_moves_one_array_of_done_flags(name):
    make, settings = MAKES[name]
    env = pm.wrap(make(), 5, seed=0, resample_every=1, **settings)
    env.reset()
    assert moved_in(env) == [1] * 8


@pytest.mark.parametrize("name", MAKES)
def test_recorder_reads_the_flags_of_the_wrapper_and_moves_returns_at_an_end_alone(name):
    make, settings = MAKES[name]
    played = []
    env = pm.record_results(pm.wrap(make(), 5, seed=0, resample_every=1, **settings), played.append)
    env.reset()
    at_end = 1 if name == "reset_buf" else 2  # that simulator says that nothing has ended
    assert moved_in(env) == [1, 1, 1, at_end] * 2
    assert [episode.lengths[0] for episode in played] == ([] if name == "reset_buf" else [4, 4])


@pytest.mark.parametrize("name", MAKES)
def test_a_step_moves_nothing_where_episodes_have_a_fixed_length(name):
    make, settings = MAKES[name]
    played = []
    env = pm.wrap(make(), 5, seed=0, resample_every=1, episode_length=4, **settings)
    env.reset()
    assert moved_in(env) == [0] * 8
    recorder = pm.record_results(env, played.append)
    recorder.reset()
    assert moved_in(recorder) == [0, 0, 0, 1] * 2
    assert {episode.lengths[0] for episode in played} == {4}


def test_policy_ids_and_groups_move_nothing_to_the_host_and_stay_on_the_device():
    env = pm.wrap(simulator(), 3, seed=0)
    observations, _ = env.reset()
    MOVED.clear()
    ids = env.policy_ids_as(observations)
    assert isinstance(ids, OnDevice)
    assert env.policy_ids_as(observations) is ids
    assert MOVED == {"to device": 1}
    rows = torch.stack([observations[agent] for agent in AGENTS], 1).flatten(0, 1)
    groups = pm.PolicyGroups(env.policy_ids)
    policies = [lambda rows, bias=policy: rows + bias for policy in range(3)]
    actions = groups.act(policies, rows)
    groups.act(policies, rows)
    assert isinstance(actions, OnDevice)
    assert MOVED == {"to device": 3}, "one index to gather and one to scatter, once per assignment"
    assert actions.as_subclass(torch.Tensor)[:, 0].tolist() == env.policy_ids.reshape(-1).tolist()


def test_recurrent_states_stay_on_the_device():
    def counts(observations, state):
        return state, state + 1

    memory = pm.RecurrentState(3, {0: on_device(np.zeros(2))})
    groups = pm.PolicyGroups([0, -1, 0])
    MOVED.clear()
    answers = [groups.act([counts], on_device(np.zeros((3, 1))), memory) for _ in range(2)]
    assert MOVED["to host"] == 0
    assert answers[1].as_subclass(torch.Tensor)[:, 0].tolist() == [1, 0, 1]


def test_flags_of_two_devices_are_read():
    env = pm.wrap(ScriptedSimulator(2, [[1]], "array"), 10**6, seed=0, resample_every=1)
    env.reset()
    before = env.policy_ids
    env.env.step = lambda actions: ({}, {}, on_device(np.array([False, True])), np.array([True, False]), {})
    env.step(None)
    assert (env.policy_ids != before).all()
