"""Many processes together compute exactly the assignments that one process computes."""

import itertools
import multiprocessing
import random

import pytest

import pz_policymap as pm
from tests import many_workers
from tests.many_workers import AGENTS, EVERY, MAPPINGS, NUM_ENVS, NUM_EPISODES, SEED, compute, play

ROUNDS = 4  # workers per environment, each resuming from the one before
COMPUTING, FRESH = 80, 8
METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(scope="module")
def table():
    """The assignments of one process by mapping, environment and episode."""
    played = {}
    for name, mapping in MAPPINGS.items():
        assigner = pm.PolicyAssigner(mapping, AGENTS, NUM_ENVS, resample_every=EVERY, seed=SEED, env_index=0)
        for episode in range(NUM_EPISODES):
            for env_index, policies in enumerate(assigner.begin_episodes().tolist()):
                played[name, env_index, episode] = policies
    return played


def done_by(method, jobs):
    """Yields the result of each job as it ends; each runs in its own process, two at a time."""
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pz_policymap.wrappers.wrap"])  # slow to import
    with context.Pool(2, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(many_workers.work, jobs, chunksize=1)


def places(chance, count):
    """Returns places in the table, some of them twice."""
    return [(chance.randrange(NUM_ENVS), chance.randrange(NUM_EPISODES)) for _ in range(count)]


def test_200_workers_with_restarts_agree_with_one_process(table, tmp_path, long_run):
    """With --long each worker is a fresh interpreter, else a fork of an idle one."""
    method = "forkserver" if "forkserver" in METHODS and not long_run else "spawn"
    chance = random.Random(0)
    edges = [0, 7, 24, 25, NUM_EPISODES]  # within blocks and at their ends
    found, reports, workers = {}, 0, 0
    for first, stop in itertools.pairwise(edges):
        jobs = [(play, tmp_path, env_index, first, stop, False) for env_index in range(NUM_ENVS)]
        jobs += [(play, tmp_path, env_index, first, stop, True) for env_index in chance.sample(range(NUM_ENVS), 6)]
        jobs += [(compute, places(chance, 50)) for _ in range(COMPUTING // ROUNDS)]
        chance.shuffle(jobs)
        for report in done_by(method, jobs):
            assert report == {place: table[place] for place in report}
            found |= report
            reports += len(report)
            workers += 1
    assert workers == 200
    assert found == table
    assert reports > 1.3 * len(table)  # many assignments were computed more than once


def test_assignments_do_not_depend_on_hash_seed(table, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    chance = random.Random(1)
    for report in done_by("spawn", [(compute, places(chance, 500)) for _ in range(FRESH)]):
        assert report == {place: table[place] for place in report}
