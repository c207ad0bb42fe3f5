"""VMAS: torch on the CPU, one flag per environment, and environments that the caller resets: `nox -s vmas`."""

from functools import partial

import numpy as np
import pytest

import pz_policymap as pm

torch = pytest.importorskip("torch")
vmas = pytest.importorskip("vmas")

AGENTS = ["agent_0", "agent_1", "agent_2"]
make = partial(vmas.make_env, "simple_spread", dict_spaces=True, terminated_truncated=True, seed=0)


def random_actions(generator, num_envs):
    return {agent: torch.rand(num_envs, 2, generator=generator) * 2 - 1 for agent in AGENTS}


@pytest.mark.parametrize("two_flags", [True, False])
def test_bare_and_wrapped_trajectories_are_identical_and_tags_change_at_every_reset(two_flags):
    played, settings = [], {"num_envs": 6, "max_steps": 5, "terminated_truncated": two_flags}
    bare = make(**settings)
    seen = []
    tagged = pm.wrap(make(**settings), 9, autoreset_mode="Disabled", seed=1)
    for env in (bare, pm.record_results(tagged, played.append)):
        generator = torch.Generator().manual_seed(0)
        wrapped = env is not bare
        values, episode = [], np.zeros(6, int)
        observations = env.reset(seed=3)
        values.append(observations[0] if wrapped else observations)
        for step in range(20):
            observations, rewards, *dones, infos = env.step(random_actions(generator, 6))
            values += [observations, rewards, dict(enumerate(dones))]
            over = torch.stack(dones).any(0)
            if step == 7:  # before its time is over
                over[2] = True
            for index in over.nonzero()[:, 0].tolist():
                outcome = env.reset_at(index)
                values.append(outcome[0] if wrapped else outcome)
                infos = outcome[1] if wrapped else infos
                episode[index] += 1
            if wrapped:
                drawn = pm.assignments(9, AGENTS, seed=1, env_index=range(6), episode=episode)
                assert env.policy_ids.tolist() == drawn.tolist()
                assert all(infos[a]["policy_id"].tolist() == drawn[:, s].tolist() for s, a in enumerate(AGENTS))
        seen.append(values)
    for left, right in zip(*seen, strict=True):
        assert left.keys() == right.keys()
        assert all(torch.equal(left[key], right[key]) for key in left)
    assert len(played) == 6 * 4 - 1  # one was interrupted
    assert {episode.lengths for episode in played} == {(5, 5, 5)}


def test_gymnasium_form_is_wrapped_with_its_own_actions():
    pytest.importorskip("shimmy")
    env = make(num_envs=4, max_steps=5, wrapper="gymnasium_vec", wrapper_kwargs={"return_numpy": False})
    env = pm.wrap(env, 9, autoreset_mode="Disabled", seed=1)
    assert isinstance(env, pm.PolicyMapMultiAgentVector)
    _, infos = env.reset(seed=0)
    assert infos["agent_1"]["policy_id"].tolist() == env.policy_ids[:, 1].tolist()
    assert env.step([torch.zeros(4, 2)] * 3)[-1]["agent_0"]["policy_id"].shape == (4,)


def test_list_form_is_refused_with_the_setting_that_helps():
    env = pm.wrap(make(num_envs=4, dict_spaces=False), 9, autoreset_mode="Disabled")
    with pytest.raises(TypeError, match="dict_spaces=True"):
        env.reset()


navigation = partial(
    vmas.make_env, "navigation", n_agents=3, collisions=False, shared_rew=False, dict_spaces=True, seed=0
)


class Population(torch.nn.Module):
    """The means of three Gaussian policies, each a small network."""

    def __init__(self):
        super().__init__()
        layers = [[torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)] for _ in range(3)]
        self.policies = torch.nn.ModuleList(torch.nn.Sequential(*each) for each in layers)


def mean_return(policies, num_envs, steps, seed):
    """Plays one episode in each environment with the means of the policies; the mean return of an agent."""
    env = pm.wrap(
        navigation(num_envs=num_envs), pm.Uniform(3), autoreset_mode="Disabled", seed=seed, episode_length=steps
    )
    observations, _ = env.reset(seed=seed)
    groups, total = pm.PolicyGroups(env.policy_ids), 0.0
    for _ in range(steps):
        rows = torch.stack([observations[agent] for agent in AGENTS], 1).flatten(0, 1)
        means = groups.act(policies, rows).clamp(-1, 1).view(num_envs, 3, 2)
        observations, rewards, *_ = env.step({agent: means[:, seat] for seat, agent in enumerate(AGENTS)})
        total += torch.stack([rewards[agent] for agent in AGENTS]).mean().item()
    return total


def test_population_of_three_learns_in_one_batch():
    """200 policy gradient updates; the return rises well above that of the same networks before training."""
    torch.manual_seed(0)
    num_envs, steps, population = 32, 20, Population()
    optimizers = [torch.optim.Adam(policy.parameters(), lr=0.01) for policy in population.policies]
    env = pm.wrap(navigation(num_envs=num_envs), pm.Uniform(3), autoreset_mode="Disabled", seed=0, episode_length=steps)
    with torch.no_grad():
        before = [mean_return(population.policies, 32, steps, seed) for seed in (100, 101, 102)]
    for number in range(200):
        observations, _ = env.reset(seed=0 if number == 0 else None)
        groups, log_probs, rewards_of = pm.PolicyGroups(env.policy_ids), [], []
        for _ in range(steps):
            rows = torch.stack([observations[agent] for agent in AGENTS], 1).flatten(0, 1)
            chosen = torch.distributions.Normal(groups.act(population.policies, rows), 0.3)
            actions = chosen.sample()
            log_probs.append(chosen.log_prob(actions).sum(1))
            moves = actions.clamp(-1, 1).view(num_envs, 3, 2)
            observations, rewards, *_ = env.step({agent: moves[:, seat] for seat, agent in enumerate(AGENTS)})
            rewards_of.append(torch.stack([rewards[agent] for agent in AGENTS], 1).flatten())
        returns = torch.stack(rewards_of)
        for step in reversed(range(steps - 1)):
            returns[step] += 0.8 * returns[step + 1]
        advantages = (returns - returns.mean(1, keepdim=True)) / (returns.std(1, keepdim=True) + 1e-6)
        gains = torch.stack(log_probs) * advantages
        losses = {policy: -gains[:, torch.as_tensor(rows)].mean() for policy, rows in groups}
        if number == 0:  # the rows of policy 0 have no gradient for the others
            others = [*population.policies[1].parameters(), *population.policies[2].parameters()]
            grads = torch.autograd.grad(losses[0], others, retain_graph=True, allow_unused=True)
            assert all(grad is None or not grad.any() for grad in grads)
        for optimizer in optimizers:
            optimizer.zero_grad()
        sum(losses.values()).backward()
        for policy in losses:
            optimizers[policy].step()
    with torch.no_grad():
        after = [mean_return(population.policies, 32, steps, seed) for seed in (100, 101, 102)]
    # Untrained, agents stay about as far from their goals (return 0); a mean distance of about 1 can be gained.
    assert min(after) > max(before) + 0.3, (before, after)
