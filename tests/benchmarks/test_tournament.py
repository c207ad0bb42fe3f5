"""Cost of a tournament game, compared with a handwritten loop over the raw environment."""

import time
import tracemalloc

import numpy as np
import pytest
from pettingzoo.classic import connect_four_v3, tictactoe_v3

import pz_policymap as pm
from tests.cli_bots import first_free

GAMES = 40
PLAYERS = {
    "random": ("random", "random"),
    "random against scripted": ("random", first_free),
    "scripted": (first_free,) * 2,
}


def bare(make, players):
    """Returns a function that plays games without this package, each seeded."""
    env = make()
    seeds = iter(range(10**9))

    def play():
        for game in range(GAMES):
            seed = next(seeds)
            env.reset(seed=seed)
            for seat, agent in enumerate(env.possible_agents):
                env.action_space(agent).seed(seed + seat)
            policies = dict(zip(env.possible_agents, players[:: 1 if game % 2 else -1], strict=True))
            returns = dict.fromkeys(env.possible_agents, 0.0)
            for agent in env.agent_iter():
                observation, reward, terminated, truncated, info = env.last()
                returns[agent] += reward
                if terminated or truncated:
                    action = None
                elif policies[agent] == "random":
                    action = env.action_space(agent).sample(observation["action_mask"])
                else:
                    action = policies[agent](observation, agent, info)
                env.step(action)

    return play


@pytest.mark.parametrize("players", PLAYERS)
@pytest.mark.parametrize("module", [tictactoe_v3, connect_four_v3])
def test_tournament_costs_at_most_twice_a_bare_loop(side_by_side, report, module, players):
    entrants = dict(zip("ab", PLAYERS[players], strict=True))

    def tournament():
        pm.tournament(module.raw_env, entrants, cycles=GAMES // 2)

    measured, reference = side_by_side(tournament, bare(module.raw_env, PLAYERS[players]), rounds=7)
    game = module.__name__.split(".")[-1]
    report(f"tournament, {game}, {players}", "a loop that seeds every game", measured / reference, 2.0, 3.0)


def test_two_workers_against_one(report):
    def speed(n_jobs):
        begun = time.perf_counter()
        pm.tournament(connect_four_v3.env, {"a": "random", "b": "random"}, cycles=1500, n_jobs=n_jobs)
        return 3000.0 / (time.perf_counter() - begun)

    speed(2)  # starts the workers
    ratio = float(np.median([speed(2) / speed(1) for _ in range(3)]))
    what = "tournament(n_jobs=2), games per second, on two idle cores"
    report(what, "n_jobs=1", ratio, 1.7, 0.0, more_is_better=True)  # other processes share the cores


def test_tournament_memory_is_flat(report, tmp_path):
    def held(cycles):
        tracemalloc.start()
        path = tmp_path / str(cycles)
        result = pm.tournament(tictactoe_v3.raw_env, {"a": first_free, "b": first_free}, cycles=cycles, results=path)
        most, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most, result

    held(10)
    per_game = (held(2000)[0] - held(200)[0]) / 3600
    report("bytes held per game of a tournament", "1", per_game, 100, 150)
