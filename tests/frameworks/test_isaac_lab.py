"""Isaac Lab's layout, by a stand-in for `DirectMARLEnv`: tensors, a shared `extras`, resets by `reset_buf`."""

import numpy as np
import pytest

import pz_policymap as pm

torch = pytest.importorskip("torch")
from tests.frameworks.isaac_lab import DirectMARLEnv  # noqa: E402

AGENTS = ["cart", "pendulum"]


def make(num_envs=8):
    return pm.wrap(DirectMARLEnv(num_envs), 9, autoreset_mode="SameStep", seed=1, resample_every=1)


def test_bare_and_wrapped_trajectories_are_identical_and_tags_change_when_it_resets():
    played, trajectories = [], []
    for env in (DirectMARLEnv(), pm.record_results(make(), played.append)):
        observations, _ = env.reset(seed=3)
        noise, seen, episode = torch.Generator().manual_seed(5), [observations], np.zeros(8, int)
        for _ in range(40):
            actions = {agent: torch.randn(8, 1, generator=noise) for agent in AGENTS}
            observations, rewards, terminated, time_outs, infos = env.step(actions)
            seen += [observations, rewards, terminated, time_outs]
            before = episode.copy()
            episode += env.unwrapped.reset_buf.numpy()
            if hasattr(env, "policy_ids"):
                tables = [
                    pm.assignments(9, AGENTS, seed=1, env_index=range(8), episode=each, resample_every=1)
                    for each in (before, episode)
                ]
                assert env.policy_ids.tolist() == tables[1].tolist()
                for seat, agent in enumerate(AGENTS):
                    assert infos[agent]["policy_id"].tolist() == tables[1][:, seat].tolist()
                    if (before != episode).any():
                        assert infos[agent]["final_info"]["policy_id"].tolist() == tables[0][:, seat].tolist()
        trajectories.append(seen)
    for left, right in zip(*trajectories, strict=True):
        assert all(torch.equal(left[agent], right[agent]) for agent in AGENTS)
    flags = [(seen[agent]) for seen in trajectories[0][3::4] for agent in AGENTS]
    assert any(flag.any() for flag in flags), "agents terminate one by one as well"
    assert len(played) == episode.sum() > 40
    assert env.unwrapped.extras == {agent: {} for agent in AGENTS}, "the dicts of the environment are not written to"


def test_agents_that_terminate_in_different_steps_do_not_end_the_episode():
    env = make(2)
    env.reset(seed=0)
    first = env.policy_ids
    far, still = torch.full((2, 1), 5.0), torch.zeros(2, 1)
    *_, terminated, _, _ = env.step({"cart": far, "pendulum": still})
    assert terminated["cart"].all()
    env.step({"cart": -far, "pendulum": far})
    assert env.policy_ids is first, "both have terminated once, but never in the same step"
    env.step({"cart": far, "pendulum": still})
    assert (env.policy_ids != first).any()


def test_population_of_three_learns_from_its_own_rows_only():
    """Each policy is one gain, actions = gain * (goal - position); gradients come from the rows that it controls."""
    env = pm.wrap(DirectMARLEnv(64), pm.Weighted([0.5, 0.5, 0]), autoreset_mode="SameStep", seed=0, resample_every=1)
    gains = [torch.zeros(1, requires_grad=True) for _ in range(3)]
    policies = [lambda rows, gain=gain: gain * (rows[:, 1:] - rows[:, :1]) for gain in gains]
    observations, _ = env.reset(seed=0)
    losses = []
    for number in range(200):
        groups = pm.PolicyGroups(env.policy_ids)
        rows = torch.stack([observations[agent] for agent in AGENTS], 1).flatten(0, 1)
        actions = groups.act(policies, rows)
        missed = (rows[:, :1] + actions - rows[:, 1:]).square()[:, 0]
        loss = {policy: missed[torch.as_tensor(own)].mean() for policy, own in groups}
        if number == 0:
            assert torch.autograd.grad(loss[0], gains[1], retain_graph=True, allow_unused=True)[0] == 0
        sum(loss.values()).backward()
        with torch.no_grad():
            for gain in gains[:2]:
                gain.sub_(0.05 * gain.grad)
                gain.grad = None
        moves = actions.detach().view(64, 2, 1)
        observations, *_ = env.step({agent: moves[:, seat] for seat, agent in enumerate(AGENTS)})
        losses.append(missed.mean().item())
    assert losses[-1] < 0.1 * losses[0]
    assert all(abs(gain.item() - 1) < 0.3 for gain in gains[:2])
    assert gains[2].item() == 0
