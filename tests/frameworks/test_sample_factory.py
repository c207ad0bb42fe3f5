"""Compares the adapter with the published `AgentPolicyMapping` of sample-factory 2.1.1.

It pins gymnasium below 1.0 and NumPy below 2, so this runs in an environment of its own: `nox -s sample_factory`.
There this package is installed without its dependencies and does without PettingZoo.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sample_factory.algo.utils.agent_policy_mapping import AgentPolicyMapping

import pz_policymap as pm
from pz_policymap import ByEnvIndex, PolicyAssigner, Uniform
from pz_policymap.adapters import sample_factory as adapter

NUM_POLICIES = 4
EPISODES = 60
EARLY_REQUESTS = 5  # the published code draws at each of its first five requests


class Published:
    """The published mapping, called as by its actors: once per agent at construction, then at every done."""

    def __init__(self, num_agents: int, mix: bool, async_rl: bool = True) -> None:
        random.seed(0)  # it uses Python's global generator
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
        """Requests the policy of one agent and returns whether that resampled."""
        before = self.mapping.env_policies.get(env_index)
        self.current[agent] = self.mapping.get_policy_for_agent(agent, env_index, env_index)
        return self.mapping.env_policies.get(env_index) is not before

    def begin_episode(self) -> bool:
        drawn = [self.ask(agent) for agent in range(self.num_agents)]  # no short circuit
        return any(drawn)


def ours(num_agents: int, mix: bool) -> PolicyAssigner:
    agents = [f"agent_{i}" for i in range(num_agents)]
    return PolicyAssigner(Uniform(NUM_POLICIES, mix=mix), agents, resample_every=10, seed=0)


def begin_episode(assigner: PolicyAssigner) -> bool:
    assigner.begin_episodes()
    return bool(assigner.draw_episode[0] == assigner.episode[0])


@pytest.mark.parametrize("mix", [True, False])
@pytest.mark.parametrize("num_agents", [1, 2, 3, 5, 8])
def test_agents_in_lockstep_resample_in_the_same_episodes_after_the_early_requests(num_agents, mix):
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


def test_without_mixing_first_episodes_of_the_published_code_mix_policies():
    published, assigner = Published(num_agents=4, mix=False), ours(4, mix=False)
    mixed = []
    for episode in range(EPISODES):
        published.begin_episode()
        if len(set(published.current)) > 1:
            mixed.append(episode)
        assert len(set(assigner.begin_episodes()[0].tolist())) == 1
    assert mixed
    assert set(mixed) <= {0, 1}  # five early requests of four agents


def test_without_mixing_uneven_ends_in_the_published_code_mix_policies():
    rng = np.random.default_rng(0)
    published, assigner = Published(num_agents=2, mix=False), ours(2, mix=False)
    published.begin_episode()
    assigner.begin_episodes()
    steps, two_policies, left = 20_000, 0, [10, 10]
    for _ in range(steps):
        for agent in (0, 1):
            left[agent] -= 1
            if not left[agent]:  # one request per agent whenever it is done
                published.ask(agent)
                left[agent] = int(rng.integers(5, 15))
        if rng.random() < 0.1:
            assigner.begin_episodes()
        two_policies += published.current[0] != published.current[1]
        assert len(set(assigner.policy_ids[0].tolist())) == 1
    share = two_policies / steps
    assert 0.02 < share < 0.5  # measured: 7 to 23%


def test_synchronous_mode_agrees_in_every_environment():
    published = Published(num_agents=2, mix=False, async_rl=False)
    assigner = PolicyAssigner(ByEnvIndex(NUM_POLICIES, num_envs=8), ["a", "b"], num_envs=8)
    for _ in range(3):
        theirs = [[published.mapping.get_policy_for_agent(agent, 0, env) for agent in (0, 1)] for env in range(8)]
        assert assigner.begin_episodes().tolist() == theirs


SEED = 7


def config(**changes):
    """Returns a configuration with the entries that mappings read."""
    settings = {"num_policies": NUM_POLICIES, "seed": SEED, "async_rl": True, "batched_sampling": False, "rollout": 16}
    settings |= {"num_workers": 2, "num_envs_per_worker": 4, "pbt_mix_policies_in_one_env": True}
    return SimpleNamespace(**settings | changes)


def ours_there(mapping=None, num_agents=2, resample_every=10, agents=None, **changes):
    """Returns our mapping, constructed as by the framework."""
    env_info = SimpleNamespace(num_agents=num_agents)
    return adapter.AgentPolicyMapping(
        config(**changes), env_info, mapping, resample_every=resample_every, agents=agents
    )


def drawn(mapping, env_index, episode, num_agents=2, resample_every=10, agents=None):
    """Returns the assignment of an environment in an episode, from the draw alone, without an assigner."""
    names = range(num_agents) if agents is None else agents
    first = episode // resample_every * resample_every
    draw = pm.Draw.at(SEED, names, [env_index], [first], resample_every)
    return mapping.assign(draw)[0].tolist()


MAPPINGS = {
    "uniform": Uniform(NUM_POLICIES),
    "unmixed": Uniform(NUM_POLICIES, mix=False),
    "weighted": pm.Weighted([0.4, 0.3, 0.2, 0.1]),
    "focal": pm.Focal(pm.Fixed(0), Uniform([1, 2, 3])),
    "teams": pm.Teams(Uniform(NUM_POLICIES), {0: "a", 1: "b", 2: "a"}),
    "balanced": pm.Balanced(NUM_POLICIES, num_envs=8),
    "per worker": pm.PerWorker(NUM_POLICIES, policies_per_worker=2, envs_per_worker=4),
    "function": pm.FromFunction(lambda agents, draw: {a: int(draw.rng.integers(NUM_POLICIES)) for a in agents}),
    "by env index": ByEnvIndex(NUM_POLICIES, num_envs=8),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_requests_per_agent_return_one_draw_per_environment(name):
    mapping, policies = MAPPINGS[name], ours_there(MAPPINGS[name], num_agents=3, resample_every=4)
    rng, episode = np.random.default_rng(0), [0] * 8
    for _ in range(200):
        env = int(rng.integers(8))  # environments end in any order
        order = rng.permutation(3).tolist()  # and so do their agents
        asked = {agent: policies.get_policy_for_agent(agent, env % 4, env) for agent in order}
        assert [asked[agent] for agent in range(3)] == drawn(mapping, env, episode[env], 3, 4)
        episode[env] += 1
    assert min(episode) > 8


def test_agents_with_uneven_ends_join_the_first_agents_episode():
    episode_of = pm.FromFunction(lambda agents, draw: dict.fromkeys(agents, draw.episode))
    policies = ours_there(episode_of, resample_every=1, num_policies=100)
    asked = [(agent, policies.get_policy_for_agent("ab".index(agent), 0, 0)) for agent in "abbaaabbab"]
    # A capital letter begins an episode of the environment: A b, B a, A, A b, B a, B.
    assert asked == [*zip("abbaaabbab", [0, 0, 1, 1, 2, 3, 3, 4, 4, 5], strict=True)]


def steps_with_two_policies(ask, steps=20_000):
    """Returns the share of steps with two policies, for two agents with episodes of 5 to 14 steps each."""
    rng, left = np.random.default_rng(0), [10, 10]
    current = [ask(agent) for agent in (0, 1)]
    differ = 0
    for _ in range(steps):
        for agent in (0, 1):
            left[agent] -= 1
            if not left[agent]:
                current[agent] = ask(agent)
                left[agent] = int(rng.integers(5, 15))
        differ += current[0] != current[1]
    return differ / steps


def test_without_mixing_two_draws_coexist_for_at_most_one_episode():
    """3 of 4 changes differ. Agents that were counted separately would drift apart: 3 of 4 steps."""
    policies, mapping = ours_there(Uniform(NUM_POLICIES, mix=False)), Uniform(NUM_POLICIES, mix=False)
    episodes = [-1, -1]

    def counted_by_agent(agent):
        episodes[agent] += 1
        return drawn(mapping, 0, episodes[agent])[agent]

    together = steps_with_two_policies(lambda agent: policies.get_policy_for_agent(agent, 0, 0))
    assert 0 < together < 0.08  # half an episode on average in every ten: 0.05 * 3/4, with a margin
    assert steps_with_two_policies(counted_by_agent) > 3 * together


def sequence(policies, episodes=40):
    return [[policies.get_policy_for_agent(agent, 0, 3) for agent in (0, 1)] for _ in range(episodes)]


def test_seed_of_the_configuration_pins_assignments():
    once, again, other = (sequence(ours_there(Uniform(NUM_POLICIES), seed=seed)) for seed in (1, 1, 2))
    assert once == again != other


def test_without_a_seed_runs_differ():
    once, again = (sequence(ours_there(Uniform(1000), seed=None, num_policies=1000)) for _ in range(2))
    assert once != again


def test_env_idx_of_the_runner_is_ignored():
    policies = ours_there(Uniform(1000), num_policies=1000)
    asked = [[policies.get_policy_for_agent(agent, 0, env) for agent in (0, 1)] for env in range(8)]
    assert asked == [drawn(Uniform(1000), env, 0) for env in range(8)]
    assert len({tuple(pair) for pair in asked}) == 8


@pytest.mark.parametrize("mix", [True, False])
def test_default_mapping_is_that_of_the_published_class(mix):
    assert ours_there(pbt_mix_policies_in_one_env=mix).mapping == Uniform(NUM_POLICIES, mix=mix)


def test_default_mapping_in_synchronous_mode_is_the_published_one():
    published, mine = Published(2, mix=True, async_rl=False).mapping, ours_there(async_rl=False)
    for env in [*range(8), *range(8)]:
        for agent in (0, 1):
            assert mine.get_policy_for_agent(agent, 0, env) == published.get_policy_for_agent(agent, 0, env)


def test_agents_can_have_names_for_mappings_that_read_them():
    roles = pm.Roles({"red": Uniform([0, 1]), "blue": Uniform([2, 3])})
    names = ("blue_0", "red_0")
    assert sequence(ours_there(roles, agents=names)) == [drawn(roles, 3, e, agents=names) for e in range(40)]


@pytest.mark.parametrize(
    ("mapping", "changes", "message"),
    [
        (Uniform(4), {"batched_sampling": True}, "batched_sampling must be False .* uses no mapping"),
        (Uniform(4), {"async_rl": False}, r"mapping must be ByEnvIndex\(4\) or Fixed .*, got Uniform"),
        (Uniform(4, mix=False), {"async_rl": False}, "mapping must be ByEnvIndex"),
        (pm.Shared(ByEnvIndex(4)), {"async_rl": False}, "mapping must be ByEnvIndex"),
        (pm.Fixed(0), {"async_rl": False}, r"equally many seats .*, got \[16, 0, 0, 0\] from .* in 8"),
        (ByEnvIndex(2), {"async_rl": False}, r"got \[8, 8, 0, 0\]"),
        (ByEnvIndex(3), {"async_rl": False, "num_policies": 3}, r"got \[6, 6, 4\]"),
        (Uniform(5), {}, "cfg.num_policies must be at least 5 .* got 4"),
        (pm.Balanced(4, num_envs=7), {}, "must be at least 8 .*, got 7"),
        (pm.Balanced(4, num_envs=8), {"seed": None}, "cfg.seed must be an integer"),
        (Uniform(4, replace=False), {"num_agents": 5}, "replace=False"),
        (Uniform(4), {"resample_every": 0}, "resample_every must be .* got 0"),
        (Uniform(4), {"agents": ["only one"]}, "agents must name each of the 2 agents"),
    ],
)
def test_mappings_that_the_framework_cannot_use_raise(mapping, changes, message):
    with pytest.raises(ValueError, match=message):
        ours_there(mapping, **changes)


@pytest.mark.parametrize(
    ("mapping", "num_policies"),
    [(ByEnvIndex(4), 4), (ByEnvIndex([3, 1, 0, 2]), 4), (pm.Fixed({0: 1, 1: 0}), 2), (Uniform(1), 1)],
)
def test_synchronous_mode_accepts_constant_equal_splits(mapping, num_policies):
    policies = ours_there(mapping, async_rl=False, num_policies=num_policies)
    for episode in range(3):
        for env in range(8):
            asked = [policies.get_policy_for_agent(agent, 0, env) for agent in (0, 1)]
            assert asked == drawn(mapping, env, episode)


def test_draw_beyond_num_policies_raises():
    policies = ours_there(pm.Fixed({0: 0, 1: 9}))
    with pytest.raises(
        ValueError, match=r"Fixed.* must draw policies below cfg.num_policies=4, got 9 in environment 5"
    ):
        policies.get_policy_for_agent(0, 1, 5)


@pytest.mark.parametrize(
    ("mapping", "episode_steps", "warned"),
    [
        (pm.Focal(pm.Fixed(0), Uniform([1, 2])), 15, True),
        (pm.Focal(pm.Fixed(0), Uniform([1, 2])), 16, False),
        (pm.Fixed(0), 15, False),
    ],
)
def test_block_shorter_than_two_rollouts_warns(mapping, episode_steps, warned):
    policies = ours_there(mapping, resample_every=2, rollout=16)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for episode in range(20):
            for agent in (0, 1):
                policies.get_policy_for_agent(agent, 0, 0)
            for _ in range(episode_steps if episode else 1000):  # the first block is long and must not count later
                for agent in (0, 1):
                    policies.count_step(agent, 0)
    texts = {str(warning.message) for warning in seen}
    assert len(texts) == warned  # one text, shown once per process
    assert all("a block of 2 episodes lasted less than 2 rollouts of 16 steps" in text for text in texts)


def test_warmup_episodes_do_not_warn():
    policies = ours_there(Uniform(4), warmup_episodes=3, rollout=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            for agent in (0, 1):
                policies.get_policy_for_agent(agent, 0, 0)
                policies.count_step(agent, 0)


RUN = Path(__file__).with_name("sample_factory_run.py")


def run(folder, *arguments, check=True, **settings):
    """Trains in the real framework; returns the process and the trajectories of every (environment, agent)."""
    command = [sys.executable, str(RUN), str(folder), f"--train_dir={folder / 'train'}", "--experiment=run"]
    process = subprocess.run(
        [*command, "--num_envs_per_worker=4", "--train_for_env_steps=500", *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,  # the framework may wait forever
    )
    assert not check or process.returncode == 0, process.stdout + process.stderr
    trajectories = defaultdict(list)
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            trajectories[record["environment"], record["agent"]].append(record)
    return process, trajectories


def trained(folder):
    """Returns the number of steps of each policy's training, from the names of its checkpoints."""
    newest = [max(folder.glob(f"train/run/checkpoint_p{policy}/checkpoint_*.pth")) for policy in (0, 1)]
    return [int(file.stem.split("_")[2]) for file in newest]


