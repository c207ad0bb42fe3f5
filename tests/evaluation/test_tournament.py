"""`tournament` and `play`: pure games, resumable results, and errors that name the policy."""

import signal
import sys

import cloudpickle
import numpy as np
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import EpisodeLoop, PlayError
from pz_policymap.evaluation.games import Game
from pz_policymap.evaluation.tournament import _Plan, _play_batch
from pz_policymap.policies.seat_policies import SeatPolicies
from tests import cli_bots
from tests.stub_envs import StubParallel

ENTRANTS = {"random": "random", "first": cli_bots.first_free, "last": pm.Entrant(getattr, cli_bots, "last_free")}


def outcomes(result):
    return sorted(
        (tuple(result.names[policy] for policy in episode.policies), episode.returns, episode.lengths)
        for episode in result.episodes
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tournament_order_of_entrants_and_jobs_change_nothing(n_jobs):
    if n_jobs > 1:
        pytest.importorskip("joblib")
    result = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=3, seed=5)
    other = pm.tournament(tictactoe_v3.env, dict(reversed(ENTRANTS.items())), cycles=3, seed=5, n_jobs=n_jobs)
    assert outcomes(result) == outcomes(other)
    assert outcomes(result) != outcomes(pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=3, seed=6))
    assert result.payoff.games.tolist() == [[0, 6, 6], [6, 0, 6], [6, 6, 0]]


def test_tournament_added_entrant_plays_only_its_own_games(tmp_path):
    path = tmp_path / "games.npz"
    two = {name: ENTRANTS[name] for name in ("random", "first")}
    pm.tournament(tictactoe_v3.env, two, cycles=2, results=path)
    progress = []
    result = pm.tournament(
        tictactoe_v3.env, ENTRANTS, cycles=2, results=path, progress=lambda done, count: progress.append((done, count))
    )
    assert progress == [(done, 12) for done in range(4, 13)]
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=2))


def test_tournament_results_of_other_entrants_are_left_out(tmp_path):
    path = tmp_path / "games.npz"
    pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=2, results=path)
    written = path.stat().st_mtime_ns
    two = {name: ENTRANTS[name] for name in ("random", "first")}
    result = pm.tournament(tictactoe_v3.env, two, cycles=2, results=path)
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, two, cycles=2))
    assert path.stat().st_mtime_ns == written  # no game was missing


def test_tournament_worker_process_ignores_ctrl_c():
    plan = cloudpickle.dumps(_Plan(tictactoe_v3.env, ENTRANTS, 0, ("player_1", "player_2"), False))
    before = signal.getsignal(signal.SIGINT)
    try:
        outcomes, failure, seconds = _play_batch("0 token", plan, [Game(("first", "last"), 0)])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert (len(outcomes), failure) == (1, None)
    assert seconds > 0


def test_tournament_other_settings_in_results_file_raises(tmp_path):
    path = tmp_path / "games.npz"
    pm.tournament(tictactoe_v3.env, {"a": "random", "b": "random"}, results=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="it holds another tournament: seed was 0 and is 1"):
        pm.tournament(tictactoe_v3.env, {"a": "random", "b": "random"}, results=path, seed=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tournament_policy_error_names_game_entrant_and_line_and_keeps_games(n_jobs, tmp_path):
    if n_jobs > 1:
        pytest.importorskip("joblib")
    path = tmp_path / "games.npz"
    entrants = {**ENTRANTS, "bad": cli_bots.fails}
    with pytest.raises(PlayError, match=r"game 0 of .*policy 'bad', .*ZeroDivisionError: no idea \(.*cli_bots.py:"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=2, results=path, n_jobs=n_jobs)
    kept = len(pm.load(path)["tournament"]["repetitions"])
    assert 0 <= kept < 24


def test_tournament_forfeit_scores_a_loss_and_continues():
    result = pm.tournament(tictactoe_v3.env, {"bad": cli_bots.fails, "first": cli_bots.first_free}, on_error="forfeit")
    assert result.payoff.wins.tolist() == [[0, 0], [2, 0]]
    assert result.forfeits == {"bad": 2}
    assert "ZeroDivisionError" in result.reasons["bad"]
    assert np.isnan(result.mean_returns.values).all()
    assert repr(result).startswith("2 games of 2 entrants\nname ")


def test_tournament_worker_death_is_one_error():
    pytest.importorskip("joblib")
    with pytest.raises(PlayError, match="a worker process died"):
        pm.tournament(tictactoe_v3.env, {"a": "random", "b": cli_bots.dies}, cycles=5, n_jobs=2)


def test_tournament_backend_of_joblib_plays_the_same_games_in_batches():
    joblib = pytest.importorskip("joblib")
    expected = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=30, seed=5)
    with joblib.parallel_config(backend="threading"):
        result = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=30, seed=5, n_jobs=2)
    assert outcomes(result) == outcomes(expected)


