"""Resumption of a `SnapshotPool`: its state, its latest mapping, and a run that is killed at random moments."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.classic import rps_v2

import pz_policymap as pm

SCRIPT = Path(__file__).with_name("killed_pool_run.py")
EPISODES = 160
KILLS = 20


def new_pool(**settings):
    learner = pm.PoolLearner("main", {"snapshots": (0.8, "pfsp"), "random": 0.2}, every=3)
    return pm.SnapshotPool([learner], fixed=["random"], **{"capacity": 3, **settings})


def start(path):
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(path), str(EPISODES)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def test_run_killed_twenty_times_meets_the_same_opponents(tmp_path):
    whole, killed = tmp_path / "whole.npz", tmp_path / "killed.npz"
    assert start(whole).wait() == 0
    expected = pm.load(whole)

    moments, progress = random.Random(0), []
    for _ in range(KILLS):
        process = start(killed)
        process.stdout.read(moments.randint(1, 2 * EPISODES // KILLS - 3))  # so many episodes later
        time.sleep(moments.uniform(0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        progress.append(len(pm.load(killed)["run"]["matchups"]))
    assert start(killed).wait() == 0

    assert len(set(progress)) > KILLS // 2  # the kills are spread over the run
    resumed = pm.load(killed)
    assert resumed["run"]["matchups"] == expected["run"]["matchups"]
    assert len({tuple(sorted(ids)) for ids in expected["run"]["matchups"]}) > 8  # the opponents are not always the same
    assert len(expected["pool"]["released"]) > 5
    for part in ("env", "pool", "networks"):
        assert resumed[part] == expected[part], part
    np.testing.assert_array_equal(resumed["payoff"]["table"], expected["payoff"]["table"])


def test_resumed_pool_has_the_latest_mapping_and_fits_the_saved_environment(tmp_path):
    pool, payoff = new_pool(), pm.Payoff(2)
    pool.snapshot("main", 3, payoff)
    payoff.record(pm.Episode(policies=[0, 2], returns=[1.0, 0.0]))
    env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), seed=0)
    env.reset()
    pm.save(tmp_path / "run.npz", env=env, payoff=payoff, pool=pool)

    states, resumed = pm.load(tmp_path / "run.npz"), new_pool()
    resumed.load_state_dict(states["pool"])
    assert resumed.last_mapping == pool.last_mapping == env.assigner.mapping
    again = pm.wrap(rps_v2.parallel_env(), resumed.last_mapping)
    again.load_state_dict(states["env"])
    again.reset()
    assert again.policy_ids == env.policy_ids
    resumed.retire(2)
    assert resumed.release([again]) == []  # it follows a mapping that still holds the member


def test_latest_mapping_of_a_new_pool_is_that_of_an_empty_ledger():
    pool = new_pool()
    assert pool.last_mapping == new_pool().mapping(pm.Payoff(2))


def test_resumed_pool_with_many_members_keeps_its_mapping_to_the_bit(tmp_path):
    pool = pm.SnapshotPool([pm.PoolLearner(name, {"all snapshots": (1.0, "pfsp")}) for name in ("red", "blue")])
    payoff, rng = pm.Payoff(2), np.random.default_rng(0)
    for step in range(600):  # more weights than the text of a mapping holds
        pool.snapshot("red", step, payoff)
    for opponent in range(2, 602, 7):
        payoff.record(pm.Episode(policies=[int(rng.integers(2)), opponent], returns=rng.random(2)))
    mapping = pool.mapping(payoff)
    pm.save(tmp_path / "pool.npz", pool=pool)
    resumed = pm.SnapshotPool([pm.PoolLearner(name, {"all snapshots": (1.0, "pfsp")}) for name in ("red", "blue")])
    resumed.load_state_dict(pm.load(tmp_path / "pool.npz")["pool"])
    assert resumed.last_mapping == mapping
    assert repr(resumed.last_mapping) == repr(mapping)


def test_state_of_pool_is_plain_and_restores_members_and_slots():
    pool = new_pool()
    pool.snapshot("main", 3), pool.snapshot("main", 6)
    state = json.loads(json.dumps(pool.state_dict()))
    other = new_pool()
    other.load_state_dict(state)
    assert other.members == pool.members
    assert other.slots == pool.slots
    assert other.state_dict() == pool.state_dict()


@pytest.mark.parametrize(
    ("pool", "change", "message"),
    [
        (pm.SnapshotPool(["red"]), {}, "state does not fit.*main.*red"),
        (new_pool(capacity=4), {}, "state does not fit.*capacity 3.*capacity 4"),
        (new_pool(), {"version": 2}, "state must be of version 1"),
    ],
)
def test_state_of_another_pool_raises(pool, change, message):
    before = pool.state_dict()
    with pytest.raises(ValueError, match=message):
        pool.load_state_dict({**new_pool().state_dict(), **change})
    assert pool.state_dict() == before


FIELDS = [name for name in new_pool().state_dict() if name != "version"]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in FIELDS for value in (None, 7)])
def test_damaged_state_raises_and_changes_nothing(name, value):
    other, pool = new_pool(), new_pool()
    other.snapshot("main", 3)
    state, before = other.state_dict(), pool.state_dict()
    if value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(ValueError, match="state does not fit"):
        pool.load_state_dict(state)
    assert pool.state_dict() == before


@pytest.mark.parametrize(
    "change",
    [
        {"slots": [[3, 7]]},
        {"slots": [[2, 0], [3, 0]]},
        {"slots": []},
        {"retired": [99]},
        {"retired": [0]},
        {"left_out": [2]},
        {"released": [2]},
        {"step": -1},
        {"name": "twin"},
        {"learner": "ghost"},
        {"last": {"main": {"step": -5, "won": [], "games": []}}},
        {"weights": [[0.5, 0.5], [0.5, 0.5]]},
        {"weights": [[0.5, 0.6]]},
        {"weights": [[-0.5, 1.5]]},
        {"weights": [[float("nan"), 1.0]]},
        {"weights": [[0.0, 0.5, 0.5, 0.0, 0.0]]},
        {"weights": [["x", 1.0]]},
        {"weighted_ids": [1, 0]},
        {"weighted_ids": [0]},
        {"weighted_ids": [0, 4]},
    ],
)
def test_state_with_impossible_records_raises_and_changes_nothing(change):
    other, pool = new_pool(), new_pool()
    first = other.snapshot("main", 3, name="twin").policy_id
    other.snapshot("main", 6)
    state, before = other.state_dict(), pool.state_dict()
    row = state["members"][first + 1]
    for index, key in enumerate(("name", "kind", "learner", "step")):
        row[index] = change.get(key, row[index])
    state |= {key: value for key, value in change.items() if key in state}
    with pytest.raises(ValueError, match="state does not fit"):
        pool.load_state_dict(state)
    assert pool.state_dict() == before
