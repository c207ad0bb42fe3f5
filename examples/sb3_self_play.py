"""Self-play with Stable-Baselines3: MaskablePPO learns connect four against snapshots of itself.

    python -m pip install '.[sb3]'
    python examples/sb3_self_play.py --picture win_rates.png   # under three minutes on two cores
    python examples/sb3_self_play.py --short                     # some seconds: it runs, and learns little

A snapshot of the learner joins the opponents every few rollouts. Opponent and seats are resampled for each game: one of
two simple policies, or a snapshot, chosen by `pfsp` (those not beaten yet) or `latest` (recent ones). At the end the
learner plays against all opponents. With `--folder run`, a run that was stopped continues.
"""

import argparse
import random
import time
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from pettingzoo.classic import connect_four_v3
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import pz_policymap as pm
from pz_policymap.adapters.stable_baselines3 import SelfPlay, SelfPlayEnv

LEARNER, RANDOM, GREEDY, FIRST_SNAPSHOT = range(4)  # policy ids
SHARES = {"random": 0.2, "greedy": 0.4, "snapshots": 0.4}  # of the games
NUM_ENVS, STEPS = 8, 128  # a rollout is their product

CELLS = np.arange(42).reshape(6, 7)  # row by row from the top
LINES = np.array(
    [
        [CELLS[row + i * down, column + i * right] for i in range(4)]
        for down, right in ((0, 1), (1, 0), (1, 1), (-1, 1))
        for row in range(6)
        for column in range(7)
        if 0 <= row + 3 * down < 6 and column + 3 * right < 7
    ]
)


class Lines(BaseFeaturesExtractor):
    """Features: the stones, and per column the lines in which a stone would be the third or fourth of a player.

    Lines with stones of both players do not count. A network could learn this with more time.
    """

    def __init__(self, observation_space):
        super().__init__(observation_space, features_dim=2 * CELLS.size + 2 * 2 * 7)
        through = np.zeros((len(LINES), CELLS.size), np.float32)
        np.put_along_axis(through, LINES, 1.0, axis=1)
        self.register_buffer("through", torch.as_tensor(through))  # cells of each line

    def forward(self, boards):
        """Returns the features of a batch of boards, `(batch, 6, 7, 2)`, with one channel per player last."""
        stones = boards.flatten(1, 2).transpose(1, 2)
        counts = stones @ self.through.T
        alone = counts * (counts.flip(1) == 0)
        taken = stones.sum(1, keepdim=True)
        below = torch.cat([taken[..., 7:], torch.ones_like(taken[..., :7])], dim=-1)
        here = below * (1 - taken)  # the one cell of each column where a stone would fall
        chances = [(alone == count).float() @ self.through * here for count in (2, 3)]
        columns = [chance.unflatten(-1, (6, 7)).sum(-2) for chance in chances]
        return torch.cat([stones.flatten(1), *(column.flatten(1) for column in columns)], dim=1)


def random_player(observation, agent, info):
    """Returns a random legal move, from the global generator that `reset(seed=...)` seeds for opponents."""
    return random.choice(np.flatnonzero(observation["action_mask"]).tolist())  # noqa: S311


def greedy_player(observation, agent, info):
    """Completes a line of four if possible, else moves at random."""
    mine, theirs = np.moveaxis(observation["observation"], -1, 0).astype(bool)
    for column in np.flatnonzero(observation["action_mask"]):
        stones = mine.copy()
        stones[6 - np.count_nonzero((mine | theirs)[:, column]) - 1, column] = True
        if stones.reshape(-1)[LINES].all(axis=1).any():
            return int(column)
    return random_player(observation, agent, info)


def game(mapping, policies):
    """Returns connect four as a single-agent environment for the learner."""
    env = connect_four_v3.raw_env()  # raw: masked actions need no checks
    return SelfPlayEnv(pm.wrap(env, mapping, resample_every=1), policies)


