"""A short run of the real Sample Factory: python sample_factory_run.py RECORDS [Sample Factory's own arguments]

Two agents are rewarded for naming the number that they observe. Each trajectory is recorded when it goes to a learner.
RECORDS is a folder. Settings of the mapping are environment variables, because spawned workers import this file again.
"""

import json
import os
import sys
from pathlib import Path

import gymnasium
import numpy as np
from sample_factory.algo.sampling import non_batched_sampling
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl

import pz_policymap as pm
from pz_policymap.adapters.sample_factory import use_mapping

MAPPINGS = {
    "uniform": pm.Uniform(2),
    "shared": pm.Uniform(2, mix=False),
    "focal": pm.Focal(pm.Fixed(0), pm.Uniform([0, 1])),
    "by env index": pm.ByEnvIndex(2),
    "by seat": pm.Fixed({0: 0, 1: 1}),
    "lopsided": pm.Fixed(0),
}
MAPPING = os.environ.get("MAPPING", "uniform")
RESAMPLE_EVERY = int(os.environ.get("RESAMPLE_EVERY", "3"))

use_mapping(MAPPINGS[MAPPING], resample_every=RESAMPLE_EVERY)


class Recorded(non_batched_sampling.ActorState):
    """Records the policy of each step, the ends of episodes, and the learner of each trajectory."""

    def finalize_trajectory(self, rollout_step):
        steps = self.curr_traj_buffer
        record = {
            "environment": self.global_env_idx,
            "agent": self.agent_idx,
            "policies": steps["policy_id"][:rollout_step].tolist(),
            "dones": steps["dones"][:rollout_step].tolist(),
        }
        trajectories = super().finalize_trajectory(rollout_step)
        record["learners"] = [trajectory["policy_id"] for trajectory in trajectories]
        with (Path(os.environ["RECORDS"]) / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        return trajectories


non_batched_sampling.ActorState = Recorded


class NameTheNumber(gymnasium.Env):
    """Episodes of 5 to 9 steps that end for both agents together; resets itself, as Sample Factory requires."""

    num_agents = 2
    is_multiagent = True
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self._begin(), [{}, {}]

    def step(self, actions):
        rewards = [float(action == number) for action, number in zip(actions, self.numbers, strict=True)]
        self.left -= 1
        over = self.left == 0
        observations = self._begin() if over else self._look()
        return observations, rewards, [over] * 2, [False] * 2, [{}, {}]

    def _begin(self):
        self.left = int(self.np_random.integers(5, 10))
        return self._look()

    def _look(self):
        self.numbers = self.np_random.integers(4, size=2)
        return list(np.eye(4, dtype=np.float32)[self.numbers])


def make(name, cfg, env_config, render_mode=None):
    return NameTheNumber()


def main():
    register_env("name_the_number", make)
    arguments = [
        *("--env=name_the_number", "--device=cpu", "--num_policies=2", "--use_rnn=False", "--use_env_info_cache=False"),
        *("--rollout=16", "--batch_size=128", "--num_epochs=1", "--normalize_input=False", "--seed=7"),
        *("--encoder_mlp_layers", "16", "--decorrelate_envs_on_one_worker=False", "--with_wandb=False"),
        *("--decorrelate_experience_max_seconds=0", "--restart_behavior=overwrite"),
        *sys.argv[2:],
    ]
    parser, _ = parse_sf_args(arguments)
    return run_rl(parse_full_cfg(parser, arguments))


if __name__ == "__main__":
    os.environ["RECORDS"] = sys.argv[1]
    sys.exit(main())
