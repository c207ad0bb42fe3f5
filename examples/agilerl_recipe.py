"""Trains a population with AgileRL's DQN: one single-agent algorithm and one replay buffer per policy.

    python -m pip install . agilerl==2.58.0 peft==0.21.0 transformers==5.14.1
    python examples/agilerl_recipe.py   # under a minute

What to watch for:
- AgileRL's multi-agent algorithms (IPPO, MADDPG, MATD3) bind networks to agent names and cannot train a population.
  Use single-agent algorithms and dispatch on `policy_id`.
- No algorithm can be imported without `peft`, which AgileRL does not install.
- It needs PettingZoo < 1.27, and an older TensorDict than TorchRL 0.14.
"""

from collections import defaultdict

import numpy as np
import torch
from agilerl.algorithms import DQN
from agilerl.components import ReplayBuffer
from agilerl.components.data import Transition
from mpe2 import simple_spread_v3

import pz_policymap as pm

POLICIES, EVERY, SEED, EPSILON = 3, 2, 1, 0.2


def train(episodes=60, updates=10):
    """Trains, and yields for each episode the assignment, the rewards of each policy and all buffers."""
    env = pm.wrap(simple_spread_v3.parallel_env(N=3), POLICIES, resample_every=EVERY, seed=SEED)
    spaces = env.observation_space("agent_0"), env.action_space("agent_0")
    learners = [DQN(*spaces, index=policy, lr=1e-3, tau=0.01) for policy in range(POLICIES)]
    buffers = [ReplayBuffer(max_size=10_000) for _ in learners]
    choose = [lambda rows, learner=learner: learner.get_action(rows, epsilon=EPSILON) for learner in learners]
    for _ in range(episodes):
        observations, infos = env.reset()
        played, rows = env.policy_ids, defaultdict(list)
        while env.agents:
            actions = pm.act(choose, observations, infos, env.agents)  # one call per policy
            after, rewards, terminations, _, infos = env.step(actions)
            for agent, policy in played.items():
                row = observations[agent], actions[agent], after[agent], rewards[agent], terminations[agent]
                rows[policy].append(row)
            observations = after
        for policy, own in rows.items():
            columns = [torch.as_tensor(np.array(column)) for column in zip(*own, strict=True)]
            buffers[policy].add(Transition(*columns, batch_size=[len(own)]).to_tensordict())
            for _ in range(updates):
                learners[policy].learn(buffers[policy].sample(64))
        yield played, {policy: [row[3] for row in own] for policy, own in rows.items()}, buffers


if __name__ == "__main__":
    for number, (played, rewards, buffers) in enumerate(train(), start=1):
        if number % 10 == 0:
            means = ", ".join(f"policy {policy} {np.mean(own):.2f}" for policy, own in sorted(rewards.items()))
            print(f"episode {number}: {played}, mean rewards: {means}, rows learned from: {[*map(len, buffers)]}")
