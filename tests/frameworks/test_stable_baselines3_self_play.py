"""`SelfPlay` under Stable-Baselines3 itself: `nox -s stable_baselines3`."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_spread_v3
from pettingzoo import ParallelEnv
from pettingzoo.classic import rps_v2, tictactoe_v3
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

import pz_policymap as pm
from pz_policymap.adapters.stable_baselines3 import SelfPlay, SelfPlayEnv

torch.set_num_threads(1)  # small networks are faster so

OPPONENTS = {"snapshots": (0.7, "pfsp"), "random": 0.3}


def make(mapping, policies, env_index, every=1):
    env = pm.wrap(rps_v2.parallel_env(max_cycles=4), mapping, resample_every=every, seed=5, env_index=env_index)
    return SelfPlayEnv(env, policies, isolate_randomness=True)


def parts(folder=None, vectorise=DummyVecEnv, every=1, num_envs=2, **settings):
    """Returns a self-play of rock, paper, scissors and its vector environment."""
    options = {name: settings.pop(name) for name in ("save_every", "update_every") if name in settings}
    learner = pm.PoolLearner("main", OPPONENTS, every=64)
    pool = pm.SnapshotPool([learner], fixed=["random"], **settings)
    self_play = SelfPlay(pool, pm.Payoff(2), {"random": "random"}, folder=folder, **options)
    fns = [partial(make, pool.last_mapping, self_play.policies, index, every) for index in range(num_envs)]
    return self_play, vectorise(fns)


def small(env, **settings):
    return PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu", **settings)


def parameters(policy):
    return torch.cat([p.detach().flatten() for p in policy.parameters()])


def test_snapshots_join_and_keep_their_parameters():
    self_play, venv = parts()
    model = small(VecMonitor(venv))
    taken = {}
    for steps in range(64, 321, 64):
        model.learn(64, callback=self_play, reset_num_timesteps=False)
        assert model.num_timesteps == steps
        for policy_id in self_play.pool.slots:
            mine = parameters(self_play.policies[policy_id])
            assert torch.equal(taken.setdefault(policy_id, mine), mine)
    assert [member.step for member in self_play.pool.members[2:]] == list(range(64, 257, 64))
    assert len({tuple(mine.tolist()) for mine in taken.values()}) == len(taken) == 4
    assert self_play.payoff.games[0].sum() == 320 // 4  # each episode has four steps
    assert [repr(pm.find_assigner(env).mapping) for env in venv.envs] == [repr(self_play.pool.last_mapping)] * 2


@pytest.mark.parametrize("every", [1, 3])
def test_subprocesses_meet_the_same_opponents_with_the_same_results(every):
    states = []
    for vectorise in (DummyVecEnv, SubprocVecEnv):
        self_play, venv = parts(vectorise=vectorise, every=every, capacity=3)
        try:
            small(venv).learn(384, callback=self_play)
            assert set(venv.get_attr("policy_ids")[0].values()) <= {0, *self_play.policies}
            states.append((self_play.pool.state_dict(), self_play.payoff.games.tolist()))
        finally:
            venv.close()
    assert states[0] == states[1]
    assert len(states[0][0]["members"]) > 4
    assert sum(states[0][1][0]) == 96


def test_snapshot_is_released_when_no_environment_uses_it():
    self_play, venv = parts(capacity=2, every=5)
    small(venv).learn(768, callback=self_play)
    pool = self_play.pool
    released = {member.policy_id for member in pool.members[2:]} - set(pool.slots)
    assert len(released) > 2
    assert set(self_play.policies) == {1, *pool.slots}
    assert not released & set().union(*venv.get_attr("policies_in_use"))


def test_logger_gets_size_win_rates_and_rating(tmp_path):
    self_play, venv = parts()
    model = small(venv)
    model.set_logger(configure(str(tmp_path), ["json"]))
    model.learn(320, callback=self_play)
    rows = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    names = {"size", "win_rate", "win_rate_latest", "win_rate_random", "rating", "rating_error"}
    assert {key.removeprefix("pool/") for key in rows[-1] if key.startswith("pool/")} == names
    assert [row["pool/size"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[-1]["pool/rating_error"] > 0.0


def test_ledger_without_prior_logs_no_rating(tmp_path):
    learner = pm.PoolLearner("main", OPPONENTS, every=64)
    pool = pm.SnapshotPool([learner], fixed=["random"])
    self_play = SelfPlay(pool, pm.Payoff(2, prior=0.0), {"random": "random"})
    model = small(DummyVecEnv([partial(make, pool.last_mapping, self_play.policies, 0)]))
    model.set_logger(configure(str(tmp_path), ["json"]))
    model.learn(64, callback=self_play)
    row = json.loads((tmp_path / "progress.json").read_text().splitlines()[-1])
    assert "pool/size" in row
    assert "pool/rating" not in row


RUN = """
import sys
sys.path[:0] = {path!r}
from test_stable_baselines3_self_play import *

