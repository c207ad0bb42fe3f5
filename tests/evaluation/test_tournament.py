"""`tournament`: games that are pure functions, whatever the order, the workers, the shards and the interruptions."""

from collections import Counter

import numpy as np
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.episode_loop import EpisodeLoop, PlayError
from pz_policymap.evaluation.games import Game
from pz_policymap.policies.seat_policies import SeatPolicies
from tests import cli_bots
from tests.evaluation.outcomes import ENTRANTS, outcomes
from tests.stub_envs import StubParallel

TWO = {"a": "random", "b": "random"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tournament_order_of_entrants_and_jobs_change_nothing(n_jobs):
    if n_jobs > 1:
        pytest.importorskip("joblib")
    result = pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=3, seed=5)
    other = pm.tournament(tictactoe_v3.env, dict(reversed(ENTRANTS.items())), cycles=3, seed=5, n_jobs=n_jobs)
    assert outcomes(result) == outcomes(other)
    assert outcomes(result) != outcomes(pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=3, seed=6))
    assert result.payoff.games.tolist()[:3] == [[0, 6, 6, 6, 6], [6, 0, 6, 6, 6], [6, 6, 0, 6, 6]]


def ledger(result):
    """The bits of the ledger, and all episodes in order."""
    state = result.payoff.state_dict()
    return state.pop("table").tobytes(), state.pop("lineups").tobytes(), state, list(result.episodes)


@pytest.mark.parametrize("make", [tictactoe_v3.env, rps_v2.parallel_env])
def test_tournament_jobs_shards_and_resumption_give_the_same_bits(make, tmp_path):
    pytest.importorskip("joblib")
    entrants = dict(ENTRANTS) if make is tictactoe_v3.env else {**TWO, "paper": cli_bots.always(1)}
    whole = pm.tournament(make, entrants, cycles=6, seed=5, results=tmp_path / "whole")
    assert ledger(pm.tournament(make, entrants, cycles=6, seed=5, n_jobs=2)) == ledger(whole)

    count = []

    def stop(done, total):
        count.append(done)
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pm.tournament(make, entrants, cycles=6, seed=5, results=tmp_path / "resumed", progress=stop)
    resumed = pm.tournament(
        make, entrants, cycles=6, seed=5, results=tmp_path / "resumed", progress=lambda done, _: count.append(done)
    )
    assert count == [*range(11), *range(10, len(whole.episodes) + 1)]
    assert ledger(resumed) == ledger(whole)

    shards = [tmp_path / f"shard{i}" for i in range(3)]
    for i, path in enumerate(shards):
        part = pm.tournament(make, entrants, cycles=6, seed=5, results=path, shard=(i, 3), n_jobs=1 + i % 2)
        assert len(part.episodes) == len(whole.episodes[i::3])
    pm.read_tournament(*reversed(shards), into=tmp_path / "merged")
    pm.read_tournament(tmp_path / "whole", into=tmp_path / "sorted")
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "sorted").read_bytes()
    played = []
    merged = pm.tournament(
        make, entrants, cycles=6, seed=5, results=tmp_path / "merged", progress=lambda done, _: played.append(done)
    )
    assert played == [len(whole.episodes)]  # no game was missing
    assert ledger(merged) == ledger(whole)


def test_tournament_added_entrant_plays_only_its_own_games(tmp_path):
    path = tmp_path / "games.jsonl"
    names = list(ENTRANTS)
    pm.tournament(tictactoe_v3.env, {name: ENTRANTS[name] for name in names[:4]}, cycles=2, results=path)
    progress = []
    result = pm.tournament(
        tictactoe_v3.env, ENTRANTS, cycles=2, results=path, progress=lambda done, count: progress.append((done, count))
    )
    assert progress == [(done, 40) for done in range(24, 41)]  # four pairs more, in two seatings, twice
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=2))


def test_tournament_results_of_other_entrants_are_left_out(tmp_path):
    path = tmp_path / "games.jsonl"
    pm.tournament(tictactoe_v3.env, ENTRANTS, cycles=2, results=path)
    written = path.stat().st_mtime_ns
    two = {name: ENTRANTS[name] for name in ("random", "first")}
    result = pm.tournament(tictactoe_v3.env, two, cycles=2, results=path)
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, two, cycles=2))
    assert path.stat().st_mtime_ns == written  # no game was missing


def test_tournament_seatings_of_a_pair_have_the_same_environment_seed():
    seeds = []

    class Seeded(StubParallel):
        def reset(self, seed=None, options=None):
            seeds.append(seed)
            return super().reset(seed, options)

    result = pm.tournament(Seeded, TWO, cycles=4)
    assert len(result.episodes) == 8
    assert sorted(Counter(seeds).values()) == [2] * 4  # each seed for both seatings
    assert Game(("a", "b"), 1).reset_seed(0) == Game(("b", "a"), 1).reset_seed(0) != Game(("a", "b"), 2).reset_seed(0)


