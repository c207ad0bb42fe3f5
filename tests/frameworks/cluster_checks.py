"""Checks of tournaments that hold on every cluster; each takes the name of a joblib backend."""

import joblib
import pytest
from pettingzoo.classic import tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import PlayError
from tests import cli_bots
from tests.evaluation.outcomes import outcomes


def check_games_equal_those_of_one_process(backend, entrants, n_jobs, folder):
    expected = pm.tournament(tictactoe_v3.env, entrants, cycles=30, seed=5)
    with joblib.parallel_config(backend=backend):
        result = pm.tournament(tictactoe_v3.env, entrants, cycles=30, seed=5, n_jobs=n_jobs, results=folder / "games")
    assert outcomes(result) == outcomes(expected)
    assert outcomes(pm.read_tournament(folder / "games")) == outcomes(expected)


def check_error_names_the_policy(backend):
    entrants = {"random": "random", "bad": cli_bots.fails}
    with joblib.parallel_config(backend=backend), pytest.raises(PlayError, match="policy 'bad', .*no idea"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=3, n_jobs=2)


def check_entrant_is_loaded_once_per_worker_process(backend, n_jobs, folder):
    (folder / "v1").write_text("first")
    log = folder / "log"
    entrants = {"v1": pm.Entrant(cli_bots.loads, str(folder / "v1"), log=str(log)), "random": "random"}
    with joblib.parallel_config(backend=backend):
        pm.tournament(tictactoe_v3.env, entrants, cycles=200, n_jobs=n_jobs)
    loads = log.read_text().split()
    assert len(loads) == len(set(loads)) <= 2


def check_dead_worker_loses_no_finished_game(backend, error, folder):
    path = folder / "games"
    entrants = {"random": "random", "first": cli_bots.first_free}
    pm.tournament(tictactoe_v3.env, entrants, cycles=5, results=path)
    with joblib.parallel_config(backend=backend), pytest.raises(PlayError, match=f"a worker failed: {error}"):
        pm.tournament(tictactoe_v3.env, {**entrants, "dies": cli_bots.dies}, cycles=5, n_jobs=2, results=path)
    assert len(pm.read_tournament(path).episodes) >= 10
