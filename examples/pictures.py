"""Draws the pictures of the README: assignments, win rates, ratings and shares.

Six scripted policies play connect four. Each pair meets equally often, in both seats.

    python examples/pictures.py [folder]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from mpe2 import simple_tag_v3
from pettingzoo.classic import connect_four_v3

import pz_policymap as pm

FOLDER = Path(__file__).parent / "pictures"
EPISODES = 60
CYCLES = 12  # of the tournament; one cycle plays each pair of policies in both seats
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def completes_four(stones, row, column):
    """Whether a stone at this place makes four in a row, given a boolean board of shape `(6, 7)`."""
    for down, right in DIRECTIONS:
        length = 1
        for sign in (1, -1):
            for distance in (1, 2, 3):
                r, c = row + sign * distance * down, column + sign * distance * right
                if not (0 <= r < 6 and 0 <= c < 7 and stones[r, c]):
                    break
                length += 1
        if length >= 4:
            return True
    return False


def winning_moves(board, side, columns):
    """Returns the columns in which a side (0: the one to move, 1: the other) would win at once."""
    heights = board.any(axis=-1).sum(axis=0)
    return [column for column in columns if completes_four(board[..., side], 5 - heights[column], column)]


def player(attacks=0.0, defends=0.0, order=None):
    """Returns a policy that wins or blocks with these probabilities, and else takes the first free column of `order`.

    Without an order it takes a random free column.
    """

    def act(observation, rng):
        board, columns = observation["observation"], np.flatnonzero(observation["action_mask"])
        for side, probability in enumerate((attacks, defends)):
            moves = winning_moves(board, side, columns) if rng.random() < probability else []
            if moves:
                return moves[0]
        if order is None:
            return rng.choice(columns)
        return next(column for column in order if column in columns)

    return act


PLAYERS = {
    "random": player(),
    "left": player(order=range(7)),
    "attacks": player(attacks=1.0),
    "defends": player(defends=1.0),
    "careless": player(attacks=0.7, defends=0.7),
    "careful": player(attacks=1.0, defends=1.0),
}


def tournament(cycles, seed=0):
    """Plays each pair of policies in both seats, once per cycle, and returns the ledger."""
    rng = np.random.default_rng(seed)
    policies = list(PLAYERS.values())
    payoff = pm.Payoff(len(policies))
    mapping = pm.RoundRobin(len(policies), self_matches=False)
    env = pm.wrap(connect_four_v3.env(), mapping, resample_every=1, seed=seed, env_index=0)
    env = pm.record_results(env, payoff)
    for _ in range(cycles * mapping.num_matchups(2)):
        env.reset()
        for _ in env.agent_iter():
            observation, _, termination, truncation, info = env.last()
            done = termination or truncation
            env.step(None if done else int(policies[info["policy_id"]](observation, rng)))
    return payoff


def draw_assignments(figure):
    """Draws the assignments of two mappings, one below the other."""
    agents = simple_tag_v3.parallel_env().possible_agents
    axes = figure.subplots(2, 1, sharex=True)
    mappings = {
        "Uniform(6)": pm.Uniform(6),
        "Focal(Fixed(0), Uniform([1, 2, 3, 4, 5]))": pm.Focal(pm.Fixed(0), pm.Uniform([1, 2, 3, 4, 5])),
    }
    for ax, (text, mapping) in zip(axes, mappings.items(), strict=True):
        policy_ids = pm.assignments(mapping, agents, seed=0, episode=range(EPISODES), resample_every=5)
        pm.plots.assignments(ax, policy_ids, agents, num_policies=6, resample_every=5, key=False)
        ax.set_title(text, loc="left", fontsize=10, family="monospace")
        ax.set_ylabel("")
    axes[0].set_xlabel("")


def draw_shares(figure, num_envs=8, blocks=5):
    """Draws the share of the seats that each policy controls: `Balanced` gives equal shares, `Uniform` does not."""
    counts = {}
    for name, mapping in {"Balanced": pm.Balanced(8, num_envs), "Uniform": pm.Uniform(8)}.items():
        env_index, episode = np.arange(num_envs), np.arange(blocks)[:, None]
        policy_ids = pm.assignments(mapping, range(4), seed=0, env_index=env_index, episode=episode, resample_every=1)
        counts[name] = np.bincount(policy_ids.ravel(), minlength=8)
    pm.plots.shares(figure.subplots(), counts)


def main(folder=FOLDER, cycles=CYCLES):
    """Plays the tournament and draws all pictures into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    payoff = tournament(cycles)
    pictures = {
        "assignments": ((9.0, 4.6), draw_assignments),
        "payoff": ((9.0, 4.6), lambda figure: pm.plots.payoff(figure.subplots(), payoff, PLAYERS)),
        "ratings": ((9.0, 3.0), lambda figure: pm.plots.ratings(figure.subplots(), payoff, PLAYERS)),
        "shares": ((9.0, 4.2), draw_shares),
    }
    for name, (size, draw) in pictures.items():
        figure = Figure(figsize=size, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # inches
        draw(figure)
        figure.savefig(folder / f"{name}.png", dpi=100, pil_kwargs={"optimize": True})
        print(folder / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:2])