folder = Path(sys.argv[1])


class Stop(SelfPlay):
    def _save(self, folder):
        super()._save(folder)
        print(self.num_timesteps, flush=True)


if __name__ == "__main__":
    self_play, venv = parts(folder, SubprocVecEnv, every=2, capacity=3)
    self_play.__class__ = Stop
    model = self_play.resume(PPO, venv) if self_play.saved else small(venv)
    model.learn(640 - model.num_timesteps, callback=self_play, reset_num_timesteps=False)
    venv.close()
"""


def test_killed_run_resumes_with_pool_snapshots_and_schedules(tmp_path):
    script, folder = tmp_path / "run.py", tmp_path / "run"
    script.write_text(RUN.format(path=[str(Path(__file__).parent), str(Path(pm.__file__).parents[1])]))
    command = [sys.executable, str(script), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while int(process.stdout.readline()) < 256:
            pass
        process.kill()
    before = pm.load(folder / "pool.npz")
    assert 256 <= int(before["run"]["model"].removeprefix("model_").removesuffix(".zip")) < 640

    self_play, venv = parts(folder, every=2, capacity=3)
    model = self_play.resume(PPO, venv)
    assert self_play.pool.state_dict() == before["pool"] | {"slots": self_play.pool.state_dict()["slots"]}
    np.testing.assert_array_equal(self_play.payoff.state_dict()["table"], before["payoff"]["table"])
    assert set(self_play.policies) == {1, *self_play.pool.slots}
    assert [env.unwrapped.state_dict() for env in venv.envs] == list(before["envs"].values())
    for policy_id in self_play.pool.slots:
        saved = type(model.policy).load(folder / f"policy_{policy_id}.zip")
        assert torch.equal(parameters(saved), parameters(self_play.policies[policy_id]))
    # The next episode of each environment has the opponents that it would have had.
    states = [dict(state) for state in before["envs"].values()]
    venv.reset()
    for index, (env, state) in enumerate(zip(venv.envs, states, strict=True)):
        pure = pm.assignments(
            self_play.pool.last_mapping, ["player_0", "player_1"], seed=5, env_index=index,
            episode=state["episode"] + 1, resample_every=2,
        )  # fmt: skip
        fresh = state["draw"]["episode"] != 2 * ((state["episode"] + 1) // 2)
        expected = pure.tolist() if fresh else state["draw"]["policies"]
        assert list(env.unwrapped.policy_ids.values()) == expected

    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [int(line) for line in run.stdout.split()][-1] == 640
    after = pm.load(folder / "pool.npz")
    assert after["run"]["model"] == "model_640.zip"
    assert [path.name for path in folder.glob("model_*")] == ["model_640.zip"]
    assert after["pool"]["members"][: len(before["pool"]["members"])] == before["pool"]["members"]
    ledger = pm.Payoff(1)
    ledger.load_state_dict(after["payoff"])
    num_before = len(self_play.pool.members)
    assert (ledger.games[:num_before, :num_before] >= self_play.payoff.games).all()
    assert ledger.games[0].sum() > self_play.payoff.games[0].sum()


def test_saves_and_updates_come_at_their_intervals(tmp_path):
    self_play, venv = parts(tmp_path / "run", save_every=2, update_every=100)
    saved = []
    self_play._save = lambda folder: saved.append(self_play.num_timesteps)
    model = small(venv)
    model.learn(640, callback=self_play)
    assert [member.step for member in self_play.pool.members[2:]] == [128, 256, 384, 512]  # not each 64 steps
    assert saved == [128, 384, 640]  # every second update, and the end


def test_snapshot_that_cannot_be_written_leaves_no_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    self_play, venv = parts(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        small(venv).learn(256, callback=self_play)
    assert not list(tmp_path.iterdir())


def test_off_policy_algorithm_updates_between_its_short_rollouts():
    self_play, venv = parts(update_every=50)
    sent = []
    venv_method = venv.env_method
    venv.env_method = lambda name, *args, **options: sent.append(name) or venv_method(name, *args, **options)
    model = DQN("MlpPolicy", venv, learning_starts=8, buffer_size=100, seed=0, device="cpu")
    model.learn(300, callback=self_play)
    assert sent.count("set_mapping") == 6
    assert [member.step for member in self_play.pool.members[2:]] == [
        112,
        224,
    ]  # at the first of its short rollouts that is late enough


def test_masked_turn_based_game_is_learned_against_snapshots():
    learner = pm.PoolLearner("main", OPPONENTS, every=64)
    pool = pm.SnapshotPool([learner], fixed=["random"])
    self_play = SelfPlay(pool, pm.Payoff(2), {"random": "random"})

    def game():
        return SelfPlayEnv(pm.wrap(tictactoe_v3.env(), pool.last_mapping, resample_every=1), self_play.policies)

    model = MaskablePPO("MlpPolicy", DummyVecEnv([game]), n_steps=64, seed=0, device="cpu")
    model.learn(256, callback=self_play)
    assert len(pool.active()) == 3
    assert self_play.payoff.games[0, 1:].sum() > 20


@pytest.mark.parametrize("opponents", [{"snapshots": 1.0}, {"snapshots": 0.5, "self": 0.5}])
def test_model_meets_a_copy_of_itself(tmp_path, opponents):
    results = []
    for vectorise in (DummyVecEnv, SubprocVecEnv):
        pool = pm.SnapshotPool([pm.PoolLearner("main", opponents, every=128)])
        self_play = SelfPlay(pool, pm.Payoff(1), {}, folder=tmp_path / vectorise.__name__)
        assert self_play.policies == {0: "random"}  # there is no model yet
        venv = vectorise([partial(make, pool.last_mapping, self_play.policies, index) for index in range(2)])
        try:
            model, alone, copies = small(venv), 0, []
            for _ in range(6):
                model.learn(64, callback=self_play, reset_num_timesteps=False)
                copies.append(parameters(self_play.policies[0]))
                alone += sum(set(ids.values()) == {0} for ids in venv.get_attr("policy_ids"))
            results.append((pool.state_dict(), self_play.payoff.games.tolist(), torch.stack(copies)))
        finally:
            venv.close()
    (state, games, copies), others = results
    assert (state, games) == others[:2]
    assert torch.equal(copies, others[2])
    renewed = 6 if "self" in opponents else 2  # without a share it meets itself until the first snapshot
    assert len({tuple(copy.tolist()) for copy in copies}) == renewed
    assert alone > 0
    assert sum(games[0]) > 0

    pool = pm.SnapshotPool([pm.PoolLearner("main", opponents, every=128)])
    resumed = SelfPlay(pool, pm.Payoff(1), {}, folder=tmp_path / "DummyVecEnv")
    venv = DummyVecEnv([partial(make, pool.last_mapping, resumed.policies, index) for index in range(2)])
    model = resumed.resume(PPO, venv)
    if "self" in opponents:
        assert torch.equal(parameters(resumed.policies[0]), parameters(model.policy))
    model.learn(64, callback=resumed, reset_num_timesteps=False)


def test_resumed_draw_in_which_the_model_meets_itself_is_played_by_its_copy(tmp_path):
    models = []
    for _ in range(2):
        pool = pm.SnapshotPool([pm.PoolLearner("main", {"snapshots": 1.0}, every=64)])
        self_play = SelfPlay(pool, pm.Payoff(1), {}, folder=tmp_path)
        venv = DummyVecEnv([partial(make, pool.last_mapping, self_play.policies, 0, every=100)])
        models.append(self_play.resume(PPO, venv) if self_play.saved else small(venv).learn(96, callback=self_play))
    assert pool.opponent_weights("main", self_play.payoff)[0] == 0.0  # a snapshot has its place, from the next draw on
    venv.reset()
    assert set(venv.get_attr("policy_ids")[0].values()) == {0}
    assert torch.equal(parameters(self_play.policies[0]), parameters(models[1].policy))


class Joins(ParallelEnv):
    """Agent "b" joins at the third step; its actions are the rewards of "a"."""

    metadata = {"name": "joins_v0"}  # noqa: RUF012
    possible_agents = ["a"]  # noqa: RUF012
    render_mode = None

    def observation_space(self, agent):
        return spaces.Box(0, 1, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(1000)

    def reset(self, seed=None, options=None):
        self.agents, self.time = ["a"], 0
        return self._of_all(np.zeros(1, np.float32)), self._of_all({})

    def step(self, actions):
        self.time += 1
        self.agents = ["a", "b"] if self.time > 2 else ["a"]
        rewards = self._of_all(float(actions.get("b", 0)))
        running = self._of_all(False)
        return self._of_all(np.zeros(1, np.float32)), rewards, running, running, self._of_all({})

    def _of_all(self, value):
        return dict.fromkeys(self.agents, value)


def roles(learner, opponents):
    return pm.Roles({"a": learner, "b": opponents}, role_of={"a": "a", "b": "b"})


def joins(mapping, policies):
    return SelfPlayEnv(pm.wrap(Joins(), mapping, seed=0), policies, isolate_randomness=True)


def test_agent_that_joins_after_an_update_gets_the_same_copy_in_every_process():
    rewards = []
    for vectorise in (DummyVecEnv, SubprocVecEnv):
        pool = pm.SnapshotPool(["main"], seats=roles)
        self_play = SelfPlay(pool, pm.Payoff(1), {})
        venv = vectorise([partial(joins, pool.last_mapping, self_play.policies)])
        try:
            rewards.append(small(venv).learn(32, callback=self_play).rollout_buffer.rewards.ravel().tolist())
        finally:
            venv.close()
    assert rewards[0] == rewards[1]
    assert len(set(rewards[0])) > 20


@pytest.mark.parametrize(
    ("make_pool", "policies", "message"),
    [
        (lambda: pm.SnapshotPool(["a", "b"]), {}, r"pool must have one learner, the model, got \['a', 'b'\]"),
        (
            lambda: pm.SnapshotPool(["a"], fixed=["b"]),
            {"c": "random"},
            r"policies must be those of \['b'\], got \['c'\]",
        ),
    ],
)
def test_pool_that_the_model_cannot_follow_raises(make_pool, policies, message):
    pool = make_pool()
    with pytest.raises(ValueError, match=message):
        SelfPlay(pool, pm.Payoff(pool.num_policies), policies)


def test_resume_without_folder_raises():
    self_play, venv = parts()
    assert not self_play.saved
    with pytest.raises(ValueError, match="folder must be given to resume a run, got None"):
        self_play.resume(PPO, venv)


@pytest.mark.parametrize("change", [VecNormalize, partial(VecFrameStack, n_stack=2)])
def test_changed_observations_are_refused(change):
    learner = pm.PoolLearner("main", OPPONENTS)
    pool = pm.SnapshotPool([learner], fixed=["random"])
    self_play = SelfPlay(pool, pm.Payoff(2), {"random": "random"})
    env = pm.wrap(simple_spread_v3.parallel_env(N=2, max_cycles=4), pool.last_mapping)
    venv = DummyVecEnv([lambda: SelfPlayEnv(env, self_play.policies)])
    with pytest.raises(ValueError, match="env must not change observations"):
        small(change(venv)).learn(32, callback=self_play)


def test_normalized_rewards_are_allowed():
    self_play, venv = parts()
    small(VecNormalize(venv, norm_obs=False)).learn(64, callback=self_play)


@pytest.mark.parametrize("vectorise", [DummyVecEnv, SubprocVecEnv])
def test_environment_without_collected_results_is_refused(vectorise):
    self_play, _ = parts()

    def plain():
        return pm.LearnerEnv(pm.wrap(rps_v2.parallel_env(), "Focal(Fixed(0), Fixed(1))"), {1: "random"})

    with pytest.raises(TypeError, match="env must hold SelfPlayEnvs"):
        small(vectorise([plain])).learn(32, callback=self_play)


def test_teams_of_a_self_play_environment_are_scored_together():
    env = pm.wrap(rps_v2.parallel_env(max_cycles=1), "Focal(Fixed(0), Fixed(1))", seed=0)
    env = SelfPlayEnv(env, {1: "random"}, team_of=lambda agent: "all")
    env.reset(seed=0)
    env.step(0)
    (episode,) = env.take_episodes()
    assert len(set(episode.sides)) == 1
    assert env.take_episodes() == []
