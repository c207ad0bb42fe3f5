"""Tournaments on a local Dask cluster of processes with several threads each."""

import pytest
from dask.distributed import Client, LocalCluster

from tests.evaluation.outcomes import ENTRANTS
from tests.frameworks import cluster_checks

# The threads of a Dask worker draw from Python's global generator, so policies must not use it.
SAFE_IN_THREADS = {name: policy for name, policy in ENTRANTS.items() if name != "python"}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster):
        yield cluster


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_dask_plays_the_same_games_as_one_process(n_jobs, tmp_path):
    cluster_checks.check_games_equal_those_of_one_process("dask", SAFE_IN_THREADS, n_jobs, tmp_path)


def test_dask_error_of_a_policy_is_named():
    cluster_checks.check_error_names_the_policy("dask")


def test_dask_entrant_is_loaded_once_per_worker_process(tmp_path):
    cluster_checks.check_entrant_is_loaded_once_per_worker_process("dask", 4, tmp_path)


def test_dask_worker_that_dies_loses_no_finished_game(tmp_path):
    cluster_checks.check_dead_worker_loses_no_finished_game("dask", "KilledWorker", tmp_path)
