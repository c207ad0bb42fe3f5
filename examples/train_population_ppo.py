"""Trains four policies together with PPO in one file; partners are resampled every few episodes.

    python examples/train_population_ppo.py --picture curves.png

A speaker sees which of three landmarks is the goal and says one of three words. A listener hears the word and moves to
the landmark. Any policy may control either agent, with any partner. SuperSuit makes one vector of all environments.

What to watch for:
- Each environment needs its own `env_index`; `concat_vec_envs_v1` would clone the first environment.
- Store the policy id beside the observation, before the step. SuperSuit resets inside `step`, and then the infos belong
  to the next episode.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from mpe2 import simple_speaker_listener_v4
from supersuit import pad_action_space_v0, pad_observations_v0, pettingzoo_env_to_vec_env_v1
from supersuit.vector import ConcatVecEnv
from torch import nn
from torch.distributions import Categorical

import pz_policymap as pm

NUM_POLICIES = 4
AGENTS = 2  # in one environment: a speaker and a listener, in rows next to each other
GAMMA, LAMBDA = 0.95, 0.95
CLIP, EPOCHS, MINIBATCHES, ENTROPY = 0.2, 6, 4, 0.01


class Policy(nn.Module):
    """An actor and a critic with their optimizer; a policy learns both roles of the game."""

    def __init__(self, observation_size, num_actions):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, num_actions)
        self.critic = nn.Sequential(nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.value = nn.Linear(64, 1)
        nn.init.orthogonal_(self.head.weight, 0.01)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=2e-3, eps=1e-5)

    def forward(self, observations):
        """Returns actions, their log probabilities and the values of the observations, one row per agent."""
        choice = self.choice(observations)
        actions = choice.sample()
        return actions, choice.log_prob(actions), self.values(observations)

    def choice(self, observations):
        """Returns the action distribution."""
        return Categorical(logits=self.head(self.actor(observations)))

    def values(self, observations):
        """Returns the value of each observation."""
        return self.value(self.critic(observations)).squeeze(-1)


class Experience(NamedTuple):
    """One rollout; every tensor has shape `(steps, rows, ...)`, and `policy_ids` is the policy of each entry."""

    observations: torch.Tensor
    policy_ids: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def of(self, policy):
        """Returns the entries of one policy, one row per entry."""
        own = self.policy_ids == policy
        return Experience(*(tensor[own] for tensor in self))


def make_env():
    """Returns the bare environment; both agents have spaces of equal size, as a vector requires."""
    return pad_observations_v0(pad_action_space_v0(simple_speaker_listener_v4.parallel_env(max_cycles=25)))


def make_vector(num_envs, resample_every, seed):
    """Returns the environments as one vector with two rows per environment."""
    fns = pm.env_fns(make_env, num_envs, pm.Uniform(NUM_POLICIES), resample_every=resample_every, seed=seed)
    return ConcatVecEnv([lambda fn=fn: pettingzoo_env_to_vec_env_v1(fn()) for fn in fns])


def make_policies(env, seed):
    """Returns the untrained population."""
    torch.manual_seed(seed)
    return [Policy(env.observation_space.shape[0], env.action_space.n) for _ in range(NUM_POLICIES)]


class Player:
    """Collects rollouts from the vector; keeps the observations between rollouts."""

    def __init__(self, env, policies, seed):
        self.env, self.policies = env, policies
        observations, infos = env.reset(seed=seed)
        self.store(observations, infos)
        self.returns = np.zeros(env.num_envs)
        self.finished = [[] for _ in policies]  # returns of the finished episodes of each policy

    def store(self, observations, infos):
        """Stores the current observations and the policies that act on them."""
        self.observations = torch.as_tensor(observations, dtype=torch.float32)
        self.policy_ids = np.array([info["policy_id"] for info in infos])

    @torch.no_grad()
    def step(self):
        """Makes one step in which each policy acts on its own rows, and returns the transitions."""
        observations, ids = self.observations, self.policy_ids
        actions, log_probs, values = pm.PolicyGroups(ids).act(self.policies, observations)
        after, rewards, terminations, truncations, infos = self.env.step(actions.numpy())
        over = (terminations | truncations).astype(bool)
        self.returns += rewards
        for row in np.flatnonzero(over):
            self.finished[ids[row]].append(self.returns[row])
        self.returns[over] = 0
        rewards = torch.as_tensor(rewards)
        if over.any():  # always truncated, so the last observation has a value: that of the policy that acted on it
            last = torch.as_tensor(np.array([infos[row]["terminal_observation"] for row in np.flatnonzero(over)]))
            rewards[over] += GAMMA * self.values(ids[over], last.float())
        self.store(after, infos)
        return observations, torch.as_tensor(ids), actions, log_probs, values, rewards, torch.as_tensor(over)

    def values(self, ids, observations):
        """Returns the value of each row, estimated by its policy."""
        critics = {policy: self.policies[policy].values for policy in set(ids.tolist())}
        return pm.PolicyGroups(ids).act(critics, observations)

    @torch.no_grad()
    def rollout(self, steps):
        """Makes some steps and returns the experience, with advantages by GAE (Schulman et al. 2016)."""
        parts = zip(*(self.step() for _ in range(steps)), strict=True)
        observations, ids, actions, log_probs, values, rewards, over = map(torch.stack, parts)
        advantages, advantage = torch.zeros_like(values), torch.zeros_like(values[0])
        next_values = self.values(self.policy_ids, self.observations)
        for t in reversed(range(steps)):
            goes_on = (~over[t]).float()  # policies change between episodes only, so values never mix
            delta = rewards[t] + GAMMA * next_values * goes_on - values[t]
            advantage = delta + GAMMA * LAMBDA * goes_on * advantage
            advantages[t], next_values = advantage, values[t]
        return Experience(observations, ids, actions, log_probs, advantages, advantages + values)


def update(policy, batch):
    """Improves one policy by PPO (Schulman et al. 2017) on its own batch."""
    size = len(batch.actions)
    if size < MINIBATCHES:
        return
    for _ in range(EPOCHS):
        for chosen in torch.randperm(size).chunk(MINIBATCHES):
            part = Experience(*(tensor[chosen] for tensor in batch))
            choice = policy.choice(part.observations)
            ratio = (choice.log_prob(part.actions) - part.log_probs).exp()
            advantages = (part.advantages - part.advantages.mean()) / (part.advantages.std(correction=0) + 1e-8)
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            gain = torch.min(ratio * advantages, clipped * advantages).mean() + ENTROPY * choice.entropy().mean()
            error = (policy.values(part.observations) - part.returns).square().mean()
            policy.optimizer.zero_grad()
            (0.01 * error - gain).backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            policy.optimizer.step()


def train(policies, env, updates, steps, seed, report=None):
    """Trains the population and returns the mean episode return per policy and rollout."""
    player = Player(env, policies, seed)
    curves = np.full((len(policies), updates), np.nan)
    for number in range(updates):
        experience = player.rollout(steps)
        for index, policy in enumerate(policies):
            update(policy, experience.of(index))
            if player.finished[index]:
                curves[index, number] = np.mean(player.finished[index])
            player.finished[index].clear()
        if report is not None:
            report(number, curves[:, number])
    return curves


def evaluate(policies, episodes, seed):
    """Returns the mean return of each policy over some episodes, with partners resampled for each."""
    env = make_vector(20, resample_every=1, seed=seed)
    player = Player(env, policies, seed)
    while sum(map(len, player.finished)) < episodes * AGENTS:
        player.step()
    env.close()
    return np.array([np.mean(returns) for returns in player.finished])


def draw_curves(curves, steps_per_update, path):
    """Draws the learning curves of all policies."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(1, curves.shape[1] + 1) * steps_per_update
    for policy, curve in enumerate(curves):
        played = np.isfinite(curve)
        axes.plot(
            steps[played], curve[played], label=f"policy {policy}", color=colormaps["viridis"](policy / NUM_POLICIES)
        )
    axes.set(xlabel="steps of all environments", ylabel="mean return of an episode")
    axes.set_title("Four policies learn to talk to each other")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=120)


