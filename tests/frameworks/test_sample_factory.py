"""What Sample Factory promises, held against the published `AgentPolicyMapping` of sample-factory 2.1.1.

It pins gymnasium below 1.0 and NumPy below 2, so this runs in an environment of its own: `nox -s sample_factory`.
There this package is installed without its dependencies and does without PettingZoo.
"""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sample_factory.algo.utils.agent_policy_mapping import AgentPolicyMapping

from pz_policymap import ByEnvIndex, PolicyAssigner, Uniform

NUM_POLICIES = 4
EPISODES = 60
EARLY_REQUESTS = 5  # the published code draws at each of its first five requests


class Published:
    """The published mapping, asked as its actors ask it: once an agent at construction, once an agent at every done."""

    def __init__(self, num_agents: int, mix: bool, async_rl: bool = True) -> None:
        random.seed(0)  # it takes its seed from Python's global generator
        cfg = SimpleNamespace(
            num_policies=NUM_POLICIES,
            pbt_mix_policies_in_one_env=mix,
            async_rl=async_rl,
            num_workers=2,
            num_envs_per_worker=4,
        )
        self.num_agents = num_agents
        self.mapping = AgentPolicyMapping(cfg, SimpleNamespace(num_agents=num_agents))
        self.current = [-1] * num_agents

    def ask(self, agent: int, env_index: int = 0) -> bool:
        """Asks for one agent and returns whether that drew anew."""
        before = self.mapping.env_policies.get(env_index)
        self.current[agent] = self.mapping.get_policy_for_agent(agent, env_index, env_index)
        return self.mapping.env_policies.get(env_index) is not before

    def begin_episode(self) -> bool:
        drawn = [self.ask(agent) for agent in range(self.num_agents)]  # all are asked, whatever the first says
        return any(drawn)


def ours(num_agents: int, mix: bool) -> PolicyAssigner:
    agents = [f"agent_{i}" for i in range(num_agents)]
    return PolicyAssigner(Uniform(NUM_POLICIES, mix=mix), agents, resample_every=10, seed=0)


def begin_episode(assigner: PolicyAssigner) -> bool:
    assigner.begin_episodes()
    return bool(assigner.draw_episode[0] == assigner.episode[0])


@pytest.mark.parametrize("mix", [True, False])
@pytest.mark.parametrize("num_agents", [1, 2, 3, 5, 8])
def test_in_lockstep_both_resample_in_the_same_episodes_once_the_early_requests_are_over(num_agents, mix):
    published, assigner = Published(num_agents, mix), ours(num_agents, mix)
    theirs = [published.begin_episode() for _ in range(EPISODES)]
    mine = [begin_episode(assigner) for _ in range(EPISODES)]
    first_after_early = -(-EARLY_REQUESTS // num_agents)
    assert theirs[first_after_early:] == mine[first_after_early:]
    assert [e for e in range(EPISODES) if mine[e]] == list(range(0, EPISODES, 10))


def test_warmup_episodes_resample_early_as_the_published_code_does():
    published = Published(num_agents=2, mix=True)
    assigner = PolicyAssigner(NUM_POLICIES, ["a", "b"], resample_every=10, warmup_episodes=3, seed=0)
    assert [published.begin_episode() for _ in range(EPISODES)] == [begin_episode(assigner) for _ in range(EPISODES)]


def test_without_mixing_the_published_code_shows_two_policies_in_its_first_episodes_and_ours_never():
    published, assigner = Published(num_agents=4, mix=False), ours(4, mix=False)
    mixed = []
    for episode in range(EPISODES):
        published.begin_episode()
        if len(set(published.current)) > 1:
            mixed.append(episode)
        assert len(set(assigner.begin_episodes()[0].tolist())) == 1
    assert mixed
    assert set(mixed) <= {0, 1}  # five early requests of four agents


def test_without_mixing_the_published_code_shows_two_policies_where_agents_finish_at_different_times():
    rng = np.random.default_rng(0)
    published, assigner = Published(num_agents=2, mix=False), ours(2, mix=False)
    published.begin_episode()
    assigner.begin_episodes()
    steps, two_policies, left = 20_000, 0, [10, 10]
    for _ in range(steps):
        for agent in (0, 1):
            left[agent] -= 1
            if not left[agent]:  # each agent is asked for on its own whenever it is done
                published.ask(agent)
                left[agent] = int(rng.integers(5, 15))
        if rng.random() < 0.1:
            assigner.begin_episodes()
        two_policies += published.current[0] != published.current[1]
        assert len(set(assigner.policy_ids[0].tolist())) == 1
    share = two_policies / steps
    assert 0.02 < share < 0.5  # 7 to 23% were seen


def test_synchronous_mode_agrees_in_every_environment():
    published = Published(num_agents=2, mix=False, async_rl=False)
    assigner = PolicyAssigner(ByEnvIndex(NUM_POLICIES, num_envs=8), ["a", "b"], num_envs=8)
    for _ in range(3):
        theirs = [[published.mapping.get_policy_for_agent(agent, 0, env) for agent in (0, 1)] for env in range(8)]
        assert assigner.begin_episodes().tolist() == theirs


def test_here_the_package_needs_neither_pettingzoo_nor_a_new_gymnasium():
    assert "pettingzoo" not in sys.modules
