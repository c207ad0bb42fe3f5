"""SuperSuit around a policy wrapper: where tags get lost or misread, and how to read them right."""

import numpy as np
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic import rps_v2
from supersuit import concat_vec_envs_v1, frame_skip_v0, pettingzoo_env_to_vec_env_v1
from supersuit.vector import ConcatVecEnv

import pz_policymap as pm
from pz_policymap.wrappers.vector_agents import known_agents

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def spread(**settings):
    return pm.wrap(simple_spread_v3.parallel_env(max_cycles=3), 1000, resample_every=1, **settings)


def drawn(seed, env_index, episode):
    """Returns the policies of three agents in an episode, computed without an environment."""
    draw = pm.Draw.at(seed, range(3), [env_index], [episode], resample_every=1)
    return pm.Uniform(1000).assign(draw)[0].tolist()


def tags(infos):
    return [info["policy_id"] for info in infos]


class TestFrameSkip:
    def test_frame_skip_loses_reset_infos_and_the_assigner_does_not(self):
        wrapper = pm.wrap(rps_v2.env(), 1000)
        env = frame_skip_v0(wrapper, 2)
        env.reset()
        assert dict(env.infos) == {"player_0": {}, "player_1": {}}
        assert pm.find_assigner(env).assignment() == wrapper.policy_ids

    def test_wrapper_around_frame_skip_tags_reset_infos(self):
        env = pm.wrap(frame_skip_v0(rps_v2.env(), 2), 1000)
        env.reset()
        for _ in range(4):
            assert {agent: info["policy_id"] for agent, info in env.infos.items()} == env.policy_ids
            env.step(0)


class TestMarkovVectorEnv:
    def test_terminal_reward_comes_with_the_tag_of_the_next_episode(self):
        env = pettingzoo_env_to_vec_env_v1(spread(seed=0))
        _, infos = env.reset(seed=1)
        for _ in range(2):
            assert tags(infos) == drawn(seed=0, env_index=0, episode=0)
            infos = env.step(np.zeros(3, np.int64))[4]
        infos = env.step(np.zeros(3, np.int64))[4]
        assert all("terminal_observation" in info for info in infos)
        assert tags(infos) == drawn(seed=0, env_index=0, episode=1)

    def test_tag_read_before_the_step_belongs_to_the_reward(self):
        """Compares each policy's return with the same episodes played without a vector environment."""
        plain, returns = spread(seed=0), {}
        for seed in (1, None):
            plain.reset(seed=seed)
            while plain.agents:
                for agent, reward in plain.step(dict.fromkeys(plain.agents, 1))[1].items():
                    returns.setdefault(plain.policy_ids[agent], []).append(reward)

        env, before, after = pettingzoo_env_to_vec_env_v1(spread(seed=0)), {}, {}
        _, infos = env.reset(seed=1)
        for _ in range(6):
            acting = tags(infos)
            _, rewards, _, _, infos = env.step(np.ones(3, np.int64))
            for record, policies in ((before, acting), (after, tags(infos))):
                for policy, reward in zip(policies, rewards, strict=True):
                    record.setdefault(policy, []).append(reward)
        assert before.keys() == returns.keys()
        for policy, rewards in returns.items():
            assert before[policy] == pytest.approx(rewards)  # the vector's rewards have 32 bits
        assert after.keys() != returns.keys()

    def test_assigner_is_found_through_venv_wrappers(self):
        class KeepsVenv:  # as the wrappers of Stable-Baselines3 do
            def __init__(self, venv):
                self.venv = venv

        inner = spread()
        env = pettingzoo_env_to_vec_env_v1(inner)
        assert not hasattr(env, "policy_ids")
        assert pm.find_assigner(env) is inner.assigner
        assert pm.find_assigner(KeepsVenv(env)) is inner.assigner


class TestConcatVecEnvs:
    """It copies by cloudpickle, and seeds clone i with seed + i."""

    @staticmethod
    def concat(env, count=3):
        return concat_vec_envs_v1(pettingzoo_env_to_vec_env_v1(env), count)

    def test_clones_without_a_seed_differ(self):
        _, infos = self.concat(spread()).reset()
        assert len({tuple(tags(infos[i : i + 3])) for i in (0, 3, 6)}) == 3

    def test_clones_with_consecutive_seeds_are_independent_and_reproducible(self):
        env = self.concat(spread())
        for _ in range(2):
            _, infos = env.reset(seed=5)
            assert tags(infos) == [policy for i in range(3) for policy in drawn(seed=5 + i, env_index=0, episode=0)]

    def test_clones_of_a_pinned_environment_are_equal(self):
        env = self.concat(spread(seed=0))
        _, infos = env.reset(seed=5)
        assert tags(infos) == 3 * drawn(seed=0, env_index=0, episode=0)

    def test_mapping_across_environments_refuses_clones_without_index(self):
        with pytest.raises(ValueError, match="env_index must be the index of this environment"):
            self.concat(pm.wrap(simple_spread_v3.parallel_env(), pm.ByEnvIndex(3, num_envs=3)))

    @pytest.mark.parametrize("seed", [None, 5])
    def test_env_fns_give_clones_their_own_index(self, seed):
        fns = pm.env_fns(lambda: simple_spread_v3.parallel_env(max_cycles=3), 3, 1000, resample_every=1, seed=0)
        env = ConcatVecEnv([lambda fn=fn: pettingzoo_env_to_vec_env_v1(fn()) for fn in fns])
        _, infos = env.reset(seed=seed)
        assert tags(infos) == [policy for i in range(3) for policy in drawn(seed=0, env_index=i, episode=0)]
        for _ in range(3):
            infos = env.step(np.zeros(9, np.int64))[4]
        assert tags(infos) == [policy for i in range(3) for policy in drawn(seed=0, env_index=i, episode=1)]


def test_vector_of_different_numbers_of_agents_is_refused():
    class Holder:
        def __init__(self, *envs):
            self.vec_envs = list(envs)

    class Inner:
        def __init__(self, count):
            self.possible_agents = list("abc"[:count])

    assert known_agents(Holder(Inner(2), Inner(2))) == ("a", "b")
    with pytest.raises(ValueError, match="env must hold environments with the same number of agents"):
        known_agents(Holder(Inner(2), Inner(3)))
