"""`play`: the episodes of a wrapped environment, and errors that name the policy."""

import random
import sys
import zipfile
from types import MappingProxyType

import numpy as np
import pytest
from pettingzoo.classic import rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation import games
from pz_policymap.evaluation.episode_loop import PlayError
from tests import cli_bots
from tests.stub_envs import StubParallel


def test_play_episode_without_a_step_is_an_error():
    with pytest.raises(PlayError, match="episode 0: it is over, but some agents have neither terminated"):
        list(pm.play(pm.wrap(StubParallel(live=[()]), pm.Fixed(0)), ["random"], 1))


def test_play_entrants_and_dicts_are_policies():
    env = pm.wrap(tictactoe_v3.env(), pm.Fixed(5), seed=0)
    (episode,) = pm.play(env, {5: pm.Entrant(getattr, cli_bots, "first_free")}, 1)
    assert episode.policies == (5, 5)


def test_play_policies_in_any_mapping_are_found_by_policy_id():
    env = pm.wrap(tictactoe_v3.env(), pm.Fixed(5))
    (episode,) = pm.play(env, MappingProxyType({5: "random"}), 1)
    assert episode.policies == (5, 5)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"seed": [1, 2]}, TypeError, r"seed must be an integer, got \[1, 2\]"),
        ({"seed": (3,)}, TypeError, "seed must be an integer"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"episodes": 0}, ValueError, "episodes must be at least 1"),
        ({"episodes": 1.0}, TypeError, "episodes must be an integer"),
        ({"policies": [3]}, TypeError, r"policies\[0\] must be"),
        ({"env": rps_v2.parallel_env()}, ValueError, "env has no policy wrapper"),
        ({"info_key": 3}, TypeError, "info_key must be a string"),
    ],
)
def test_play_bad_input_names_the_argument_before_the_first_episode(settings, error, message):
    env = pm.wrap(rps_v2.parallel_env(), pm.Fixed(0))
    with pytest.raises(error, match=message):
        pm.play(**{"env": env, "policies": ["random"], "episodes": 1} | settings)


def test_play_numpy_integer_is_a_seed():
    def returns(seed):
        return [e.returns for e in pm.play(pm.wrap(rps_v2.env(), 1), ["random"], 5, seed=seed)]

    assert returns(np.int64(3)) == returns(3)


@pytest.mark.parametrize("make", [tictactoe_v3.env, rps_v2.parallel_env, rps_v2.env])
def test_play_same_seed_same_episodes(make):
    def played(seed):
        env = pm.wrap(make(), 2, seed=0)
        return [(e.policies, e.returns, e.lengths) for e in pm.play(env, ["random", "random"], 15, seed=seed)]

    assert played(3) == played(3) != played(4)
    env = make()
    expected = pm.assignments(2, env.possible_agents, seed=0, episode=range(15)).tolist()
    assert [list(policies) for policies, _, _ in played(3)] == expected


@pytest.mark.parametrize("make", [rps_v2.parallel_env, rps_v2.env])
@pytest.mark.parametrize("info_key", [None, "p"])
def test_play_reads_the_key_of_the_wrapper(make, info_key):
    env = pm.wrap(make(), pm.Fixed(1), info_key="p")
    assert [e.policies for e in pm.play(env, ["random"] * 2, 2, info_key=info_key)] == [(1, 1)] * 2


def test_play_info_key_chooses_one_of_two_wrappers():
    env = pm.wrap(pm.wrap(rps_v2.parallel_env(), pm.Fixed(1), info_key="inner"), pm.Fixed(0), info_key="outer")
    for info_key, policy in ((None, 0), ("outer", 0), ("inner", 1)):
        (episode,) = pm.play(env, ["random"] * 2, 1, info_key=info_key)
        assert episode.policies == (policy, policy)


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


def test_play_result_means_count_an_episode_once():
    result = pm.PlayResult(["a", "b", "<c>"])
    for policies, returns in (([0, 0], [1.0, 2.0]), ([0, 1], [3.0, 0.5])):
        result.record(pm.Episode(policies, returns, lengths=[2, 2]))
    rows = result.as_dict()["policies"]
    assert [row["mean_return"] for row in rows[:2]] == [2.25, 0.5]
    assert repr(result).splitlines()[0] == "2 episodes of 3 policies"
    assert repr(result).splitlines()[-1].split() == ["2", "<c>", "0", "0", "-", "0", "-"]
    assert "<td>&lt;c&gt;</td>" in result._repr_html_()
    assert result.payoff.wins.tolist()[0] == [0, 1, 0]
    assert result.statistics.steps.tolist() == [6, 2, 0]


def test_save_equal_states_are_equal_bytes(tmp_path):
    result = pm.PlayResult(["a", "b"])
    for name in ("one", "other"):
        pm.save(tmp_path / name, payoff=result.payoff)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}  # whenever it was written


def test_global_generators_are_seeded_without_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    numbers = []
    for _ in range(2):
        games._seed_global_generators(3)
        numbers.append((random.random(), np.random.random()))  # noqa: NPY002
    assert numbers[0] == numbers[1]


def test_play_agent_with_an_assignment_joins_mid_episode():
    env = pm.wrap(StubParallel(live=(("a",), ("a", "b"), ("a", "b"), ())), 3, seed=0)
    (episode,) = pm.play(env, ["random"] * 3, 1)
    assert episode.agents == ("a", "b")
    assert episode.policies == tuple(env.policy_ids.values())
    assert episode.lengths == (3, 2)
