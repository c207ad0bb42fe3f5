"""Pitfalls of Gymnasium's interface, each reproduced, and how the policy wrappers handle them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import env_checker
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.vector_envs import Countdown, ScriptedVector, in_mode, needs_modes

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:gymnasium")


@pytest.fixture
def registered():
    """Registers an environment, as a spec needs it, and forgets it afterwards."""
    gymnasium.register("Countdown-v0", entry_point="tests.vector_envs:Countdown", max_episode_steps=50)
    yield "Countdown-v0"
    del gymnasium.registry["Countdown-v0"]


class TestVectorInfosWithoutEntry:
    @needs_modes
    def test_row_without_info_has_mask_false_inside_and_its_policy_outside(self):
        fns = pm.env_fns(Countdown, 3, pm.ByEnvIndex([5, 6, 7]))
        inside = SyncVectorEnv(fns)
        outside = pm.wrap(SyncVectorEnv([Countdown] * 3), pm.ByEnvIndex([5, 6, 7]))
        mask = np.array([False, True, False])
        for env in (inside, outside):
            env.reset()
        infos = inside.reset(options={"reset_mask": mask.copy()})[1]
        assert infos["policy_id"].tolist() == [0, 6, 0]
        assert infos["_policy_id"].tolist() == mask.tolist()
        infos = outside.reset(options={"reset_mask": mask.copy()})[1]
        assert infos["policy_id"].tolist() == [5, 6, 7]
        assert infos["_policy_id"].tolist() == [True] * 3

    def test_tag_from_a_mapping_of_bytes_is_a_plain_int(self):
        class Bytes(pm.PolicyMapping):
            def assign(self, draw):
                return np.full((draw.num_envs, draw.num_seats), 3 + 97 * draw.env_index[0], np.int8)

        inside = SyncVectorEnv(pm.env_fns(Countdown, 2, Bytes()))
        infos = inside.reset()[1]
        assert infos["policy_id"].dtype == np.array([1]).dtype
        assert infos["policy_id"].tolist() == [3, 100]
        assert type(inside.envs[0].reset()[1]["policy_id"]) is int

    def test_policy_id_larger_than_earlier_ones_is_not_truncated(self):
        infos = SyncVectorEnv(pm.env_fns(Countdown, 2, pm.ByEnvIndex([1, 2**31 - 1]))).reset()[1]
        assert infos["policy_id"].tolist() == [1, 2**31 - 1]


@needs_modes
class TestResetMaskInOptions:
    @pytest.mark.parametrize("mode", Autoreset)
    def test_reset_mask_is_read_and_the_callers_dict_unchanged(self, mode):
        env = pm.wrap(in_mode(SyncVectorEnv, [Countdown] * 2, mode), 1000, seed=0)
        env.reset(seed=0)
        options = {"reset_mask": np.array([False, True])}
        for episode in (1, 2):
            env.reset(options=options)
            assert options.keys() == {"reset_mask"}
            assert env.assigner.episode.tolist() == [0, episode]

    def test_bare_environment_removes_the_reset_mask(self):
        env = SyncVectorEnv([Countdown] * 2)
        env.reset()
        options = {"reset_mask": np.array([False, True])}
        env.reset(options=options)
        assert options == {}


@needs_modes
class TestAsyncWithoutSharedMemory:
    """Its worker forgets an explicit reset and resets again at the next step; so episodes cannot be counted outside."""

    @staticmethod
    def resets_after_an_end_an_explicit_reset_and_a_step(shared_memory):
        inside = pm.env_fns(one_step, 1, 1000, seed=0, resample_every=1)
        env = AsyncVectorEnv(inside, shared_memory=shared_memory, context="fork")
        outside = pm.wrap(env, 1000, seed=0, resample_every=1, info_key="outside")
        outside.reset()
        outside.step(np.zeros(1, int))  # the episode ends
        outside.reset(options={"reset_mask": np.array([True])})
        infos = outside.step(np.zeros(1, int))[4]
        env.close()
        return infos

    def test_async_double_reset_counts_once_outside_and_twice_inside(self):
        infos = self.resets_after_an_end_an_explicit_reset_and_a_step(shared_memory=False)
        if infos["resets"] == [2]:
            pytest.skip("this version of Gymnasium resets once")
        assert infos["resets"].tolist() == [3]
        drawn = [by_episode(e) for e in range(3)]
        assert infos["outside"].tolist() == [drawn[1]]
        assert infos["policy_id"].tolist() == [drawn[2]]

    def test_shared_memory_resets_once_inside_and_outside(self):
        infos = self.resets_after_an_end_an_explicit_reset_and_a_step(shared_memory=True)
        assert infos["resets"].tolist() == [2]
        assert infos["outside"].tolist() == infos["policy_id"].tolist() == [by_episode(1)]


class TestWrappersHideAttributes:
    def test_vector_wrapper_of_gymnasium_has_no_call_and_get_attr(self):
        missing = {"call", "get_attr", "set_attr"} - set(dir(gymnasium.vector.VectorWrapper))
        assert missing == {"call", "get_attr", "set_attr"}

    @pytest.mark.parametrize("vectorise", [SyncVectorEnv, AsyncVectorEnv])
    def test_call_and_attributes_reach_the_sub_environments(self, vectorise):
        env = pm.wrap(vectorise(pm.env_fns(Countdown, 2, pm.ByEnvIndex([5, 6]), info_key="inside")), 4)
        env.reset()
        assert env.get_attr("policy_ids") == env.call("policy_ids") == (5, 6)
        env.call("set_mapping", pm.Fixed(8), now=True)
        env.set_attr("longest", [3, 4])
        assert env.get_attr("longest") == (3, 4)
        assert env.reset()[1]["inside"].tolist() == [8, 8]
        env.close()

    def test_call_on_a_vector_without_it_raises(self):
        with pytest.raises(AttributeError, match="get_attr"):
            pm.wrap(ScriptedVector(1), 4).get_attr("x")

    def test_get_wrapper_attr_finds_policy_ids(self):
        env = TimeLimit(RecordEpisodeStatistics(pm.wrap(Countdown(), 1000, seed=0)), 5)
        assert not hasattr(env, "policy_ids")
        assert not env.has_wrapper_attr("policy_ids")  # undefined before the first reset
        _, info = env.reset()
        assert env.get_wrapper_attr("policy_ids") == info["policy_id"]
        env.get_wrapper_attr("set_mapping")(pm.Fixed(7), now=True)
        assert env.reset()[1]["policy_id"] == 7


class TestEnvironmentChecker:
    def test_check_env_passes_on_a_wrapped_environment(self, registered):
        check_env(pm.wrap(gymnasium.make(registered), 1000, resample_every=1))

    def test_check_env_passes_on_classic_control(self):
        check_env(pm.wrap(gymnasium.make("CartPole-v1"), 1000, resample_every=1), skip_render_check=True)

    def test_check_env_passes_with_the_wrapper_inside(self, registered):
        check_env(TimeLimit(pm.wrap(gymnasium.make(registered), 1000), 9))

    def test_check_env_fails_on_a_pinned_seed(self, registered):
        with pytest.raises(AssertionError, match="step info are not equivalent"):
            check_env(pm.wrap(gymnasium.make(registered), 1000, resample_every=1, seed=0))
        check_env(pm.wrap(gymnasium.make(registered), 1000, resample_every=1000, seed=0))

    @pytest.mark.skipif(
        not hasattr(env_checker, "check_returned_data_not_reused"), reason="this version does not check that"
    )
    def test_check_env_fails_on_a_reused_info_unless_wrapped(self):
        shared = {"x": 1}
        with pytest.raises(AssertionError, match="share an object"):
            check_env(Countdown(infos=lambda env: shared))
        check_env(pm.wrap(Countdown(infos=lambda env: shared), 4))


class TestSpec:
    def test_spec_makes_the_same_wrapped_environment(self, registered):
        settings = {"resample_every": 2, "warmup_episodes": 1, "seed": 3, "env_index": 5, "info_key": "who"}
        env = RecordEpisodeStatistics(pm.wrap(gymnasium.make(registered), pm.Uniform([4, 5, 6]), **settings), 7)
        again = gymnasium.make(env.spec)
        assert isinstance(again.env, pm.PolicyMapEnv)
        assert again.env.state_dict() == env.env.state_dict()
        assert [again.reset(seed=1)[1] for _ in range(9)] == [env.reset(seed=1)[1] for _ in range(9)]

    def test_spec_keeps_a_weights_callable(self, registered):
        class Ledger:
            weights = (1.0, 0.0)

            def ask(self):
                return self.weights

        ledger = Ledger()
        again = pm.wrap(gymnasium.make(registered), pm.Weighted(ledger.ask)).spec.make()
        ledger.weights = (0.0, 1.0)
        assert again.reset()[1]["policy_id"] == 1

    def test_make_vec_builds_wrapped_environments(self, registered):
        env = gymnasium.make_vec(
            registered, num_envs=2, vectorization_mode="sync", wrappers=[lambda env: pm.wrap(env, pm.Fixed(3))]
        )
        assert env.reset()[1]["policy_id"].tolist() == [3, 3]


def one_step():
    return Countdown(longest=1, infos=lambda env: {"resets": env.resets})


def by_episode(episode):
    """The policies of environment 0 in an episode, from a separate assigner."""
    assigner = pm.PolicyAssigner(1000, ["agent_0"], seed=0, resample_every=1)
    return [int(assigner.begin_episodes()[0, 0]) for _ in range(episode + 1)][-1]
