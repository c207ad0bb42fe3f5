"""`LearnerEnv` under Stable-Baselines3 and sb3-contrib themselves: `nox -s stable_baselines3`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium.utils.env_checker
import numpy as np
import pytest
import torch
from mpe2 import simple_spread_v3
from pettingzoo.classic import connect_four_v3, rps_v2
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

import pz_policymap as pm
from pz_policymap.adapters.stable_baselines3 import LearnerVecEnv

torch.set_num_threads(1)  # small networks are faster so

SEATED = pm.Focal(pm.Fixed(0), pm.Fixed(1))
EXAMPLE = Path(__file__).parents[2] / "examples" / "sb3_self_play.py"


def legal(observation, agent, info):
    return int(np.flatnonzero(observation["action_mask"])[0])


def rock(observation, agent, info):
    return 0


def paper(observation, agent, info):
    return 1


def learner_env(env, opponent, record=None, mapping=SEATED, isolate=True):
    tagged = pm.wrap(env, mapping, resample_every=1)
    recorded = tagged if record is None else pm.record_results(tagged, record)
    return pm.LearnerEnv(recorded, {1: opponent}, isolate_randomness=isolate)


def connect_four(opponent=legal, record=None, isolate=True):
    return learner_env(connect_four_v3.env(), opponent, record, isolate=isolate)


def rps(opponent=rock, record=None):
    return learner_env(rps_v2.parallel_env(max_cycles=4), opponent, record)


def small(algorithm, env, policy="MlpPolicy", **settings):
    return algorithm(policy, env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu", **settings)


def moves(env, model, seed):
    """Returns the learner's observations of an episode in which it acts by argmax."""
    observation, _ = env.reset(seed=seed)
    seen, over = [observation.tolist()], False
    while not over:
        action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
        observation, _, over, _, _ = env.step(int(action))
        seen.append(observation.tolist())
    return seen


def at_random(observation, agent, info):
    return int(np.random.choice(np.flatnonzero(observation["action_mask"])))  # noqa: NPY002


def at_random_by_rng(observation, agent, info, rng):
    return int(rng.choice(np.flatnonzero(observation["action_mask"])))


def masked_network():
    return connect_four(opponent=small(MaskablePPO, connect_four()))


def network_of_numbers():
    env = learner_env(simple_spread_v3.parallel_env(max_cycles=4, continuous_actions=True), None)
    env.set_policies({1: small(PPO, env)})
    return env


def network_that_explores():
    """Returns a DQN that draws from NumPy's generator whether to explore, and then takes action 2."""
    model = DQN("MlpPolicy", rps(), device="cpu")
    model.exploration_rate = 0.5
    model.action_space.sample = lambda: 2
    return learner_env(rps_v2.env(max_cycles=9), model)


