"""Trains three DQN policies for tic-tac-toe with Tianshou 2, against each other and a random policy.

    python -m pip install . pygame-ce tianshou==2.0.1 && python examples/tianshou_recipe.py   # Numba compiles first

What to watch for:
- Tianshou supports AEC environments only. Its wrapper resets at construction, so collecting begins with episode 1.
- `obs.agent_id` must stay unchanged, because rewards depend on it. Dispatch on `policy_id` and store it in the output:
  the info in the buffer belongs to the next observation.
- The next observation is the opponent's, so use returns of two steps.
- Trainers dispatch on the agent: update the policies directly.
- Policies inside a `MultiAgentPolicy` use `eps_inference`, not `eps_training`.
"""

import numpy as np
from pettingzoo.classic import tictactoe_v3
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MARLDispatcher, MultiAgentPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.utils.net.common import Net

import pz_policymap as pm

NOISE, RANDOM, ENVS, SEED = [0.1, 0.1, 0.1, 1.0], 3, 4, 0  # the last policy is random and does not learn


class TaggedPolicy(MultiAgentPolicy):
    """Dispatches on `policy_id`; each policy adds its own exploration noise."""

    def forward(self, batch, state=None, **_):  # noqa: ARG002, D102
        ids, actions = batch.info.policy_id, np.zeros(len(batch), int)
        for policy, rows in pm.PolicyGroups(ids):
            own, part = self.policies[policy], batch[rows]
            actions[rows] = own.add_exploration_noise(own(part).act, part)
        return Batch(act=actions, policy=Batch(policy_id=ids))


def train(payoff, iterations=6, steps=800, updates=60):
    """Trains, and yields the whole buffer after each iteration."""
    fns = pm.env_fns(tictactoe_v3.env, ENVS, len(NOISE), resample_every=1, seed=SEED)
    envs = DummyVectorEnv([lambda fn=fn: PettingZooEnv(pm.record_results(fn(), payoff)) for fn in fns])
    env, algorithms, buffer = PettingZooEnv(tictactoe_v3.env()), [], VectorReplayBuffer(20_000, ENVS)
    for noise in NOISE:
        net, adam = Net(state_shape=18, action_shape=9, hidden_sizes=[128, 128]), AdamOptimizerFactory(lr=1e-3)
        player = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_inference=noise)
        algorithms.append(DQN(policy=player, optim=adam, n_step_return_horizon=2, target_update_freq=100))
    collector = Collector(TaggedPolicy({p: a.policy for p, a in enumerate(algorithms)}), envs, buffer)
    for iteration in range(iterations):
        collector.collect(n_step=steps, reset_before_collect=iteration == 0)
        for learner in [*range(RANDOM)] * updates:
            batch, indices = buffer.sample(256)
            own = batch.policy.policy_id == learner
            seats = MARLDispatcher([algorithms[learner]] * 2, env)  # selects the reward of each agent
            parts = seats.dispatch_process_fn(batch[own], buffer, indices[own]).values()
            algorithms[learner]._update_with_batch(Batch.cat([part for part in parts if part.get_keys()]))
        yield buffer[buffer.sample_indices(0)]


if __name__ == "__main__":
    for played in train(payoff := pm.Payoff(len(NOISE))):
        print("rows", np.bincount(played.policy.policy_id), "won against random", payoff.win_rates[:3, RANDOM].round(2))
