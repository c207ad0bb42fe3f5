"""Stable-Baselines3: self-play with a `SnapshotPool`, and opponents that act in batches.

`LearnerEnv` itself needs no adapter. `LearnerVecEnv` is faster than a `DummyVecEnv` if opponents are networks.

    pool = pm.SnapshotPool([pm.PoolLearner("main", {"snapshots": 0.8, "random": 0.2}, every=10_000)], fixed=["random"])
    self_play = SelfPlay(pool, pm.Payoff(pool.num_policies), {"random": "random"}, folder="run")

    def make(index):
        env = pm.wrap(connect_four_v3.env(), pool.last_mapping, resample_every=1, seed=0, env_index=index)
        return SelfPlayEnv(env, self_play.policies)

    venv = DummyVecEnv([partial(make, index) for index in range(8)])  # or LearnerVecEnv, or SubprocVecEnv
    model = self_play.resume(MaskablePPO, venv) if self_play.saved else MaskablePPO("MlpPolicy", venv)
    model.learn(1_000_000 - model.num_timesteps, callback=self_play, reset_num_timesteps=False)
"""

from importlib.util import find_spec

if find_spec("stable_baselines3") is None:
    raise ImportError("this adapter needs Stable-Baselines3: pip install 'stable-baselines3>=2.9'")

from pz_policymap.adapters.stable_baselines3.self_play import SelfPlay as SelfPlay
from pz_policymap.adapters.stable_baselines3.self_play import SelfPlayEnv as SelfPlayEnv
from pz_policymap.adapters.stable_baselines3.vec_env import LearnerVecEnv as LearnerVecEnv
