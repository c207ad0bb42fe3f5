"""Compares two choices of opponents in rock, paper, scissors: only one converges to the equilibrium.

A learner in NumPy estimates the value of each move, and prefers moves of high value. A snapshot joins its pool in each
generation. A learner that meets its latest snapshot only (pure self-play) cycles through the moves for ever. One that
meets the equilibrium of all snapshots, the rule "nash", approaches one third each, which cannot be exploited (double
oracle, McMahan et al. 2003; PSRO, Lanctot et al. 2017).

    python examples/rock_paper_scissors.py [picture.png]
"""

import sys

import numpy as np
from pettingzoo.classic import rps_v2

import pz_policymap as pm

MOVES = ["rock", "paper", "scissors"]
PAYS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # the row's move against the column's
OPPONENTS = {"equilibrium": "nash", "latest": lambda win_rates: np.eye(len(win_rates))[-1]}
GAMES = 10  # of each new snapshot against each other one, on average


class Learner:
    """Moves by a softmax of estimated values; every tenth move is random."""

    def __init__(self, rng):
        self.values, self.rng = np.array([1.0, 0.0, 0.0]), rng  # it begins with rock

    def strategy(self):
        """Returns the probability of each move."""
        weights = np.exp(self.values / 0.1)
        return weights / weights.sum()

    def learn(self, move, reward):
        """Moves the value of a move towards a reward."""
        self.values[move] += 0.1 * (reward - self.values[move])


def play(env, strategies, rng):
    """Plays a game of one move each, and returns policy -> (move, reward)."""
    env.reset()
    ids = env.policy_ids
    moves = {agent: int(rng.choice(3, p=strategies[policy])) for agent, policy in ids.items()}
    _, rewards, *_ = env.step(moves)
    return {policy: (moves[agent], rewards[agent]) for agent, policy in ids.items()}


def train(rule, generations=15, episodes=100, seed=0):
    """Returns the share of each move in the mixture of opponents, shape `(generations, 3)`."""
    rng = np.random.default_rng(seed)
    pool = pm.SnapshotPool([pm.PoolLearner("learner", {"snapshots": (1.0, rule)}, every=episodes)])
    payoff, learner = pm.Payoff(1, prior=0.1), Learner(rng)
    strategies = {0: None, pool.snapshot("learner", 0, payoff).policy_id: learner.strategy()}
    practice = pm.wrap(rps_v2.parallel_env(max_cycles=1), pool.mapping(payoff), resample_every=1, seed=(seed, 0))
    arena = pm.record_results(pm.wrap(rps_v2.parallel_env(max_cycles=1), 2, resample_every=1, seed=(seed, 1)), payoff)
    shares = []
    for step in range(1, generations * episodes + 1):
        strategies[0] = 0.9 * learner.strategy() + 0.1 / 3
        learner.learn(*play(practice, strategies, rng)[0])
        if pool.snapshot_due("learner", step, payoff):
            new = pool.snapshot("learner", step, payoff).policy_id
            strategies[new] = learner.strategy()
            others = pool.active()[:-1]
            arena.set_mapping(pm.Focal(pm.Fixed(new), pm.Uniform(others)), now=True)
            for _ in range(GAMES * len(others)):
                play(arena, strategies, rng)
            practice.set_mapping(pool.mapping(payoff))
            met = pool.opponent_weights("learner", payoff)
            shares.append(sum(met[policy] * strategies[policy] for policy in pool.active()))
    return np.array(shares)


def exploitability(shares):
    """Returns the gain of the best response to each row: 0 at the equilibrium, 1 against a single move."""
    return (shares @ PAYS.T).max(axis=1)


def draw(results, path):
    """Draws the shares of the moves and the exploitability over generations."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # only for the picture: pip install matplotlib

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots(2, len(results), sharex=True, sharey="row")
    for (above, below), (name, shares) in zip(axes.T, results.items(), strict=True):
        generations = np.arange(1, len(shares) + 1)
        bottom = np.zeros(len(shares))
        for move, color, hatch in zip(range(3), ["#0072B2", "#E69F00", "#BBBBBB"], ["", "//", ".."], strict=True):
            above.bar(generations, shares[:, move], 0.9, bottom, color=color, hatch=hatch, label=MOVES[move])
            bottom += shares[:, move]
        above.set_title(f"meeting the {name} " + ("snapshot" if name == "latest" else "of all snapshots"))
        below.plot(generations, exploitability(shares), "o-", color="black")
        below.set(xlabel="generation", xlim=(0.4, len(shares) + 0.6), xticks=generations, ylim=(-0.05, 1.1))
    axes[0, 0].set_ylabel("share of each move")
    axes[1, 0].set_ylabel("exploitability")
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=120)


def main(path=None):
    """Trains with both kinds of opponents, prints the final shares, and optionally draws a picture."""
    results = {name: train(opponents) for name, opponents in OPPONENTS.items()}
    for name, shares in results.items():
        ends = ", ".join(f"{move} {share:.2f}" for move, share in zip(MOVES, shares[-1], strict=True))
        print(f"{name:<12} {ends}   exploitability {exploitability(shares)[-1]:.3f}")
    if path:
        draw(results, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