CHECKED = {
    "functions": connect_four,
    "functions in parallel": rps,
    "several seats": lambda: learner_env(simple_spread_v3.parallel_env(max_cycles=4), rock),
    "functions that draw": lambda: connect_four(at_random),
    "functions that take rng": lambda: connect_four(at_random_by_rng, isolate=False),
    "functions that take rng, isolated": lambda: connect_four(at_random_by_rng),
    "networks that draw": masked_network,
    "networks whose actions are numbers": network_of_numbers,
    "networks that explore": network_that_explores,
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_learner_env_passes_the_checks_of_both_libraries(name):
    check_env(CHECKED[name]())
    gymnasium.utils.env_checker.check_env(CHECKED[name](), skip_render_check=True)


@pytest.mark.parametrize(
    "name",
    ["functions that take rng", "networks that draw", "networks whose actions are numbers", "networks that explore"],
)
def test_seed_fixes_actions_of_opponents(name):
    env = CHECKED[name]()
    played = []
    for seed in (1, 1, None, 2):
        env.action_space.seed(0)
        matchup = {agent: int(seat > 0) for seat, agent in enumerate(env.env.possible_agents)}
        observation, _ = env.reset(seed=seed, options={"policy_ids": matchup})
        seen, over = [observation.tolist()], False
        while not over:
            action = env.action_space.sample()
            if isinstance(env.action_space, gymnasium.spaces.Discrete):
                action = int(env.action_masks().argmax())
            observation, _, terminated, truncated, _ = env.step(action)
            seen.append(observation.tolist())
            over = terminated or truncated
        played.append(str(seen))
    assert played[0] == played[1]
    assert len(set(played)) == 3


def test_maskable_ppo_in_short_run_records_every_episode_in_both_seats():
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


def test_maskable_opponent_is_legal_seeded_and_isolated():
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


def test_recurrent_opponent_keeps_its_state():
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
def test_policies_and_mapping_can_be_replaced_during_training(vectorise):
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


def recorded_rps():
    tagged = pm.wrap(rps_v2.parallel_env(max_cycles=4), SEATED, resample_every=1)
    return pm.LearnerEnv(pm.record_results(tagged), {1: rock})


@pytest.mark.parametrize("vectorise", [DummyVecEnv, SubprocVecEnv])
def test_vector_infos_fill_a_ledger_in_the_parent(vectorise):
    payoff, monitored = pm.Payoff(2), []

    class Collect(BaseCallback):
        def _on_step(self):
            for episode in pm.finished_episodes(self.locals["infos"]):
                payoff.record(episode)
            monitored.extend(info["episode"] for info in self.locals["infos"] if "episode" in info)
            return True

    venv = VecMonitor(vectorise([recorded_rps, recorded_rps]))
    try:
        small(PPO, venv).learn(64, callback=Collect())
    finally:
        venv.close()
    assert payoff.games[0, 1] == len(monitored) == 64 // 4


def test_learner_vec_env_equals_dummy_vec_env_with_fewer_calls_of_predict():
    model, shown, calls = small(MaskablePPO, connect_four()), [], []

    class Deterministic:
        def predict(self, observation, action_masks):
            calls[-1] += 1
            return model.predict(observation, action_masks=action_masks, deterministic=True)[0], None

    for vectorise in (DummyVecEnv, LearnerVecEnv):
        calls.append(0)
        opponent = Deterministic()
        venv = vectorise([lambda: connect_four(opponent, [].append, isolate=False)] * 4)  # noqa: B023
        venv.seed(3)
        seen = [venv.reset()]
        for _ in range(30):
            actions = np.array([mask.argmax() for mask in venv.env_method("action_masks")])
            seen.append(venv.step(actions))
        shown.append(seen)
    assert gymnasium.utils.env_checker.data_equivalence(*shown)
    assert calls[1] < calls[0] / 2


def test_maskable_ppo_learns_in_a_learner_vec_env_against_itself():
    opponents, episodes = {}, []

    def make():
        tagged = pm.wrap(connect_four_v3.env(), SEATED, resample_every=1)
        return pm.LearnerEnv(pm.record_results(tagged, episodes.append), opponents)

    venv = VecMonitor(LearnerVecEnv([make] * 4))
    model = small(MaskablePPO, venv)
    opponents[1] = model
    model.learn(256)
    assert len(episodes) >= len(model.ep_info_buffer) > 5
    assert {episode.policies for episode in episodes} == {(0, 1), (1, 0)}


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLE.parent))  # by its name, which a saved snapshot asks for
    import sb3_self_play

    sys.path.remove(str(EXAMPLE.parent))
    return sb3_self_play


def test_example_beats_random_and_its_snapshots(example):
    torch.distributions.Distribution.set_default_validate_args(False)
    model, self_play = example.train(seed=0)
    opponents = self_play.policies
    wins, _ = example.play(model, opponents, example.RANDOM, games=200)
    assert wins >= 190
    wins, draws = example.play(model, opponents, example.FIRST_SNAPSHOT, games=200)
    assert wins + draws / 2 > 120  # four standard errors and more above an equal
    assert list(opponents) == [example.RANDOM, example.GREEDY, *range(3, 12)]