def check_trajectories(trajectories, mapping, environments, resample_every):
    """Compares every step of every trajectory with the draw of its episode."""
    assert sorted(trajectories) == [(env, agent) for env in range(environments) for agent in (0, 1)]
    changed = 0
    for (env, agent), records in trajectories.items():
        episode = 0
        for record in records:
            for policy, done in zip(record["policies"], record["dones"], strict=True):
                assert policy == drawn(mapping, env, episode, resample_every=resample_every)[agent]
                episode += done
            # After training no buffers are returned, and the framework drops trajectories without one.
            assert record["learners"]
            assert set(record["learners"]) <= set(record["policies"])
            changed += len(record["learners"]) > 1
        assert episode > 0
    return changed


WORKERS = {
    "serial": ["--serial_mode=True", "--num_workers=1"],
    "two spawned workers": ["--num_workers=2", "--train_for_env_steps=2000"],  # the second may be late
}


@pytest.mark.parametrize("workers", WORKERS)
def test_trajectories_of_a_run_follow_the_mapping(tmp_path, workers):
    process, trajectories = run(tmp_path, *WORKERS[workers], "--worker_num_splits=2", MAPPING="uniform")
    assert "Traceback" not in process.stdout + process.stderr
    assert min(trained(tmp_path)) >= 500
    environments = 4 if workers == "serial" else 8
    assert check_trajectories(trajectories, Uniform(2), environments, resample_every=3) > 0
    assert len(list(tmp_path.glob("*.jsonl"))) == environments // 4  # one file per process
    # Blocks of three short episodes are too short for real training.
    assert "a block of 3 episodes lasted less than 2 rollouts of 16 steps" in process.stderr + process.stdout