def train(matchmaking="pfsp", rollouts=40, snapshot_every=4, seed=0, folder=None):
    """Returns the learner and its self-play, which holds the opponents."""
    rule = partial(pm.pfsp, floor=0.1) if matchmaking == "pfsp" else "latest"
    learner = pm.PoolLearner("learner", SHARES, rule, every=snapshot_every * NUM_ENVS * STEPS)
    pool = pm.SnapshotPool([learner], fixed=["random", "greedy"])
    payoff = pm.Payoff(pool.num_policies, decay=0.98)
    self_play = SelfPlay(pool, payoff, {"random": random_player, "greedy": greedy_player}, folder=folder)
    envs = VecMonitor(DummyVecEnv([partial(game, pool.last_mapping, self_play.policies)] * NUM_ENVS))
    if self_play.saved:
        model = self_play.resume(MaskablePPO, envs)
    else:
        model = MaskablePPO(
            "MlpPolicy",
            envs,
            n_steps=STEPS,
            batch_size=256,
            n_epochs=10,
            learning_rate=lambda left: 2e-3 * left,
            ent_coef=0.005,
            gamma=0.97,
            policy_kwargs={"features_extractor_class": Lines, "net_arch": [64], "activation_fn": torch.nn.ReLU},
            seed=seed,
            device="cpu",
        )
    left = rollouts * NUM_ENVS * STEPS - model.num_timesteps
    model.learn(left, callback=self_play, reset_num_timesteps=False, progress_bar=True)
    return model, self_play


def play(model, opponents, opponent, games):
    """Returns the number of games won and drawn; the learner moves first in every other game."""
    env = game(pm.Focal(pm.Fixed(LEARNER), pm.Fixed(opponent)), opponents)
    payoff = pm.Payoff(opponent + 1)
    for number in range(games):
        seats = env.env.possible_agents[:: 1 if number % 2 else -1]
        matchup = dict(zip(seats, (LEARNER, opponent), strict=True))
        observation, _ = env.reset(seed=number, options={"policy_ids": matchup})
        over = False
        while not over:
            action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
            observation, _, over, _, _ = env.step(int(action))
    for episode in env.take_episodes():
        payoff.record(episode)
    return int(payoff.wins[LEARNER, opponent]), int(payoff.draws[LEARNER, opponent])


def draw(path, steps, rates, games):
    """Draws the win rate of the learner against each opponent, with two standard errors for snapshots.

    Args:
        path: Path of the picture.
        steps: Number of steps before each snapshot.
        rates: Win rate against each opponent, the random one first.
        games: Number of games against each opponent.
    """
    random_rate, greedy_rate, *snapshots = rates
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    apart = max(0.0, 0.02 - (random_rate - greedy_rate) / 2)  # so that the labels do not overlap
    for name, rate, style, shift in (
        ("a random player", random_rate, "--", apart),
        ("a greedy player", greedy_rate, "-.", -apart),
        ("an equal", 0.5, ":", 0.0),
    ):
        axes.axhline(rate, color="#8c8c8c", linewidth=1.2, linestyle=style)
        text = f"{name}, {rate:.2f}"
        axes.annotate(text, (1.01, rate + shift), xycoords=("axes fraction", "data"), va="center", color="#595959")
    spread = 2.0 * np.sqrt(np.multiply(snapshots, np.subtract(1.0, snapshots)) / games)
    axes.errorbar(np.divide(steps, 1000), snapshots, spread, fmt="o-", color="#1f55a8", linewidth=2, elinewidth=1.3)
    axes.set(xlabel="steps of the snapshot, in thousands", ylabel="win rate of the final learner")
    axes.set_ylim(min(0.4, *rates), 1.015)
    axes.set_title("Connect four: the final learner against its snapshots", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=125)


def main():
    """Trains, plays against all opponents, and optionally draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opponents", choices=["pfsp", "latest"], default="pfsp", help="how snapshots are chosen")
    parser.add_argument("--games", type=int, default=200, help="number of games against each opponent at the end")
    parser.add_argument("--folder", help="where the run is saved, to resume it")
    parser.add_argument("--picture", metavar="PATH", help="path of a picture of the win rates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="three rollouts and ten games, for a quick test")
    args = parser.parse_args()
    torch.set_num_threads(1)  # faster for small networks, as are unchecked distributions
    torch.distributions.Distribution.set_default_validate_args(False)
    began = time.perf_counter()

    length = {"rollouts": 3, "snapshot_every": 1} if args.short else {}
    games = 10 if args.short else args.games
    model, self_play = train(args.opponents, seed=args.seed, folder=args.folder, **length)
    print(f"trained for {model.num_timesteps} steps in {time.perf_counter() - began:.0f} s")
    members, rates = self_play.pool.members[RANDOM:], []
    for member in members:
        wins, draws = play(model, self_play.policies, member.policy_id, games)
        rates.append((wins + draws / 2) / games)
        print(f"against {member.name}: {wins} of {games} games won, {draws} drawn")
    if args.picture:
        draw(args.picture, [member.step for member in members[GREEDY:]], rates, games)
    print(f"finished after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
