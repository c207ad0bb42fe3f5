"""Batches of JAX arrays: they stay JAX arrays, and NumPy's next to them become JAX arrays."""

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.wrappers.done_flags import done_rows
from tests.simulators import ScriptedSimulator

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


def test_groups_take_and_return_jax_arrays():
    groups = pm.PolicyGroups([2, 0, 2, -1])
    rows = {"x": jnp.arange(4.0), "y": (jnp.ones((4, 2)),)}
    actions = groups.act({0: lambda rows: rows["x"] + 10, 2: lambda rows: rows["x"] * rows["y"][0][:, 0]}, rows)
    assert isinstance(actions, jax.Array)
    assert actions.tolist() == [0, 11, 2, 0]
    mixed = groups.scatter({0: np.zeros((1, 2), np.float32), 2: jnp.ones((2, 2))})
    assert isinstance(mixed, jax.Array)
    assert mixed.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]
    assert pm.PolicyGroups(jnp.array([1, 0])).policies == (0, 1)


def test_recurrent_states_may_be_jax_arrays():
    def counts(observations, state):
        return state["n"], {"n": state["n"] + 1}

    memory = pm.RecurrentState(3, {0: {"n": jnp.zeros(2)}})
    groups = pm.PolicyGroups([0, -1, 0])
    answers = [groups.act([counts], jnp.zeros(3), memory)[:, 0].tolist() for _ in range(2)]
    memory.begin([2])
    answers.append(groups.act([counts], jnp.zeros(3), memory)[:, 0].tolist())
    assert answers == [[0, 0, 0], [1, 0, 1], [2, 0, 0]]


def test_act_stacks_jax_observations():
    def policy(observations):
        assert isinstance(observations, jax.Array)
        return observations.sum(1)

    actions = pm.act([policy], {"a": jnp.ones(2), "b": jnp.zeros(2)}, {key: {"policy_id": 0} for key in "ab"})
    assert {agent: float(action) for agent, action in actions.items()} == {"a": 2, "b": 0}


def test_simulator_of_jax_arrays_equals_one_of_numpy():
    ends = [[(0, "red")], [(0, "blue"), (0, "green")], [1], []]
    played, tags = [], []
    for convert in (np.array, jnp.asarray):
        episodes = []
        env = pm.wrap(ScriptedSimulator(2, ends, convert=convert), 10**6, seed=0, resample_every=1)
        env = pm.record_results(env, episodes.append)
        observations, _ = env.reset()
        assert env.policy_ids_as(observations).tolist() == env.policy_ids.tolist()
        assert type(env.policy_ids_as(observations)) is type(observations["red"])
        tags.append([env.step(0)[-1]["blue"]["policy_id"].tolist() for _ in ends])
        played.append(episodes)
    assert tags[0] == tags[1]
    assert len(played[0]) == 2
    assert played[0] == played[1]


def test_done_flags_may_be_jax_arrays():
    assert done_rows(jnp.array([False, True]), jnp.array([False, False])).tolist() == [1]