def test_example_alternates_seats(example, monkeypatch):
    episodes = []
    monkeypatch.setattr(example.pm.Payoff, "record", lambda ledger, episode: episodes.append(episode.policies))
    model = small(MaskablePPO, connect_four())
    example.play(model, {example.RANDOM: example.random_player}, example.RANDOM, games=6)
    assert episodes == [(1, 0), (0, 1)] * 3


def test_greedy_player_completes_lines(example):
    assert len(example.LINES) == 69  # the known number for this game
    for line in example.LINES:
        cells = [divmod(int(cell), 7) for cell in line]
        upright = len({column for _, column in cells}) == 1
        for row, column in cells[:1] if upright else cells:  # of an upright line the uppermost is the last
            board = np.zeros((6, 7, 2), np.int8)  # what is under the line is the other's
            for r, c in cells:
                board[r + 1 :, c, 1] = 1
            for r, c in cells:
                board[r, c] = (0, 0) if (r, c) == (row, column) else (1, 0)
            board[:row, column] = 0
            env = connect_four_v3.raw_env()
            env.reset()
            env.board = board.reshape(-1, 2) @ [1, 2]
            env.step(example.greedy_player(env.observe("player_0"), "player_0", {}))
            assert env.rewards == {"player_0": 1, "player_1": -1}
    empty = {"observation": np.zeros((6, 7, 2), np.int8), "action_mask": np.ones(7, np.int8)}
    assert {example.greedy_player(empty, "player_0", {}) for _ in range(200)} == set(range(7))


def test_example_short_run_draws_picture(tmp_path):
    picture = tmp_path / "win_rates.png"
    for how in ("pfsp", "latest"):
        run = subprocess.run(
            [sys.executable, EXAMPLE, "--short", "--opponents", how, "--picture", picture],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "against random: " in run.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 60_000


class Greedy:
    """A saved model that acts by argmax."""

    def __init__(self, path):
        self.model = MaskablePPO.load(path, device="cpu")

    def predict(self, observation, action_masks):
        return self.model.predict(observation, action_masks=action_masks, deterministic=True)


def result_by_hand(path):
    """The returns of a game in which a saved model moves first, by argmax, against `legal`."""
    model, env = MaskablePPO.load(path), connect_four_v3.env()
    env.reset(seed=0)
    while not (env.terminations["player_0"] or env.truncations["player_0"]):
        observation, *_ = env.last()
        seen, mask = observation["observation"], observation["action_mask"]
        first = env.agent_selection == "player_0"
        env.step(int(model.predict(seen, action_masks=mask, deterministic=True)[0] if first else mask.argmax()))
    return tuple(env.rewards.values())


@pytest.mark.parametrize("load", [MaskablePPO.load, Greedy])
def test_tournament_of_saved_models_is_equal_in_worker_processes(tmp_path, load):
    model = small(MaskablePPO, connect_four())
    for steps in (32, 512):
        model.learn(steps, reset_num_timesteps=False)
        model.save(tmp_path / f"step_{model.num_timesteps}.zip")
    entrants = {**pm.Entrant.from_folder(tmp_path, load, "*.zip"), "random": "random", "legal": legal}
    results = [pm.tournament(connect_four_v3.env, entrants, cycles=3, n_jobs=n_jobs) for n_jobs in (1, 2)]
    assert results[0].names == ("step_32", "step_544", "random", "legal")
    assert results[0].episodes == results[1].episodes  # sampled actions follow from torch's seed
    assert len(results[0].episodes) == 36
    if load is Greedy:
        played = [episode.returns for episode in results[0].episodes if episode.policies == (1, 3)]
        assert played == [result_by_hand(tmp_path / "step_544.zip")] * 3
