"""Compares two choices of opponents in rock, paper, scissors: only one converges to the equilibrium.

The population grows by one policy per generation. A learner tries all three moves against opponents drawn by the
package, and joins the population with its best move. Against the latest policy only (pure self-play) the moves cycle.
Against the equilibrium of all policies, `pm.nash(payoff.win_rates)`, they converge to one third each, which cannot be
exploited (double oracle, McMahan et al. 2003; PSRO, Lanctot et al. 2017).

    python examples/rock_paper_scissors.py [picture.png]
"""

import sys

import numpy as np
from pettingzoo.classic import rps_v2

import pz_policymap as pm

MOVES = ["rock", "paper", "scissors"]
PAYS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # the row's move against the column's

OPPONENTS = {
    "equilibrium": lambda payoff: pm.nash(payoff.win_rates),
    "latest": lambda payoff: pm.latest(payoff.num_policies, window=1, latest_ratio=1.0),
}


def play(env, moves):
    """Plays one episode in which policy p makes `moves[p]`, and returns the return of each policy."""
    _, infos = env.reset()
    ids = {agent: infos[agent]["policy_id"] for agent in env.agents}
    returns = dict.fromkeys(ids.values(), 0.0)
    while env.agents:
        _, rewards, *_ = env.step({agent: moves[ids[agent]] for agent in env.agents})
        for agent, reward in rewards.items():
            returns[ids[agent]] += reward
    return returns


def train(opponents, generations=12, episodes=60, seed=0):
    """Returns the share of each move, weighted by `opponents`, shape `(generations, 3)`."""
    payoff = pm.Payoff(num_policies=1, prior=0.1)  # one game between two moves is conclusive
    practice = pm.wrap(rps_v2.parallel_env(max_cycles=1), 1, resample_every=1, seed=(seed, 0))
    arena = pm.record_results(pm.wrap(rps_v2.parallel_env(max_cycles=1), 1, resample_every=1, seed=(seed, 1)), payoff)
    moves = [MOVES.index("rock")]
    shares = []
    for _ in range(generations):
        learner = len(moves)
        practice.set_mapping(pm.Focal(pm.Fixed(learner), pm.Weighted(opponents(payoff))), now=True)
        values = np.zeros(len(MOVES))
        for episode in range(episodes):
            tried = episode % len(MOVES)
            values[tried] += play(practice, [*moves, tried])[learner]
        moves.append(int(values.argmax()))

        payoff.grow(len(moves))
        arena.set_mapping(pm.Focal(pm.Fixed(learner), pm.Uniform(learner)), now=True)
        for _ in range(episodes // 3 * learner):
            play(arena, moves)
        shares.append(opponents(payoff) @ np.eye(len(MOVES))[moves])
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
        above.set_title(f"learning against the {name}" + (" policy" if name == "latest" else " of all policies"))
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
