"""Tournaments on a local Ray cluster, whose joblib backend returns the games of several batches at once."""

import pytest
import ray
from ray.util.joblib import register_ray

from tests.evaluation.outcomes import ENTRANTS
from tests.frameworks import cluster_checks


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_ray_plays_the_same_games_as_one_process(n_jobs, tmp_path):
    cluster_checks.check_games_equal_those_of_one_process("ray", ENTRANTS, n_jobs, tmp_path)


def test_ray_error_of_a_policy_is_named():
    cluster_checks.check_error_names_the_policy("ray")


def test_ray_entrant_is_loaded_once_per_worker_process(tmp_path):
    cluster_checks.check_entrant_is_loaded_once_per_worker_process("ray", 2, tmp_path)


def test_ray_worker_that_dies_loses_no_finished_game(tmp_path):
    cluster_checks.check_dead_worker_loses_no_finished_game("ray", "ActorDiedError", tmp_path)
