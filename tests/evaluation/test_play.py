"""`play`: the episodes of a wrapped environment, and errors that name the policy."""

import pytest
from pettingzoo.classic import rps_v2, tictactoe_v3

import pz_policymap as pm
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
