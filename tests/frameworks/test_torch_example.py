"""Tests that the PyTorch example learns, each policy from its own rows only."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

torch = pytest.importorskip("torch")
image = pytest.importorskip("matplotlib.image")

EXAMPLES = Path(__file__).parents[2] / "examples"
SEED, ENVS, STEPS, EVERY = 3, 6, 60, 2
EPISODE = 25  # steps; every episode is truncated


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLES))
    import train_population_ppo

    sys.path.remove(str(EXAMPLES))
    torch.set_num_threads(1)
    return train_population_ppo


@pytest.fixture
def env(example):
    env = example.make_vector(ENVS, EVERY, SEED)
    yield env
    env.close()


def whose(first_step, steps):
    """Returns the policy of each row at each step, from the draws alone, shape `(steps, rows)`."""
    rows = []
    for step in range(first_step, first_step + steps):
        episode = step // EPISODE // EVERY * EVERY
        draw = pm.Draw.at(SEED, ["speaker_0", "listener_0"], range(ENVS), [episode] * ENVS, EVERY)
        rows.append(pm.Uniform(4).assign(draw).reshape(-1))
    return np.array(rows)


def test_environments_have_distinct_indices_and_mix_policies(example, env):
    assert [pm.find_assigner(one).env_index for one in env.vec_envs] == list(range(ENVS))
    player = example.Player(env, example.make_policies(env, SEED), SEED)
    ids = player.rollout(8 * EPISODE).policy_ids.numpy()
    assert (ids == whose(0, 8 * EPISODE)).all()
    pairs = ids.reshape(-1, ENVS, 2)
    assert (pairs[..., 0] != pairs[..., 1]).any(axis=0).all()  # every environment mixed two policies
    assert len({tuple(pairs[:, one].reshape(-1)) for one in range(ENVS)}) == ENVS


def test_updates_use_own_rows_only(example, env, monkeypatch):
    policies = example.make_policies(env, SEED)
    rollouts, updates = [], []
    rollout, update = example.Player.rollout, example.update

    def keep(player, steps):
        rollouts.append(rollout(player, steps))
        return rollouts[-1]

    def look(policy, batch):
        index = next(i for i, other in enumerate(policies) if other is policy)
        number = len(rollouts) - 1
        own = whose(number * STEPS, STEPS) == index
        for name in example.Experience._fields:
            assert torch.equal(getattr(batch, name), getattr(rollouts[-1], name)[torch.as_tensor(own)]), name
        with torch.no_grad():  # the policy itself took these actions
            taken = [other.choice(batch.observations).log_prob(batch.actions) for other in policies]
        assert torch.allclose(taken[index], batch.log_probs, atol=1e-4)
        if number:  # the policies differ after the first update
            assert not any(torch.allclose(t, batch.log_probs, atol=1e-4) for t in taken[:index] + taken[index + 1 :])
        before = [[parameter.clone() for parameter in other.parameters()] for other in policies]
        update(policy, batch)
        for other, parameters in zip(policies, before, strict=True):
            same = all(map(torch.equal, other.parameters(), parameters))
            assert same == (other is not policy)
        updates.append((number, index, int(own.sum())))

    monkeypatch.setattr(example.Player, "rollout", keep)
    monkeypatch.setattr(example, "update", look)
    example.train(policies, env, updates=4, steps=STEPS, seed=SEED)
    assert [(number, index) for number, index, _ in updates] == [(n, i) for n in range(4) for i in range(4)]
    assert sum(count for *_, count in updates) == 4 * STEPS * 2 * ENVS  # no row is left out


def test_advantages_use_values_of_the_acting_policy(example, env):
    """Compares with GAE computed from its definition, row by row, without bootstrapping over an end."""
    policies = example.make_policies(env, SEED)
    for index, policy in enumerate(policies):  # the value of policy i is 10 * i, so values identify policies
        torch.nn.init.zeros_(policy.value.weight)
        torch.nn.init.constant_(policy.value.bias, 10.0 * index)
    player = example.Player(env, policies, SEED)
    played, step = [], player.step

    def keep():
        played.append(step())
        return played[-1]

    player.step = keep
    experience = player.rollout(STEPS)
    ids = whose(0, STEPS + 1)
    for row in range(2 * ENVS):
        advantage = 0.0
        for t in reversed(range(STEPS)):
            over = (t + 1) % EPISODE == 0
            reward = float(played[t][5][row])  # at an end, it includes the value of the last observation
            after = 0.0 if over else 10.0 * ids[t + 1, row]
            delta = reward + 0.95 * after - 10.0 * ids[t, row]
            advantage = delta + (0.0 if over else 0.95 * 0.95 * advantage)
            assert float(experience.advantages[t, row]) == pytest.approx(advantage, rel=1e-3, abs=1e-3)


def test_all_policies_improve(example):
    env = example.make_vector(16, resample_every=4, seed=1)
    policies = example.make_policies(env, seed=1)
    before = example.evaluate(policies, episodes=200, seed=2)
    curves = example.train(policies, env, updates=25, steps=100, seed=1)
    after = example.evaluate(policies, episodes=200, seed=2)
    env.close()
    assert curves.shape == (4, 25)
    assert after.min() > before.max() + 8, (before, after)  # measured: 13


def test_short_run_draws_all_curves(tmp_path):
    picture = tmp_path / "curves.png"
    short = ["--updates=3", "--steps=50", "--envs=8", "--resample-every=1", "--episodes=20"]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / "train_population_ppo.py"), *short, f"--picture={picture}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split(":")[0] for line in run.stdout.splitlines() if "trained" in line] == [
        f"policy {policy}" for policy in range(4)
    ]
    pixels = image.imread(picture)[..., :3]
    from matplotlib import colormaps

    for policy in range(4):
        colour = np.array(colormaps["viridis"](policy / 4)[:3])
        assert (np.abs(pixels - colour).max(axis=-1) < 0.02).sum() > 100, policy
