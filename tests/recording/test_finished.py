"""`finished_episodes`: each finished episode leaves a worker once, in the last info."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from pettingzoo.classic import rps_v2, tictactoe_v3
from pettingzoo.utils import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import MultiEpisodeEnv, OrderEnforcingWrapper

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.learner_envs import ScriptedAEC, Survival
from tests.stub_envs import StubParallel
from tests.vector_envs import in_mode, needs_modes


def recorded(env, log, **settings):
    return pm.record_results(pm.wrap(env, 9, seed=0, **settings), *([] if log is None else [log.append]))


def play_aec(env):
    """Plays an episode; returns the episodes in the infos of `last` and those in `infos`."""
    env.reset(seed=0)
    shown, held = [], []
    for _ in env.agent_iter():
        _, _, terminated, truncated, info = env.last()
        shown += pm.finished_episodes(info)
        held.append(pm.finished_episodes(env.infos))
        env.step(None if terminated or truncated else 0)
    return shown, held


AEC = {
    "recorder": lambda log: recorded(rps_v2.raw_env(max_cycles=3), log),
    "order check outside": lambda log: OrderEnforcingWrapper(recorded(rps_v2.raw_env(max_cycles=3), log)),
    "converted": lambda log: parallel_to_aec(recorded(rps_v2.parallel_env(max_cycles=3), log)),
    "two recorders": lambda log: pm.record_results(recorded(rps_v2.env(max_cycles=3), log)),
}


@pytest.mark.parametrize("make", AEC.values(), ids=AEC.keys())
def test_aec_last_shows_the_finished_episode_once(make):
    log = []
    env = make(log)
    for episode in range(2):
        shown, held = play_aec(env)
        assert shown == log[episode:]
        assert len(shown) == 1
        assert max(map(len, held)) == 1


def test_aec_infos_hold_no_episode_after_a_reset():
    env = recorded(tictactoe_v3.env(), None)
    env.reset()
    for move in (0, 3, 1, 4, 2):
        env.step(move)
    assert pm.finished_episodes(env.infos) == [env.finished]
    env.reset()
    assert env.finished is None
    assert not pm.finished_episodes(env.infos)
    assert not pm.finished_episodes(env.last()[4])


def test_aec_wrapper_that_resets_by_itself_shows_every_episode():
    log = []
    env = MultiEpisodeEnv(recorded(rps_v2.env(max_cycles=2), log), 3)
    assert play_aec(env)[0] == log
    assert len(log) == 3


PARALLEL = {
    "recorder": lambda log: recorded(rps_v2.parallel_env(max_cycles=3), log),
    "converted": lambda log: aec_to_parallel(recorded(rps_v2.env(max_cycles=3), log)),
    "two recorders": lambda log: pm.record_results(recorded(rps_v2.parallel_env(max_cycles=3), log)),
    "agents end at different times": lambda log: recorded(Survival(4), log),
    "turns": lambda log: pm.record_results(
        turn_based_aec_to_parallel(pm.wrap(tictactoe_v3.env(), 2)), *([] if log is None else [log.append])
    ),
}


@pytest.mark.parametrize("make", PARALLEL.values(), ids=PARALLEL.keys())
def test_parallel_last_infos_show_the_finished_episode_once(make):
    log = []
    env = make(log)
    for episode in range(2):
        _, infos = env.reset(seed=episode)
        shown = pm.finished_episodes(infos)
        move = 0
        while env.agents:
            *_, infos = env.step(dict.fromkeys(env.agents, move))
            shown += pm.finished_episodes(infos)
            move += 1
        assert shown == log[episode:]
        assert len(shown) == 1


def test_parallel_without_infos_at_the_end_still_shows_the_episode():
    class Silent(StubParallel):
        def step(self, actions):
            return *super().step(actions)[:4], {}

    env = pm.record_results(Silent(infos=lambda time, agents: {agent: {"policy_id": 3} for agent in agents}))
    env.reset()
    env.step({})
    *_, infos = env.step({})
    assert infos == {"a": {"finished_episodes": (env.finished,)}}


def test_infos_of_the_environment_are_not_written_to():
    own = {"a": {}, "b": {}}
    env = recorded(StubParallel(infos=lambda time, agents: own), None)
    env.reset()
    env.step({}), env.step({})
    assert own == {"a": {}, "b": {}}


def learner(env, play_out=True, mapping=None):
    mapping = mapping or pm.Focal(pm.Fixed(0), pm.Uniform([1, 2]))
    return pm.LearnerEnv(pm.record_results(pm.wrap(env, mapping)), ["random"] * 3, play_out=play_out)


def make_learner():
    return learner(rps_v2.parallel_env(max_cycles=2))


def test_learner_last_info_shows_the_episode_whichever_seat_reports_it():
    env = learner(rps_v2.env(max_cycles=3))
    seats = set()
    for seed in range(8):
        _, info = env.reset(seed=seed)
        seats.add(env.agent)
        shown = [pm.finished_episodes(info)]
        over = False
        while not over:
            *_, over, info = env.step(0)
            shown.append(pm.finished_episodes(info))
        assert list(map(len, shown)) == [0, 0, 0, 1]
        (episode,) = shown[-1]
        assert dict(zip(episode.agents, episode.policies, strict=True)) == env.policy_ids
    assert len(seats) == 2


def test_learner_shows_skipped_episodes_with_the_next_one():
    over, real = [("b", {"b": 1.0}, ("a", "b"))], [("a", {"a": 2.0}, ("a", "b"))]
    env = learner(ScriptedAEC([over, real, over, over, real]), mapping=pm.Fixed({"a": 0, "b": 1}))
    shown = []
    for _ in range(2):
        assert "finished_episodes" not in env.reset()[1]
        shown.append([episode.returns for episode in pm.finished_episodes(env.step(0)[4])])
    assert shown == [[(0.0, 1.0), (2.0, 0.0)], [(0.0, 1.0)] * 2 + [(2.0, 0.0)]]


def test_learner_whose_episode_is_interrupted_shows_none():
    env = learner(Survival(4), play_out=False)
    for seed in range(10):
        env.reset(seed=seed)
        over, step = False, 0
        while not over:
            *_, over, _, info = env.step(0)
            step += 1
        assert ("finished_episodes" in info) == (step == 3)


def test_learner_without_a_recorder_leaves_infos_alone():
    env = pm.LearnerEnv(pm.wrap(StubParallel(), pm.Fixed({"a": 0, "b": 1})), {1: "random"})
    env.reset()
    env.step(0)
    assert env.step(0)[4] == {"policy_id": 0}


MODES = [pytest.param(mode, marks=needs_modes) for mode in Autoreset]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_gymnasium_vector_infos_fill_a_ledger_in_the_parent(kind, mode):
    envs, payoff, episodes = in_mode(kind, [make_learner] * 3, mode), pm.Payoff(3), []
    try:
        envs.reset(seed=0)
        ended = 0
        for _ in range(12):
            _, _, terminated, truncated, infos = envs.step(np.zeros(3, np.int64))
            over = terminated | truncated
            ended += over.sum()
            episodes += pm.finished_episodes(infos)
            if mode is Autoreset.DISABLED and over.any():
                envs.reset(options={"reset_mask": over})
    finally:
        envs.close()
    for episode in episodes:
        payoff.record(episode)
    assert len(episodes) == ended > 9
    assert payoff.games[0].sum() == ended
    assert {episode.lengths for episode in episodes} == {(2, 2)}


def test_gymnasium_wrapper_outside_passes_the_episode_on():
    env = gymnasium.wrappers.RecordEpisodeStatistics(make_learner())
    env.reset(seed=0)
    env.step(0)
    info = env.step(0)[4]
    assert info["episode"]["l"] == 2
    assert len(pm.finished_episodes(info)) == 1


@pytest.mark.parametrize("infos", [{}, [], [{}, {}], {"a": {"x": 1}}, {"finished_episodes": np.array([None, None])}])
def test_infos_without_an_episode_hold_none(infos):
    assert pm.finished_episodes(infos) == []