@pytest.mark.parametrize(("name", "mapping"), [("by env index", ByEnvIndex(2)), ("by seat", pm.Fixed({0: 0, 1: 1}))])
def test_synchronous_run_ends(tmp_path, name, mapping):
    arguments = (*WORKERS["serial"], "--async_rl=False", "--batch_size=64")
    _, trajectories = run(tmp_path, *arguments, MAPPING=name)
    assert min(trained(tmp_path)) >= 500
    assert check_trajectories(trajectories, mapping, 4, resample_every=3) == 0


@pytest.mark.parametrize(
    ("arguments", "name", "message"),
    [
        (["--async_rl=False", "--batch_size=64"], "uniform", "mapping must be ByEnvIndex"),
        (["--batched_sampling=True"], "uniform", "batched_sampling must be False"),
    ],
)
def test_invalid_runs_start_no_worker(tmp_path, arguments, name, message):
    process, trajectories = run(tmp_path, "--num_workers=2", *arguments, check=False, MAPPING=name)
    assert process.returncode != 0
    assert message in process.stderr
    assert not trajectories
    assert "ROLLOUT worker" not in process.stdout + process.stderr


def test_adapter_needs_neither_pettingzoo_nor_new_gymnasium():
    assert "pettingzoo" not in sys.modules
