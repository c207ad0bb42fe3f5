"""Workers: each loads an entrant once; if one of them or their parent dies, no finished game is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.classic import tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import PlayError
from pz_policymap.evaluation.games import Game, Schedule
from pz_policymap.evaluation.workers import Plan, _become_worker, _play_batch, _report_lost_batches
from tests import cli_bots
from tests.evaluation.outcomes import ENTRANTS, outcomes

joblib = pytest.importorskip("joblib")
cloudpickle = pytest.importorskip("cloudpickle")
threads = pytest.importorskip("joblib._parallel_backends").ThreadingBackend

ROOT = Path(__file__).parents[2]
SAFE_IN_THREADS = {name: policy for name, policy in ENTRANTS.items() if name != "python"}


class Waves(threads):
    """Like Ray's backend, it cannot return batches one by one."""

    supports_return_generator = False


class DaskDistributedBackend(threads):
    """Its batches are futures, as those of Dask's backend are."""

    def submit(self, func, callback=None):
        super().submit(func, callback)
        return Future()


joblib.register_parallel_backend("waves", Waves)
joblib.register_parallel_backend("like_dask", DaskDistributedBackend)


@pytest.mark.parametrize("backend", ["threading", "waves", "like_dask"])
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_backend_of_joblib_plays_the_same_games_in_batches(backend, n_jobs):
    expected = pm.tournament(tictactoe_v3.env, SAFE_IN_THREADS, cycles=30, seed=5)
    with joblib.parallel_config(backend=backend):
        result = pm.tournament(tictactoe_v3.env, SAFE_IN_THREADS, cycles=30, seed=5, n_jobs=n_jobs)
    assert outcomes(result) == outcomes(expected)


@pytest.mark.parametrize("backend", ["threading", "waves"])
def test_error_in_a_worker_keeps_the_games_before_it(backend, tmp_path):
    entrants = {"a": "random", "b": cli_bots.first_free, "c": cli_bots.last_free, "bad": cli_bots.fails}
    agents = ["player_1", "player_2"]
    firsts = (next(Schedule([*entrants], agents, seed, False).games(np.arange(1))) for seed in range(99))
    seed = next(seed for seed, game in enumerate(firsts) if "bad" not in game.names)
    with joblib.parallel_config(backend=backend), pytest.raises(PlayError, match="policy 'bad'"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=9, seed=seed, results=tmp_path / "games", n_jobs=2)
    assert 0 < len(pm.read_tournament(tmp_path / "games").episodes) < 54


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_entrant_is_loaded_once_per_worker_process(n_jobs, tmp_path):
    (tmp_path / "v1").write_text("first")
    log = tmp_path / "log"
    entrants = {"v1": pm.Entrant(cli_bots.loads, str(tmp_path / "v1"), log=str(log)), "random": "random"}
    pm.tournament(tictactoe_v3.env, entrants, cycles=300, n_jobs=n_jobs)  # many batches
    loads = Counter(log.read_text().split())
    assert set(loads.values()) == {1}
    assert 1 <= len(loads) <= n_jobs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_entrant_that_cannot_be_loaded_is_named(n_jobs):
    entrants = {"v1": pm.Entrant(cli_bots.loads, "missing"), "random": "random"}
    with pytest.raises(
        PlayError, match=r"entrant 'v1', Entrant\(loads, 'missing'\), cannot be loaded: FileNotFoundError"
    ):
        pm.tournament(tictactoe_v3.env, entrants, cycles=2, n_jobs=n_jobs, on_error="forfeit")


def test_worker_that_dies_loses_no_finished_game(tmp_path):
    path = tmp_path / "games"
    entrants = {"random": "random", "first": cli_bots.first_free, "last": cli_bots.last_free}
    pm.tournament(tictactoe_v3.env, entrants, cycles=5, results=path)
    kept = len(pm.read_tournament(path).episodes)
    with pytest.raises(PlayError, match="a worker failed: "):
        pm.tournament(tictactoe_v3.env, {**entrants, "dies": cli_bots.dies}, cycles=5, n_jobs=2, results=path)
    assert len(pm.read_tournament(path).episodes) >= kept
    alive = {**entrants, "dies": cli_bots.last_free}  # it is mended
    result = pm.tournament(tictactoe_v3.env, alive, cycles=5, n_jobs=2, results=path)
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, alive, cycles=5))


