"""Runs a turn-based environment: the info of the agent to move names the policy that controls it.

The learner, policy 0, meets one of three opponents. Opponent and seats are resampled for each game.

    python examples/turn_based.py
"""

from collections import Counter

from pettingzoo.classic import connect_four_v3

import pz_policymap as pm


def learner_meets_opponent(agents, draw):
    """Assigns the learner to a random seat and an opponent to the other one."""
    seat = draw.rng.integers(2)
    return {agents[seat]: 0, agents[1 - seat]: int(draw.rng.integers(1, 4))}


env = pm.wrap(connect_four_v3.env(), learner_meets_opponent, resample_every=1)
for number, agent in enumerate(env.possible_agents):
    env.action_space(agent).seed(number)
results: Counter = Counter()

for game in range(30):
    env.reset(seed=1 if game == 0 else None)
    ids = env.policy_ids
    opponent = max(ids.values())
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        if termination or truncation:
            if info["policy_id"] == 0:
                results[opponent, {1: "won", 0: "drawn", -1: "lost"}[reward]] += 1
            env.step(None)
        else:
            env.step(env.action_space(agent).sample(observation["action_mask"]))

for (opponent, result), games in sorted(results.items()):
    print(f"against policy {opponent}: {result} {games}")
