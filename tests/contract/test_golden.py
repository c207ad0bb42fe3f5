"""Compares assignments with a golden file: a recorded seed gives the same matchups in every later version.

If this test fails, the change under test is a breaking one: it reassigns the policies of runs that others have
published or want to resume. Add cases freely; change or remove one only with a new major version.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

GOLDEN = json.loads((Path(__file__).parent / "golden_assignments.json").read_text(encoding="utf-8"))
AGENTS = ["adversary_0", "adversary_1", "agent_0", "agent_1", "agent_2"]


def lottery(agents, draw):
    """Uses the generator as a user's function would; only its raw stream is guaranteed by NumPy."""
    words = draw.rng.bit_generator.random_raw(len(agents))
    return {agent: int(word) % 7 for agent, word in zip(agents, words, strict=True)}


RULES = {
    "Uniform(8)": pm.Uniform(8),
    "Uniform([3, 5, 9])": pm.Uniform([3, 5, 9]),
    "Uniform(8, mix=False)": pm.Uniform(8, mix=False),
    "Uniform(8, replace=False)": pm.Uniform(8, replace=False),
    "Weighted([0.5, 0.3, 0.0, 0.2])": pm.Weighted([0.5, 0.3, 0.0, 0.2]),
    "ByEnvIndex(3)": pm.ByEnvIndex(3),
    "FromFunction(lottery)": pm.FromFunction(lottery),
    "Shared(Uniform(8))": pm.Shared(pm.Uniform(8)),
    "Teams(Uniform(8))": pm.Teams(pm.Uniform(8)),
    "Roles(adversary, agent)": pm.Roles({"agent": pm.Uniform(4), "adversary": pm.Uniform([4, 5, 6])}),
    "Focal(Uniform([0, 1]), Uniform(8))": pm.Focal(pm.Uniform([0, 1]), pm.Uniform(8)),
    "Focal(Fixed(1), Weighted(matrix), 2, rotate=False)": pm.Focal(
        pm.Fixed(1), pm.Weighted([[1, 0, 0], [0.2, 0.3, 0.5]]), num_focal=2, rotate=False
    ),
    "PerWorker(9, 3, 4)": pm.PerWorker(9, policies_per_worker=3, envs_per_worker=4),
    "Balanced(5, 1001, weights)": pm.Balanced(5, num_envs=1001, weights=[0.5, 0.2, 0.1, 0.1, 0.1]),
    "RoundRobin(4, 1001)": pm.RoundRobin(4, num_envs=1001),
    "RoundRobin(9, 1001, seeded, no self-matches)": pm.RoundRobin(9, num_envs=1001, order="seeded", self_matches=False),
}
SEEDS = {"0": 0, "42": 42, "2**64 + 1": 2**64 + 1, "(1, 2)": [1, 2]}
ENV_INDICES = [0, 1, 1000, 2**40]  # the last one for mappings that span any number of environments
EPISODES = [0, 10, 2**32]


def assignments(rule, seed):
    """Returns the policies of every environment in every episode, one list each, in order."""
    indices = [i for i in ENV_INDICES if rule.num_envs is None or i < rule.num_envs]
    env_index, episode = np.repeat(indices, len(EPISODES)), np.tile(EPISODES, len(indices))
    return rule.assign(pm.Draw.at(seed, AGENTS, env_index, episode)).tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RULES)
def test_assignments_equal_the_golden_file(name, seed):
    assert assignments(RULES[name], SEEDS[seed]) == GOLDEN[name][seed]


def test_every_mapping_of_the_golden_file_is_tested():
    assert set(GOLDEN) == set(RULES)
