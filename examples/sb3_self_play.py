"""Self-play with Stable-Baselines3: MaskablePPO learns connect four from a random player and snapshots of itself.

    python -m pip install '.[sb3]'
    python examples/sb3_self_play.py --picture win_rates.png   # under three minutes on two cores
    python examples/sb3_self_play.py --short                     # some seconds: it runs, and learns little

After every few rollouts the learner is kept as a snapshot. Whom it meets is drawn for every game, and so is who moves
first: a random player now and then, else a snapshot, by `pfsp` those that it does not beat yet, or by `latest` the
recent ones. In the end it plays all of them.
"""

import argparse
import io
import random
import time

import numpy as np
import torch
from matplotlib.figure import Figure
from pettingzoo.classic import connect_four_v3
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import pz_policymap as pm

LEARNER, RANDOM, FIRST_SNAPSHOT = range(3)
NUM_ENVS, STEPS = 8, 64  # a rollout is their product
RANDOM_SHARE = 0.25


class FourByFour(BaseFeaturesExtractor):
    """Looks at the board through windows of four by four, the size of all that wins."""

    def __init__(self, observation_space, channels=32):
        super().__init__(observation_space, features_dim=128)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(2, channels, kernel_size=4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(channels * 3 * 4, 128),
            torch.nn.ReLU(),
        )

    def forward(self, observations):
        """Returns the features of a batch of boards, which have their two players last."""
        return self.layers(observations.permute(0, 3, 1, 2))


def random_player(observation, agent, info):  # noqa: ARG001
    """Chooses among the legal moves, from the global generator, which `reset(seed=...)` fixes for opponents."""
    return random.choice(np.flatnonzero(observation["action_mask"]).tolist())  # noqa: S311


def game(opponents, payoff, mapping):
    """Connect four as the learner sees it, with every result in the ledger."""
    env = pm.wrap(connect_four_v3.raw_env(), mapping, resample_every=1)  # raw: masked moves need no checks
    return pm.LearnerEnv(pm.RecordResults(env, payoff), opponents, learner=LEARNER)


class SelfPlay(BaseCallback):
    """Keeps snapshots of the learner, and exchanges opponents and matchmaking between rollouts."""

    def __init__(self, payoff, opponents, rollouts_per_snapshot, matchmaking):
        super().__init__()
        self.payoff, self.opponents = payoff, opponents
        self.rollouts_per_snapshot, self.matchmaking = rollouts_per_snapshot, matchmaking
        self.rollouts, self.steps = 0, []

    def mapping(self):
        """Who plays the learner's opponent: random with its share, else a snapshot."""
        count = len(self.opponents) - 1
        rates = self.payoff.win_rates[LEARNER, FIRST_SNAPSHOT : FIRST_SNAPSHOT + count]
        snapshots = pm.pfsp(rates, floor=0.1) if self.matchmaking == "pfsp" else pm.latest(count)
        share = RANDOM_SHARE if count else 1.0
        return pm.Focal(pm.Fixed(LEARNER), pm.Weighted([0.0, share, *(1.0 - share) * snapshots]))

    def _on_rollout_start(self):
        if self.rollouts % self.rollouts_per_snapshot == 0 and self.rollouts:
            index = FIRST_SNAPSHOT + len(self.steps)
            self.payoff.grow(index + 1)
            # A trained policy cannot be deep-copied; saved and loaded, it is a new one.
            file = io.BytesIO()
            self.model.policy.save(file)
            file.seek(0)
            self.opponents[index] = MaskableActorCriticPolicy.load(file)
            self.steps.append(self.num_timesteps)
        self.rollouts += 1
        # In this process the environments share the dict; in others (SubprocVecEnv), this is how they get to know.
        self.training_env.env_method("set_policies", self.opponents)
        self.training_env.env_method("set_mapping", self.mapping())

    def _on_step(self):
        return True


def play(model, opponents, opponent, games):
    """Returns how often the learner beats an opponent, a draw being half a win, moving first in every other game."""
    payoff = pm.Payoff(max(opponents) + 1, prior=0.0)
    env = game(opponents, payoff, pm.Focal(pm.Fixed(LEARNER), pm.Fixed(opponent)))
    for number in range(games):
        seats = env.env.possible_agents[:: 1 if number % 2 else -1]
        matchup = dict(zip(seats, (LEARNER, opponent), strict=True))
        observation, _ = env.reset(seed=number, options={"policy_ids": matchup})
        over = False
        while not over:
            action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
            observation, _, over, _, _ = env.step(int(action))
    return payoff.win_rates[LEARNER, opponent], int(payoff.wins[LEARNER, opponent])


def draw(path, steps, rates, games, against_random):
    """Draws the learner's win rate against each snapshot, with twice the standard error."""
    rates = np.array(rates)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    errors = 2 * np.sqrt(rates * (1 - rates) / games)
    axes.errorbar(np.array(steps) / 1000, rates, errors, fmt="o-", capsize=3, color="C0", label="its snapshots")
    axes.axhline(against_random, color="C1", label="a random player")
    axes.axhline(0.5, color="0.6", linestyle=":", label="an equal")
    axes.set(xlabel="thousand steps at which the snapshot was taken", ylabel="win rate", ylim=(0.0, 1.03))
    axes.set_title(f"Connect four after self-play: the final learner against ... ({games} games each)")
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=150)


def main():
    """Trains, plays against everybody, and draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opponents", choices=["pfsp", "latest"], default="pfsp", help="how snapshots are chosen")
    parser.add_argument("--rollouts", type=int, default=100)
    parser.add_argument("--snapshot-every", type=int, default=10, help="rollouts")
    parser.add_argument("--games", type=int, default=200, help="against each opponent in the end")
    parser.add_argument("--picture", metavar="PATH", help="where to draw the win rates to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="three rollouts and ten games, to see that it runs")
    args = parser.parse_args()
    if args.short:
        args.rollouts, args.snapshot_every, args.games = 3, 1, 10
    torch.set_num_threads(1)  # small networks are faster so
    began = time.perf_counter()

    opponents, payoff = {RANDOM: random_player}, pm.Payoff(FIRST_SNAPSHOT, decay=0.98)
    self_play = SelfPlay(payoff, opponents, args.snapshot_every, args.opponents)
    envs = DummyVecEnv([lambda: game(opponents, payoff, self_play.mapping()) for _ in range(NUM_ENVS)])
    model = MaskablePPO(
        "MlpPolicy",
        VecMonitor(envs),
        n_steps=STEPS,
        batch_size=128,
        n_epochs=6,
        learning_rate=lambda left: 1e-3 * left,
        ent_coef=0.01,
        policy_kwargs={
            "features_extractor_class": FourByFour,
            "net_arch": [64],
            "activation_fn": torch.nn.ReLU,
        },
        seed=args.seed,
        device="cpu",
    )
    model.learn(args.rollouts * NUM_ENVS * STEPS, callback=self_play, progress_bar=True)
    print(f"learned for {model.num_timesteps} steps in {time.perf_counter() - began:.0f} s")

    rate, wins = play(model, opponents, RANDOM, args.games)
    print(f"against the random player: {wins} of {args.games} games won")
    snapshots = range(FIRST_SNAPSHOT, FIRST_SNAPSHOT + len(self_play.steps))
    rates = [play(model, opponents, snapshot, args.games)[0] for snapshot in snapshots]
    for steps, snapshot_rate in zip(self_play.steps, rates, strict=True):
        print(f"against itself after {steps:6} steps: win rate {snapshot_rate:.2f}")
    if args.picture:
        draw(args.picture, self_play.steps, rates, args.games, rate)
    print(f"done after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
