"""Tournaments on a local Ray cluster, whose joblib backend returns the games of several batches at once."""

import joblib
import pytest
import ray
from pettingzoo.classic import tictactoe_v3
from ray.util.joblib import register_ray

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import PlayError
from tests import cli_bots
from tests.evaluation.outcomes import ENTRANTS, outcomes


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_ray_plays_the_same_games_as_one_process(n_jobs, tmp_path):
    expected = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=30, seed=5)
    with joblib.parallel_config(backend="ray"):
        result = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=30, seed=5, n_jobs=n_jobs, results=tmp_path / "games")
    assert outcomes(result) == outcomes(expected)
    assert outcomes(pm.read_tournament(tmp_path / "games")) == outcomes(expected)


def test_ray_error_of_a_policy_is_named():
    entrants = {"random": "random", "bad": cli_bots.fails}
    with joblib.parallel_config(backend="ray"), pytest.raises(PlayError, match="policy 'bad', .*no idea"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=3, n_jobs=2)


def test_ray_entrant_is_loaded_once_per_worker_process(tmp_path):
    (tmp_path / "v1").write_text("first")
    log = tmp_path / "log"
    entrants = {"v1": pm.Entrant(cli_bots.loads, str(tmp_path / "v1"), log=str(log)), "random": "random"}
    with joblib.parallel_config(backend="ray"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=200, n_jobs=2)
    loads = log.read_text().split()
    assert len(loads) == len(set(loads)) <= 2


def test_ray_worker_that_dies_loses_no_finished_game(tmp_path):
    path = tmp_path / "games"
    entrants = {"random": "random", "first": cli_bots.first_free}
    pm.tournament(tictactoe_v3.env, entrants, cycles=5, results=path)
    with joblib.parallel_config(backend="ray"), pytest.raises(PlayError, match="a worker failed: ActorDiedError"):
        pm.tournament(tictactoe_v3.env, {**entrants, "dies": cli_bots.dies}, cycles=5, n_jobs=2, results=path)
    assert len(pm.read_tournament(path).episodes) >= 10
