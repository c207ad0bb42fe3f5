"""Tests the AgileRL recipe: assignments equal the assigner's, and each policy learns from its own rows only."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

pytest.importorskip("agilerl")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import agilerl_recipe as recipe

AGENTS = ["agent_0", "agent_1", "agent_2"]


def test_each_policy_learns_from_its_own_rows(monkeypatch):
    seen = {policy: [] for policy in range(recipe.POLICIES)}
    learned = dict.fromkeys(seen, 0)
    act, learn = recipe.DQN.get_action, recipe.DQN.learn

    def watched_act(self, rows, **settings):
        seen[self.index].extend(np.array(rows))
        return act(self, rows, **settings)

    def watched_learn(self, experiences):
        own = np.array(seen[self.index], dtype=np.float32)
        for row in experiences["obs"].numpy():
            assert (own == row).all(axis=1).any()
        learned[self.index] += 1
        return learn(self, experiences)

    monkeypatch.setattr(recipe.DQN, "get_action", watched_act)
    monkeypatch.setattr(recipe.DQN, "learn", watched_learn)
    episodes = list(recipe.train(episodes=6, updates=2))

    alone = pm.PolicyAssigner(recipe.POLICIES, AGENTS, resample_every=recipe.EVERY, seed=recipe.SEED)
    expected = [alone.begin_episodes()[0].tolist() for _ in range(6)]
    assert [list(played.values()) for played, *_ in episodes] == expected
    for policy, buffer in enumerate(episodes[-1][-1]):
        assert len(buffer) == len(seen[policy]) == 25 * sum(seats.count(policy) for seats in expected)
        assert learned[policy] == 2 * sum(policy in seats for seats in expected)
