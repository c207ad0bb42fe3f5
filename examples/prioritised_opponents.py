"""Prioritised opponents: the strongest opponent is found in fewer games than with uniform opponents.

Twenty-four opponents of different strengths play a contest of strength and luck. The learner is as strong as the second
best. Only the ledger shows which opponent is the best. Prioritised fictitious self-play ("hard" weighting, AlphaStar)
spends most games on opponents that beat the learner.

    python examples/prioritised_opponents.py [picture.png]
"""

import sys
from typing import ClassVar

import numpy as np
from pettingzoo import ParallelEnv

import pz_policymap as pm

NUM_OPPONENTS = 24
STEP = 1.0  # of strength: one step ahead wins 73% of the games
LEARNER = NUM_OPPONENTS  # its policy; opponents are 0, 1, ...
MOST = 1000  # games in one search

WEIGHTINGS = {"hard": pm.pfsp, "uniform": np.ones_like}


class Contest(ParallelEnv):
    """A game of one step: the action of an agent is its strength, and the higher strength plus luck wins 1."""

    metadata: ClassVar = {"name": "contest_v0"}
    possible_agents: ClassVar = ["left", "right"]
    render_mode = None

    def __init__(self, seed):
        self.np_random = np.random.default_rng((seed, 1))

    def reset(self, seed=None, options=None):  # noqa: ARG002, D102
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions):  # noqa: D102
        luck = self.np_random.logistic()  # a lead of d wins 1 / (1 + exp(-d)) of the games
        won = 1.0 if actions["left"] + luck > actions["right"] else -1.0
        agents, self.agents = self.agents, []
        infos = {agent: {} for agent in agents}
        rewards = {"left": won, "right": -won}
        return dict.fromkeys(agents, 0), rewards, dict.fromkeys(agents, True), dict.fromkeys(agents, False), infos


def strongest(payoff):
    """Returns the strongest opponent if it leads by one standard error on both sides, else None."""
    rates, games = payoff.win_rates[LEARNER, :LEARNER], payoff.games[LEARNER, :LEARNER]
    errors = np.sqrt(rates * (1.0 - rates) / (games + 2.0 * payoff.prior + 1.0))  # of a Beta distribution
    best = int(rates.argmin())
    others = np.delete(rates - errors, best)
    return best if rates[best] + errors[best] < others.min() else None


def search(weighting, seed):
    """Plays the learner against weighted opponents until the strongest one is found.

    Returns the number of games against each opponent, from the weakest to the strongest.
    """
    strength = STEP * np.random.default_rng((seed, 0)).permutation(NUM_OPPONENTS)  # hidden from the search
    strengths = np.append(strength, STEP * (NUM_OPPONENTS - 2))
    payoff = pm.Payoff(NUM_OPPONENTS + 1)
    opponents = pm.Weighted(lambda: weighting(payoff.win_rates[LEARNER, :LEARNER]))
    mapping = pm.Focal(pm.Fixed(LEARNER), opponents)
    env = pm.record_results(pm.wrap(Contest(seed), mapping, resample_every=1, seed=seed), payoff)
    for _ in range(MOST):
        env.reset()
        env.step({agent: strengths[policy] for agent, policy in env.policy_ids.items()})
        if strongest(payoff) == strength.argmax():
            break
    return payoff.games[LEARNER, :LEARNER][np.argsort(strength)]


def compare(seeds):
    """Returns the number of games of each search by weighting, shape `(seeds, opponents)`."""
    return {name: np.array([search(weighting, seed) for seed in seeds]) for name, weighting in WEIGHTINGS.items()}


def draw(results, path):
    """Draws when the strongest opponent is found, and the games against each opponent."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # only for the picture: pip install matplotlib

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    last = max(games.sum(axis=1).max() for games in results.values())
    for (name, games), color, line in zip(results.items(), ["#0072B2", "#E69F00"], ["-", "--"], strict=True):
        needed = np.sort(games.sum(axis=1))
        found = needed[needed < MOST]
        known = np.arange(len(found) + 1) / len(needed)
        left.step([0, *found, last], [*known, known[-1]], line, where="post", color=color, label=name)
        right.plot(np.arange(1, NUM_OPPONENTS + 1), games.mean(axis=0), line, color=color, label=name)
    left.set(xlabel="games", ylabel="runs in which the strongest\nopponent is found", ylim=(0.0, 1.05))
    right.set(xlabel="opponent, from the weakest to the strongest", ylabel="games against it", ylim=(0.0, None))
    for axes, place in ((left, "lower right"), (right, "upper left")):
        axes.legend(title="opponents drawn", loc=place)
        axes.margins(x=0.01)
    figure.savefig(path, dpi=120)


def main(path=None, seeds=range(20)):
    """Compares both weightings, prints the number of games, and optionally draws a picture."""
    results = compare(seeds)
    for name, games in results.items():
        print(f"{name:<8} {games.sum(axis=1).mean():5.0f} games on average until the strongest opponent is found")
    if path:
        draw(results, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
