"""Collects experience for a population of four policies in a Parallel environment.

Each policy has its own buffer, filled by the `policy_id` in the infos.

    python examples/quickstart.py
"""

from collections import defaultdict

from mpe2 import simple_spread_v3

import pz_policymap as pm

NUM_POLICIES = 4
EPISODES = 20


def choose(policy: int, observation, action_space):
    """Returns an action of a policy; a placeholder for a network."""
    return policy if observation[0] > 0 else action_space.sample()


env = pm.wrap(simple_spread_v3.parallel_env(N=3, max_cycles=25), NUM_POLICIES, resample_every=5)
for number, agent in enumerate(env.possible_agents):
    env.action_space(agent).seed(number)
buffers = defaultdict(list)

for episode in range(EPISODES):
    observations, infos = env.reset(seed=7 if episode == 0 else None)
    if episode % 5 == 0:
        print(f"episode {episode:2}: {env.policy_ids}")
    while env.agents:
        ids = {agent: infos[agent]["policy_id"] for agent in env.agents}  # before the step
        actions = {agent: choose(ids[agent], observations[agent], env.action_space(agent)) for agent in env.agents}
        next_observations, rewards, _, _, infos = env.step(actions)
        for agent, policy in ids.items():
            buffers[policy].append((observations[agent], actions[agent], rewards[agent]))
        observations = next_observations

for policy in range(NUM_POLICIES):
    print(f"policy {policy} learns from {len(buffers[policy])} transitions")