def test_batch_that_dask_lost_is_reported_as_an_error():
    future, reported = Future(), []

    class Backend:
        def submit(self, batch, callback=None):
            return future

    backend = Backend()
    _report_lost_batches(backend)
    assert backend.submit("batch", reported.append) is future
    future.set_exception(OSError("lost"))
    assert [str(error) for error in reported] == ["lost"]


def test_worker_process_ignores_ctrl_c_and_ends_with_its_parent(monkeypatch):
    plan = cloudpickle.dumps(Plan(tictactoe_v3.env, ENTRANTS, 0, ("player_1", "player_2"), False))
    before, ended = signal.getsignal(signal.SIGINT), threading.Event()
    parents = iter([7, 7])
    monkeypatch.setattr(os, "getppid", lambda: next(parents, 1))  # the parent is gone at the third call
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    try:
        batch = _play_batch("token", plan, [Game(("first", "last"), 0)], parent=7)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
        _become_worker.cache_clear()
    assert ended.wait(60)
    assert (len(batch.games), batch.failure) == (1, None)
    assert batch.seconds > 0


def test_worker_in_a_thread_leaves_ctrl_c_alone(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    monkeypatch.setattr(threading, "current_thread", lambda: None)
    _become_worker(7)
    _become_worker.cache_clear()
    assert signal.getsignal(signal.SIGINT) is before


def test_tournament_in_a_thread_plays_the_same_games():
    results = []
    thread = threading.Thread(
        target=lambda: results.append(pm.tournament(tictactoe_v3.env, SAFE_IN_THREADS, cycles=2, n_jobs=2))
    )
    thread.start()
    thread.join()
    assert outcomes(results[0]) == outcomes(pm.tournament(tictactoe_v3.env, SAFE_IN_THREADS, cycles=2))


def descendants(pid):
    """Returns the processes below a process, as Linux lists them."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    own = [int(child) for child in children.read_text().split()] if children.exists() else []
    return own + [process for child in own for process in descendants(child)]


def running(pid):
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists the processes below another")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_signal_loses_no_finished_game_and_leaves_no_process(number, n_jobs, tmp_path, monkeypatch):
    path = tmp_path / "games"
    code = f"""if True:
        import pz_policymap as pm
        from pettingzoo.classic import tictactoe_v3
        from tests import cli_bots
        entrants = {{"random": "random", "slow": cli_bots.slow}}
        pm.tournament(tictactoe_v3.env, entrants, cycles=100, n_jobs={n_jobs}, results={str(path)!r})
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "CLI_BOTS_DELAY": "0.05", "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # jobs in the background ignore it
    )
    try:
        while not path.exists() or path.read_bytes().count(b"\n") < 4:
            assert process.poll() is None
            time.sleep(0.02)
        below = descendants(process.pid)
        assert bool(below) == (n_jobs > 1)
        finished = path.read_bytes().count(b"\n") - 1
        process.send_signal(number)
        assert process.wait(60) != 0
    finally:
        process.kill()
    until = time.monotonic() + 60
    while any(map(running, below)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(running, below))
    assert len(pm.read_tournament(path).episodes) >= finished
    monkeypatch.delenv("CLI_BOTS_DELAY", raising=False)
    entrants = {"random": "random", "slow": cli_bots.slow}
    resumed = pm.tournament(tictactoe_v3.env, entrants, cycles=100, results=path)
    assert outcomes(resumed) == outcomes(pm.tournament(tictactoe_v3.env, entrants, cycles=100))


@pytest.mark.parametrize("missing", ["joblib", "cloudpickle"])
def test_tournament_without_joblib_names_the_install_command(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match="pip install joblib cloudpickle"):
        pm.tournament(tictactoe_v3.env, {"a": "random", "b": "random"}, n_jobs=2)