def test_tournament_error_in_a_thread_keeps_the_games_of_its_batch(tmp_path):
    joblib = pytest.importorskip("joblib")
    entrants = {**ENTRANTS, "bad": cli_bots.fails}
    with joblib.parallel_config(backend="threading"), pytest.raises(PlayError, match="policy 'bad'"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=9, results=tmp_path / "games.npz", n_jobs=2)


def test_tournament_progress_is_written_to_stderr(capsys):
    pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random"}, cycles=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("\r0 of 4 games")
    assert shown.err.endswith("\r4 of 4 games\n")


def test_tournament_teams_win_together():
    entrants = {"a": "random", "b": "random"}
    result = pm.tournament(rps_v2.parallel_env, entrants, team_of=lambda agent: "all")
    assert result.payoff.games.sum() == 0  # two entrants on one side have no game


class NeverEnds(StubParallel):
    """Its agents disappear without having ended."""

    def step(self, actions):
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, dict.fromkeys(terminations, False), truncations, infos


class Stranger(StubParallel):
    def __init__(self):
        super().__init__(live=[("a", "b"), ("a", "b", "c"), ()])


class Unclosable(StubParallel):
    def close(self):
        raise OSError("the viewer is gone")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (NeverEnds, "game 0 of .*it is over, but some agents have neither terminated nor been truncated"),
        (Stranger, "agent 'c' is not among possible_agents, and its info has no policy_id"),
    ],
)
def test_tournament_environment_that_breaks_its_promises_is_named(make, message):
    with pytest.raises(PlayError, match=message):
        pm.tournament(make, {"a": "random", "b": "random"})


def test_tournament_environment_that_cannot_be_closed_is_a_warning():
    played = []
    with pytest.raises(OSError, match="the viewer is gone"):
        pm.tournament(Unclosable, {"a": "random", "b": "random"})

    def make():
        played.append(1)
        return Unclosable() if len(played) == 2 else StubParallel()

    with pytest.warns(UserWarning, match="the environment cannot be closed: OSError"):
        pm.tournament(make, {"a": "random", "b": "random"})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"other": {}}, "it holds no tournament; name another file"),
        ({"tournament": {"version": 99}}, "version must be 1, got 99"),
    ],
)
def test_tournament_other_file_is_refused_and_stays(state, message, tmp_path):
    path = tmp_path / "games.npz"
    pm.save(path, **state)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random"}, results=path)
    assert path.read_bytes() == before


def test_play_episode_without_a_step_is_an_error():
    with pytest.raises(PlayError, match="episode 0: it is over, but some agents have neither terminated"):
        list(pm.play(pm.wrap(StubParallel(live=[()]), pm.Fixed(0)), ["random"], 1))


def test_play_entrants_and_dicts_are_policies():
    env = pm.wrap(tictactoe_v3.env(), pm.Fixed(5), seed=0)
    (episode,) = pm.play(env, {5: pm.Entrant(getattr, cli_bots, "first_free")}, 1)
    assert episode.policies == (5, 5)


