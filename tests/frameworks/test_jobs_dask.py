"""Tournaments on a local Dask cluster of processes with several threads each."""

import joblib
import pytest
from dask.distributed import Client, LocalCluster
from pettingzoo.classic import tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import PlayError
from tests import cli_bots
from tests.evaluation.outcomes import ENTRANTS, outcomes

# The threads of a Dask worker draw from Python's global generator, so no policy may.
SAFE_IN_THREADS = {name: policy for name, policy in ENTRANTS.items() if name != "python"}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster):
        yield cluster


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_dask_plays_the_same_games_as_one_process(n_jobs, tmp_path):
    expected = pm.tournament(tictactoe_v3.env, SAFE_IN_THREADS, cycles=30, seed=5)
    with joblib.parallel_config(backend="dask"):
        result = pm.tournament(
            tictactoe_v3.env, SAFE_IN_THREADS, cycles=30, seed=5, n_jobs=n_jobs, results=tmp_path / "games"
        )
    assert outcomes(result) == outcomes(expected)
    assert outcomes(pm.read_tournament(tmp_path / "games")) == outcomes(expected)


def test_dask_error_of_a_policy_is_named():
    entrants = {"random": "random", "bad": cli_bots.fails}
    with joblib.parallel_config(backend="dask"), pytest.raises(PlayError, match="policy 'bad', .*no idea"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=3, n_jobs=2)


def test_dask_entrant_is_loaded_once_per_worker_process(tmp_path):
    (tmp_path / "v1").write_text("first")
    log = tmp_path / "log"
    entrants = {"v1": pm.Entrant(cli_bots.loads, str(tmp_path / "v1"), log=str(log)), "random": "random"}
    with joblib.parallel_config(backend="dask"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=200, n_jobs=4)
    loads = log.read_text().split()
    assert len(loads) == len(set(loads)) <= 2


def test_dask_worker_that_dies_loses_no_finished_game(tmp_path):
    path = tmp_path / "games"
    entrants = {"random": "random", "first": cli_bots.first_free}
    pm.tournament(tictactoe_v3.env, entrants, cycles=5, results=path)
    with joblib.parallel_config(backend="dask"), pytest.raises(PlayError, match="a worker failed: KilledWorker"):
        pm.tournament(tictactoe_v3.env, {**entrants, "dies": cli_bots.dies}, cycles=5, n_jobs=2, results=path)
    assert len(pm.read_tournament(path).episodes) >= 10
