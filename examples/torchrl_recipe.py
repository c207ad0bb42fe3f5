"""Trains three policies with TorchRL's PPO: one module holds all networks and dispatches on `policy_id`.

    python -m pip install . mpe2 torchrl==0.14.1 && python examples/torchrl_recipe.py   # under a minute

What to watch for:
- TorchRL turns infos into float32 tensors, here `("agent", "info", "policy_id")`, with 0 for dead agents.
- It reads the keys of the infos from a reset at construction, so wrap the environment first. Episode 0 is that reset.
- GAE must not vmap a module that dispatches on ids.
- A network without rows has no gradient, and Adam leaves it unchanged.
"""

import torch
from mpe2 import simple_spread_v3
from tensordict import TensorDict, nn
from torchrl import collectors, objectives
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.modules import MLP, ProbabilisticActor

import pz_policymap as pm

POLICIES, EVERY, SEED, SEEN, ID = 3, 2, 1, ("agent", "observation"), ("agent", "info", "policy_id")
NAMES = "action", "logits", "state_value", "reward", "done", "terminated", "advantage", "value_target"
ACT, LOGITS, VALUE, *OTHERS = (("agent", name) for name in NAMES)


class Population(torch.nn.ModuleList):
    """One network per policy. Each row passes through the network of its policy only."""

    def forward(self, observation, policy_id):  # noqa: D102
        outputs = observation.new_zeros(*policy_id.shape, self[0][-1].out_features)
        for policy, net in enumerate(self):
            if (own := policy_id == policy).any():
                outputs[own] = net(observation[own])
        return outputs


def train(iterations=8, steps=500, epochs=5):
    """Trains, and yields the batch of each iteration, with shape `(steps, agents)` below "agent"."""
    env = PettingZooWrapper(pm.wrap(simple_spread_v3.parallel_env(N=3), POLICIES, resample_every=EVERY, seed=SEED))
    nets = [Population(MLP(18, outputs) for _ in range(POLICIES)) for outputs in (5, 1)]
    pi, critic = map(nn.TensorDictModule, nets, [[SEEN, ID]] * 2, [[LOGITS], [VALUE]])
    how = {"distribution_class": torch.distributions.Categorical, "return_log_prob": True}
    pi = ProbabilisticActor(pi, [LOGITS], [ACT], **how)
    gae = objectives.value.GAE(gamma=0.95, lmbda=0.95, value_network=critic, deactivate_vmap=True)
    loss = objectives.ClipPPOLoss(pi, critic)
    for module in (gae, loss):
        module.set_keys(value=VALUE, **{key[1]: key for key in OTHERS})
    adam = torch.optim.Adam(loss.parameters(), lr=5e-4)
    for batch in map(gae, collectors.Collector(env, pi, frames_per_batch=steps, total_frames=iterations * steps)):
        for policy in batch[ID].unique().tolist() * epochs:
            own = TensorDict({"agent": batch["agent"][batch[ID] == policy]})
            adam.zero_grad()
            sum(part for name, part in loss(own).items() if name.startswith("loss_")).backward()
            adam.step()
        yield batch


if __name__ == "__main__":
    for batch in train():
        rewards = [batch["next", "agent", "reward"][batch[ID] == policy] for policy in range(POLICIES)]
        print("; ".join(f"policy {p}: {len(r)} rows, mean reward {r.mean():.2f}" for p, r in enumerate(rewards)))