def test_tournament_win_rate_of_an_entrant_without_a_game_is_unknown():
    result = pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random", "c": "random"}, games=1)
    (unknown,) = (place for place, games in enumerate(result.payoff.games.sum(axis=1)) if not games)
    assert np.isnan(result.intervals[unknown]).all()
    selves = pm.tournament(rps_v2.parallel_env, {"a": "random", "b": "random"}, self_matches=True, cycles=2)
    assert selves.payoff.games.sum() == 8


def test_tournament_without_joblib_names_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ImportError, match="pip install joblib"):
        pm.tournament(tictactoe_v3.env, {"a": "random", "b": "random"}, n_jobs=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"entrants": {"a": "random"}}, ValueError, "entrants must be at least 2"),
        ({"entrants": ["random", "random"]}, TypeError, "entrants must be a dict"),
        ({"make_env": 3}, TypeError, "make_env must be a callable"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'forfeit'"),
        ({"make_env": lambda: 3}, TypeError, "make_env must return a PettingZoo environment with possible_agents"),
        ({"make_env": lambda: StubParallel(possible_agents=[("a",)])}, TypeError, "possible_agents must be strings or"),
        ({"make_env": simple_spread_v3.env}, ValueError, "entrants must be at least one per seat"),
        ({"cycles": 0}, ValueError, "cycles must be"),
        ({"games": 10**8}, ValueError, "games must be at most"),
    ],
)
def test_tournament_invalid_argument_raises(arguments, error, message):
    given = {"make_env": tictactoe_v3.env, "entrants": {"a": "random", "b": "random"}, **arguments}
    with pytest.raises(error, match=message):
        pm.tournament(**given)


@pytest.mark.parametrize("make", [tictactoe_v3.env, rps_v2.parallel_env, rps_v2.env])
def test_play_same_seed_same_episodes(make):
    def played(seed):
        env = pm.wrap(make(), 2, seed=0)
        return [(e.policies, e.returns, e.lengths) for e in pm.play(env, ["random", "random"], 15, seed=seed)]

    assert played(3) == played(3) != played(4)
    env = make()
    expected = pm.assignments(2, env.possible_agents, seed=0, episode=range(15)).tolist()
    assert [list(policies) for policies, _, _ in played(3)] == expected


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            lambda o, a, i: 99,
            r"episode 0: policy 0, .* agent 'player_1', returned the action 99, .*not in Discrete\(9\)",
        ),
        (cli_bots.exits, r"episode 0: policy 0, which controls agent 'player_1', raised sys.exit\(0\)"),
    ],
)
def test_play_policy_fault_names_policy_agent_and_action(policy, message):
    env = pm.wrap(tictactoe_v3.env(), pm.Fixed(0))
    with pytest.raises(PlayError, match=message):
        list(pm.play(env, [policy], 1))


@pytest.mark.parametrize("make", [tictactoe_v3.env, connect_four_v3.env, rps_v2.env, rps_v2.parallel_env])
def test_tournament_episodes_equal_those_of_record_results(make):
    result = pm.tournament(make, {"a": "random", "b": "random"}, cycles=2, seed=3)
    recorded = []
    for episode in result.episodes:
        matchup = dict(zip(episode.agents, episode.policies, strict=True))
        names = tuple(result.names[policy] for policy in episode.policies)
        game = Game(names, sum(e.policies == episode.policies for e in recorded))
        env = pm.record_results(pm.wrap(make(), pm.Fixed(matchup)), recorded.append)
        loop = EpisodeLoop(env, SeatPolicies(["random", "random"], env.action_space), str)
        loop.play(game.reset_seed(3), game.policy_seed(3), matchup)
    assert recorded == list(result.episodes)
    assert {game.reset_seed(3) for game in (Game(("a", "b"), 0), Game(("b", "a"), 0))} == {
        Game(("a", "b"), 0).reset_seed(3)
    }