def test_tournament_policies_get_seeded_generators_and_a_reset_per_seat():
    class Draws:
        def __init__(self):
            self.resets, self.drawn = 0, []

        def reset(self):
            self.resets += 1

        def __call__(self, observation, agent, info, rng):
            self.drawn.append((agent, float(rng.random())))
            return 0

    first, again = Draws(), Draws()
    for policy in (first, again):
        pm.tournament(rps_v2.parallel_env, {"draws": policy, "other": "random"}, self_matches=True, seed=3)
    assert first.drawn == again.drawn
    assert len({value for _, value in first.drawn}) == len(first.drawn)
    assert first.resets == 4  # one game alone, in both seats, and one game in each seat


def test_tournament_global_generators_are_seeded_in_games_and_restored():
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    entrants = {"numpy": cli_bots.draws_from_numpy, "python": cli_bots.draws_globally}
    result = pm.tournament(tictactoe_v3.env, entrants, cycles=3)
    assert np.random.random() == expected  # noqa: NPY002
    assert outcomes(result) == outcomes(pm.tournament(tictactoe_v3.env, entrants, cycles=3))


def test_tournament_torch_generator_is_seeded_in_games_and_restored():
    torch = pytest.importorskip("torch")

    def draws(observation, agent, info):
        return int(torch.randint(3, ()))

    before = torch.get_rng_state()
    results = [pm.tournament(rps_v2.parallel_env, {"a": draws, "b": "random"}, cycles=9) for _ in range(2)]
    assert outcomes(results[0]) == outcomes(results[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_tournament_torch_module_plays_through_one_line_and_is_refused_without_it():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(4, 3)

    def adapted(observation, agent, info):
        return module(torch.nn.functional.one_hot(torch.as_tensor(int(observation)), 4).float()).argmax().item()

    result = pm.tournament(rps_v2.parallel_env, {"net": adapted, "random": "random"}, cycles=2)
    assert len(result.episodes) == 4
    with pytest.raises(TypeError, match=r"torch module, .*adapt it to one agent: lambda observation, agent, info: "):
        pm.tournament(rps_v2.parallel_env, {"net": module, "random": "random"})


class FailsAtReset:
    def reset(self):
        raise ZeroDivisionError("no memory")

    def __call__(self, observation, agent, info):
        return 0


def test_tournament_policy_that_cannot_begin_is_named_and_forfeits():
    entrants = {"bad": FailsAtReset(), "first": cli_bots.first_free}
    where = "game 0 of .*: policy 'bad', which controls agent 'player_[12]', raised"
    with pytest.raises(PlayError, match=f"{where} ZeroDivisionError: no memory"):
        pm.tournament(tictactoe_v3.env, entrants)
    result = pm.tournament(tictactoe_v3.env, entrants, on_error="forfeit")
    assert result.forfeits == {"bad": 2}
    assert result.payoff.wins.tolist() == [[0, 0], [2, 0]]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tournament_policy_error_names_game_entrant_and_line_and_keeps_games(n_jobs, tmp_path):
    if n_jobs > 1:
        pytest.importorskip("joblib")
    path = tmp_path / "games.jsonl"
    entrants = {"random": "random", "first": cli_bots.first_free, "bad": cli_bots.fails}
    with pytest.raises(PlayError, match=r"game 0 of .*policy 'bad', .*ZeroDivisionError: no idea \(.*cli_bots.py:"):
        pm.tournament(tictactoe_v3.env, entrants, cycles=50, seed=1, results=path, n_jobs=n_jobs)
    kept = pm.read_tournament(path)
    assert len(kept.episodes) == len(path.read_bytes().splitlines()) - 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tournament_forfeit_scores_a_loss_and_continues(n_jobs, tmp_path):
    if n_jobs > 1:
        pytest.importorskip("joblib")
    path = tmp_path / "games.jsonl"
    entrants = {"bad": cli_bots.fails, "first": cli_bots.first_free}
    result = pm.tournament(tictactoe_v3.env, entrants, on_error="forfeit", results=path, n_jobs=n_jobs)
    for shown in (result, pm.read_tournament(path)):
        assert shown.payoff.wins.tolist() == [[0, 0], [2, 0]]
        assert shown.forfeits == {"bad": 2}
        assert "ZeroDivisionError" in shown.reasons["bad"]
        assert np.isnan(shown.mean_returns.values).all()
        assert "Note: bad forfeited 2 games, the first by this error: game 0 of bad - first: policy 'bad'" in repr(
            shown
        )


def test_tournament_progress_is_written_to_stderr(capsys):
    pm.tournament(rps_v2.parallel_env, TWO, cycles=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("\r0 of 4 games")
    assert shown.err.endswith("\r4 of 4 games\n")


def test_tournament_teams_win_together():
    result = pm.tournament(rps_v2.parallel_env, TWO, team_of=lambda agent: "all")
    assert result.payoff.games.sum() == 0  # two entrants on one side have no game


class NeverEnds(StubParallel):
    """Its agents disappear without having ended."""

    def step(self, actions):
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, dict.fromkeys(terminations, False), truncations, infos


class Stranger(StubParallel):
    """An agent joins that is not in `possible_agents`."""

    def __init__(self):
        super().__init__(live=[("a", "b"), ("a", "b", "c"), ()])


class Infinite(StubParallel):
    """A reward is NaN."""

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, dict.fromkeys(rewards, float("nan")), *rest


class Unclosable(StubParallel):
    def close(self):
        raise OSError("the viewer is gone")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (NeverEnds, "game 0 of .*it is over, but some agents have neither terminated nor been truncated"),
        (Stranger, "agent 'c' is not among possible_agents, and its info has no policy_id"),
        (Infinite, "game 0 of .*the return of agent 'a' must be from -1e300 to 1e300, got nan"),
    ],
)
def test_tournament_environment_that_breaks_its_promises_is_named(make, message):
    with pytest.raises(PlayError, match=message):
        pm.tournament(make, TWO)


class Removes(StubParallel):
    """Agent "a" leaves after the first step without flags; "b" terminates with the second one."""

    def __init__(self):
        super().__init__(live=[("a", "b"), ("b",), ()])

    def step(self, actions):
        observations, rewards, terminations, *rest = super().step(actions)
        return observations, rewards, {**terminations, "a": False}, *rest


def test_tournament_environment_that_cannot_be_closed_is_a_warning():
    played = []
    with pytest.raises(OSError, match="the viewer is gone"):
        pm.tournament(Unclosable, TWO)

    def make():
        played.append(1)
        return Unclosable() if len(played) == 2 else StubParallel()

    with pytest.warns(UserWarning, match="the environment cannot be closed: OSError"):
        pm.tournament(make, TWO)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"entrants": {"a": "random"}}, ValueError, "entrants must be at least 2"),
        ({"entrants": ["random", "random"]}, TypeError, "entrants must be a dict"),
        ({"entrants": {"a": "random", "b": 3}}, TypeError, r"policies\['b'\] must be a callable"),
        ({"make_env": 3}, TypeError, "make_env must be a callable"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'forfeit'"),
        ({"make_env": lambda: 3}, TypeError, "make_env must return a PettingZoo environment with possible_agents"),
        ({"make_env": lambda: StubParallel(possible_agents=[("a",)])}, TypeError, "possible_agents must be strings or"),
        ({"make_env": simple_spread_v3.env}, ValueError, "entrants must be at least one per seat"),
        ({"cycles": 0}, ValueError, "cycles must be"),
        ({"games": 10**8}, ValueError, "games must be at most"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer >= 1, or -1 for all workers, got 0"),
        ({"n_jobs": -2}, ValueError, "n_jobs must be"),
        ({"shard": 3}, TypeError, r"shard must be a pair of integers \(i, n\), got 3"),
        ({"shard": (3, 3)}, ValueError, r"shard\[0\] must be"),
        ({"shard": (0, 0)}, ValueError, r"shard\[1\] must be"),
    ],
)
def test_tournament_invalid_argument_raises(arguments, error, message):
    given = {"make_env": tictactoe_v3.env, "entrants": TWO, **arguments}
    with pytest.raises(error, match=message):
        pm.tournament(**given)


@pytest.mark.parametrize("make", [tictactoe_v3.env, connect_four_v3.env, rps_v2.env, rps_v2.parallel_env, Removes])
def test_tournament_episodes_equal_those_of_record_results(make):
    result = pm.tournament(make, TWO, cycles=2, seed=3)
    recorded = []
    for episode in result.episodes:
        matchup = dict(zip(episode.agents, episode.policies, strict=True))
        names = tuple(result.names[policy] for policy in episode.policies)
        game = Game(names, sum(e.policies == episode.policies for e in recorded))
        env = pm.record_results(pm.wrap(make(), pm.Fixed(matchup)), recorded.append)
        loop = EpisodeLoop(env, SeatPolicies(["random", "random"], env.action_space), str)
        loop.play(game.reset_seed(3), game.policy_seed(3), matchup)
    assert recorded == list(result.episodes)