def main():
    """Trains, compares with the untrained population, and optionally draws."""
    parser = argparse.ArgumentParser(description="Trains four policies together on simple_speaker_listener_v4.")
    parser.add_argument("--updates", type=int, default=40, help="rollouts to learn from (default 40; fewer to try it)")
    parser.add_argument("--steps", type=int, default=100, help="steps of a rollout in each environment (default 100)")
    parser.add_argument("--envs", type=int, default=16, help="environments (default 16)")
    parser.add_argument("--resample-every", type=int, default=4, help="episodes between resamples (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything (default 1)")
    parser.add_argument("--episodes", type=int, default=200, help="episodes of the evaluation (default 200)")
    parser.add_argument("--picture", help="where to write the learning curves, such as curves.png")
    options = parser.parse_args()

    began = time.monotonic()
    env = make_vector(options.envs, options.resample_every, options.seed)
    policies = make_policies(env, options.seed)
    before = evaluate(policies, options.episodes, seed=options.seed + 1)

    def report(number, returns):
        if (number + 1) % 5 == 0:
            row = "  ".join(f"{value:7.1f}" for value in returns)
            print(f"{time.monotonic() - began:5.0f} s  update {number + 1:4}  mean returns {row}")

    curves = train(policies, env, options.updates, options.steps, options.seed, report)
    env.close()
    after = evaluate(policies, options.episodes, seed=options.seed + 1)
    for policy in range(NUM_POLICIES):
        print(f"policy {policy}: mean return {before[policy]:.1f} untrained, {after[policy]:.1f} trained")
    if options.picture:
        draw_curves(curves, options.steps * options.envs, options.picture)
        print(f"saved the learning curves to {options.picture}")


if __name__ == "__main__":
    main()
