"""A crowd of real processes plays, all together, exactly the table that one process plays."""

import itertools
import multiprocessing
import random

import pytest

import pz_policymap as pm
from tests import many_workers
from tests.many_workers import AGENTS, EVERY, MAPPINGS, NUM_ENVS, NUM_EPISODES, SEED, compute, play

ROUNDS = 4  # an environment is played by a worker, the next one goes on, and so on
COMPUTING, FRESH = 80, 8
METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(scope="module")
def table():
    """What one process plays, all environments side by side: by mapping, environment and episode."""
    played = {}
    for name, mapping in MAPPINGS.items():
        assigner = pm.PolicyAssigner(mapping, AGENTS, NUM_ENVS, resample_every=EVERY, seed=SEED, env_index=0)
        for episode in range(NUM_EPISODES):
            for env_index, policies in enumerate(assigner.begin_episodes().tolist()):
                played[name, env_index, episode] = policies
    return played


def done_by(method, jobs):
    """Yields what each job came to, in whatever order they end; each has a process of its own, two at a time."""
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pz_policymap.wrappers.wrap"])  # it is slow to import, and draws nothing
    with context.Pool(2, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(many_workers.work, jobs, chunksize=1)


def places(chance, count):
    """Returns places in the table, some of them twice."""
    return [(chance.randrange(NUM_ENVS), chance.randrange(NUM_EPISODES)) for _ in range(count)]


def test_two_hundred_workers_in_random_order_with_restarts_and_duplicates_fill_the_table_of_one(
    table, tmp_path, long_run
):
    """With --long each of them is a fresh interpreter; else a fork of one that has done nothing yet."""
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
    assert reports > 1.3 * len(table)  # many places were played or computed more than once


def test_interpreters_that_hash_texts_in_ways_of_their_own_compute_the_same(table, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    chance = random.Random(1)
    for report in done_by("spawn", [(compute, places(chance, 500)) for _ in range(FRESH)]):
        assert report == {place: table[place] for place in report}
