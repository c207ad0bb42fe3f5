"""Tests the TorchRL recipe: assignments equal the assigner's, and each policy learns from its own rows only."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import pz_policymap as pm

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import torchrl_recipe as recipe  # noqa: E402

AGENTS = ["agent_0", "agent_1", "agent_2"]


def test_each_network_learns_from_its_own_rows(monkeypatch):
    updates = []

    class WatchedLoss(recipe.objectives.ClipPPOLoss):
        def forward(self, own):
            policy = int(own[recipe.ID].unique())  # one policy, or an error
            updates.append((policy, {name: weight.detach().clone() for name, weight in self.named_parameters()}))
            return super().forward(own)

    monkeypatch.setattr(recipe.objectives, "ClipPPOLoss", WatchedLoss)
    batches = [batch[recipe.ID].clone() for batch in recipe.train(iterations=3, steps=100, epochs=2)]

    alone = pm.PolicyAssigner(recipe.POLICIES, AGENTS, resample_every=recipe.EVERY, seed=recipe.SEED)
    alone.begin_episodes()  # the reset at construction
    expected = torch.cat([torch.tensor(alone.begin_episodes()).expand(25, 3) for _ in range(12)])
    assert batches[0].dtype == torch.float32
    assert torch.equal(torch.cat(batches).long(), expected)

    assert [policy for policy, _ in updates] == [p for batch in batches for p in batch.unique().tolist() * 2]
    for (policy, before), (_, after) in pairwise(updates):
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        own = {name for name in before if re.search(r"\.(\d+)\.\d+\.(weight|bias)$", name)[1] == str(policy)}
        assert changed == own
        assert {name.split("_")[0] for name in own} == {"actor", "critic"}
