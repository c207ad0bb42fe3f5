"""`LearnerEnv` under Stable-Baselines3 and sb3-contrib themselves: `nox -s stable_baselines3`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from mpe2 import simple_spread_v3
from pettingzoo.classic import connect_four_v3, rps_v2
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

import pz_policymap as pm

torch.set_num_threads(1)  # small networks are faster so

SEATED = pm.Focal(pm.Fixed(0), pm.Fixed(1))


def legal(observation, agent, info):
    return int(np.flatnonzero(observation["action_mask"])[0])


def rock(observation, agent, info):
    return 0


def paper(observation, agent, info):
    return 1


def learner_env(env, opponent, record=None, mapping=SEATED):
    tagged = pm.wrap(env, mapping, resample_every=1)
    return pm.LearnerEnv(tagged if record is None else pm.RecordResults(tagged, record), {1: opponent})


def connect_four(opponent=legal, record=None):
    return learner_env(connect_four_v3.env(), opponent, record)


def rps(opponent=rock, record=None):
    return learner_env(rps_v2.parallel_env(max_cycles=4), opponent, record)


def small(algorithm, env, policy="MlpPolicy", **settings):
    return algorithm(policy, env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu", **settings)


def moves(env, model, seed):
    """What the learner sees in an episode in which it plays by argmax."""
    observation, _ = env.reset(seed=seed)
    seen, over = [observation.tolist()], False
    while not over:
        action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
        observation, _, over, _, _ = env.step(int(action))
        seen.append(observation.tolist())
    return seen


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "make", [connect_four, rps, lambda: learner_env(simple_spread_v3.parallel_env(max_cycles=4), rock)]
)
def test_stable_baselines3_check_passes(make):
    check_env(make())


def test_maskable_ppo_learns_in_a_short_run_and_every_episode_is_recorded_in_both_seats():
    episodes = []
    venv = VecMonitor(DummyVecEnv([lambda: connect_four(record=episodes.append) for _ in range(2)]))
    model = small(MaskablePPO, venv)
    model.learn(256)
    assert len(episodes) > 5
    assert {episode.policies for episode in episodes} == {(0, 1), (1, 0)}
    finished = [info["r"] for info in model.ep_info_buffer]
    recorded = [episode.returns[episode.policies.index(0)] for episode in episodes]
    assert sorted(finished) == sorted(recorded)
    mean, _ = evaluate_policy(model, connect_four(), n_eval_episodes=4, warn=False)
    assert -1.0 <= mean <= 1.0


def test_a_maskable_policy_as_opponent_plays_legal_moves_that_the_seed_fixes_and_leaves_the_trainers_chance_alone():
    model = small(MaskablePPO, connect_four())
    env = connect_four(opponent=model)
    before = torch.get_rng_state()
    first = moves(env, model, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    assert moves(env, model, seed=4) == first
    assert moves(connect_four(opponent=model.policy), model, seed=4) == first
    others = [moves(env, model, seed) for seed in range(10)]
    assert len({str(seen) for seen in others}) > 1
    assert all(sum(map(int, np.ravel(seen[-1]))) > 6 for seen in others)  # no game ended by an illegal move


def test_a_recurrent_policy_as_opponent_remembers_its_seat_as_it_would_alone():
    env = learner_env(simple_spread_v3.parallel_env(N=3, max_cycles=6), rock, mapping=SEATED)
    model = small(RecurrentPPO, env, "MlpLstmPolicy")
    calls: dict[str, list] = {}

    class Watched:
        def predict(self, observation, state=None, episode_start=None):
            action, following = model.predict(observation, state, episode_start, deterministic=True)
            calls.setdefault("observations", []).append(observation[0])
            calls.setdefault("actions", []).append(int(action[0]))
            calls.setdefault("starts", []).append(bool(episode_start[0]))
            return action, following

    env.set_policies({1: Watched()})
    for episode in range(2):
        env.reset(seed=episode)
        while not any(env.step(0)[2:4]):
            pass
    assert calls["starts"] == ([True] * 2 + [False] * 10) * 2
    for seat in (0, 1):  # the two seats alternate
        state = None
        for number in range(seat, 24, 2):
            start = np.array([number % 12 == seat])
            expected, state = model.predict(calls["observations"][number][None], state, start, deterministic=True)
            assert calls["actions"][number] == int(expected[0])


@pytest.mark.parametrize("vectorise", [DummyVecEnv, SubprocVecEnv])
def test_policies_and_mapping_are_exchanged_through_the_vector_environment_while_training(vectorise):
    venv = VecMonitor(vectorise([rps, rps]))
    try:
        model = small(PPO, venv)
        model.learn(64)
        venv.env_method("set_policies", {1: rock, 2: paper})
        venv.env_method("set_mapping", pm.Focal(pm.Fixed(0), pm.Fixed(2)), now=True)
        model.learn(64, reset_num_timesteps=False)
        assert [set(ids.values()) for ids in venv.get_attr("policy_ids")] == [{0, 2}] * 2
        venv.env_method("set_policies", {2: small(PPO, rps()).policy})  # an untrained one can be sent
        model.learn(64, reset_num_timesteps=False)
    finally:
        venv.close()


def test_the_example_runs_in_its_short_form_and_draws_its_picture(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "sb3_self_play.py"
    picture = tmp_path / "win_rates.png"
    run = subprocess.run(
        [sys.executable, example, "--short", "--picture", picture], capture_output=True, text=True, check=True
    )
    assert "against the random player" in run.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
