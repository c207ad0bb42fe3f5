"""Tests the Tianshou recipe: assignments equal the assigner's, and each policy learns from its own rows only."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

pytest.importorskip("tianshou")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import tianshou_recipe as recipe

AGENTS = ["player_1", "player_2"]


def test_each_policy_learns_from_its_own_rows(monkeypatch):
    learners, own = [], []
    update = recipe.DQN._update_with_batch

    def watched(self, batch):
        if self not in learners:
            learners.append(self)  # in the order of their indices
        own.append((learners.index(self), set(batch.policy.policy_id.tolist())))
        return update(self, batch)

    monkeypatch.setattr(recipe.DQN, "_update_with_batch", watched)
    payoff = pm.Payoff(len(recipe.NOISE))
    *_, played = recipe.train(payoff, iterations=2, steps=200, updates=3)
    assert own == [(policy, {policy}) for policy in [*range(recipe.RANDOM)] * 6]

    alone = pm.PolicyAssigner(len(recipe.NOISE), AGENTS, recipe.ENVS, resample_every=1, seed=recipe.SEED)
    alone.begin_episodes()  # the reset at construction
    expected, env = [], -1
    for row, agent in enumerate(played.obs.agent_id):
        if row % 100 == 0:  # the buffer holds one environment after the other
            env += 1
            now = alone.begin_episodes([env])[env].tolist()
        expected.append(now[AGENTS.index(agent)])
        if played.done[row]:
            now = alone.begin_episodes([env])[env].tolist()
    assert played.policy.policy_id.tolist() == expected
    assert (played.info.policy_id != played.policy.policy_id).any()  # the info belongs to the next agent to move
    assert payoff.games.sum() > 0


def test_rewards_of_last_moves_are_those_of_the_agent_that_moved(monkeypatch):
    ends = []
    update = recipe.DQN._update_with_batch

    def watched(self, batch):
        ends.extend(zip(batch.terminated, batch.rew, np.asarray(batch.returns).reshape(-1), strict=True))
        return update(self, batch)

    monkeypatch.setattr(recipe.DQN, "_update_with_batch", watched)
    list(recipe.train(pm.Payoff(len(recipe.NOISE)), iterations=1, steps=200, updates=2))
    over = [(reward, value) for terminated, reward, value in ends if terminated]
    assert over
    for reward, value in over:  # the last mover of a legal game has won or drawn it
        assert reward in (0, 1)
        assert value == pytest.approx(reward)
