"""The wrappers of PettingZoo's two APIs: tags, forced matchups, faults, copies, and the ways in."""

import copy
import pickle
import threading
from types import MappingProxyType

import cloudpickle
import gymnasium
import numpy as np
import pytest
from mpe2 import simple_spread_v3, simple_tag_v3
from pettingzoo.test.example_envs import generated_agents_env_v0
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper, aec_to_parallel, parallel_to_aec

import pz_policymap as pm
from tests.simulators import ScriptedSimulator
from tests.stub_envs import StubAEC, StubParallel

PLAYED = (("a", "b"), ("a", "b"), ("a",), ())


def parallel(mapping=1000, live=PLAYED, infos=None, possible_agents=("a", "b"), fail_at=(), **settings):
    return pm.wrap(StubParallel(live, infos, possible_agents, fail_at), mapping, **settings)


def step(env):
    return env.step(dict.fromkeys(env.agents, 0))[4]


class TestParallelInfos:
    def test_infos_at_reset_and_every_step_carry_the_tag(self):
        env = parallel(seed=0)
        _, infos = env.reset()
        expected = {agent: {"policy_id": policy} for agent, policy in env.policy_ids.items()}
        assert infos == expected
        assert step(env) == expected
        assert step(env) == expected  # b has ended
        assert step(env) == {"a": expected["a"]}  # so has a
        assert step(env) == {}

    def test_tag_is_a_plain_int(self):
        env = parallel(seed=0)
        tag = env.reset()[1]["a"]["policy_id"]
        assert type(tag) is int
        assert type(env.policy_ids["a"]) is int

    def test_info_key_renames_the_tag(self):
        env = parallel(seed=0, info_key="who")
        assert set(env.reset()[1]["a"]) == {"who"}

    def test_infos_of_the_environment_are_never_written_to(self):
        shared = {"x": 1}
        env = parallel(infos=lambda time, agents: dict.fromkeys(agents, shared), seed=0)
        infos = env.reset()[1]
        for _ in range(2):
            assert shared == {"x": 1}
            assert infos["a"] is not infos["b"]
            assert {a: info["policy_id"] for a, info in infos.items()} == env.policy_ids
            assert {info["x"] for info in infos.values()} == {1}
            infos = step(env)

    def test_infos_are_new_dicts_in_each_call(self):
        env = parallel(seed=0)
        seen = [env.reset()[1], step(env), step(env)]
        infos = [info for each in seen for info in each.values()]
        assert len({id(info) for info in infos}) == len(infos)
        infos[0]["mine"] = True
        assert "mine" not in env.reset()[1]["a"]

    def test_infos_keys_that_are_not_agents_pass_unchanged(self):
        common = {"score": 3}
        env = parallel(infos=lambda time, agents: {**{a: {} for a in agents}, "common": common, "time": time}, seed=0)
        for infos, time in ((env.reset()[1], 0), (step(env), 1)):
            assert infos["common"] is common
            assert infos["time"] == time
            assert set(infos["a"]) == set(infos["b"]) == {"policy_id"}

    @pytest.mark.parametrize(
        "infos",
        [
            lambda time, agents: {},
            lambda time, agents: {"a": {}},
            lambda time, agents: dict.fromkeys(agents),
            lambda time, agents: {"common": {}, "a": {}},
            lambda time, agents: MappingProxyType({a: MappingProxyType({}) for a in agents}),
        ],
        ids=["none at all", "one missing", "None", "one in the place of another", "read-only"],
    )
    def test_infos_without_an_agent_gain_its_tag(self, infos):
        env = parallel(infos=infos, seed=0)
        for tagged in (env.reset()[1], step(env)):
            assert {a: tagged[a]["policy_id"] for a in "ab"} == env.policy_ids

    def test_infos_of_an_agent_without_observation_are_tagged(self):
        env = parallel(infos=lambda time, agents: {"a": {}, "b": {}}, seed=0)
        env.reset()
        step(env), step(env)
        infos = step(env)  # b has been gone for a step
        assert infos["b"] == {"policy_id": env.policy_ids["b"]}

    def test_info_key_in_use_at_reset_raises_and_begins_no_episode(self):
        env = parallel(infos=lambda time, agents: {a: {"policy_id": 7} for a in agents}, seed=0)
        with pytest.raises(ValueError, match=r"info_key 'policy_id' is already used .* 'a' is \{'policy_id': 7\}"):
            env.reset()
        assert env.assigner.episode[0] == -1
        assert parallel(infos=env.unwrapped.make_infos, info_key="who", seed=0).reset()[1]["a"]["policy_id"] == 7

    def test_info_key_in_use_at_a_step_raises(self):
        env = parallel(infos=lambda time, agents: {a: {"policy_id": 7} if time else {} for a in agents}, seed=0)
        env.reset()
        with pytest.raises(ValueError, match="info_key 'policy_id' is already used"):
            step(env)

    def test_wrap_twice_with_one_key_raises(self):
        inner = parallel(seed=0)
        with pytest.raises(ValueError, match="already used"):
            pm.wrap(inner, 4).reset()
        both = pm.wrap(parallel(seed=0), 4, info_key="coach").reset()[1]["a"]
        assert set(both) == {"policy_id", "coach"}


class TestObservationsWithoutAgent:
    def test_observation_key_that_is_not_an_agent_gets_no_tag(self):
        class WithState(StubParallel):
            def reset(self, seed=None, options=None):
                observations, infos = super().reset(seed, options)
                return {**observations, "state": 7}, infos

            def step(self, actions):
                observations, *rest = super().step(actions)
                return {**observations, "state": 7}, *rest

        env = pm.wrap(WithState(PLAYED), pm.Fixed({"a": 1, "b": 2}), seed=0)
        assert env.reset()[1] == {"a": {"policy_id": 1}, "b": {"policy_id": 2}}
        assert step(env) == {"a": {"policy_id": 1}, "b": {"policy_id": 2}}
        assert set(env.policy_ids) == {"a", "b"}


class TestLateAgents:
    def late(self, mapping=1000, **settings):
        live = (("a",), ("a", "b"), ("b", "c"), ())
        return parallel(mapping, live=live, possible_agents=None, seed=0, **settings)

    def test_late_agent_is_tagged_and_others_keep_their_policies(self):
        env = self.late()
        seen = {}
        for infos in (env.reset()[1], step(env), step(env)):
            for agent, info in infos.items():
                assert seen.setdefault(agent, info["policy_id"]) == info["policy_id"]
        assert list(seen) == ["a", "b", "c"]
        early = pm.PolicyAssigner(1000, ["a", "b", "c"], seed=0)
        assert list(seen.values()) == early.begin_episodes()[0].tolist()

    def test_late_agent_joins_the_shared_policy(self):
        env = self.late(pm.Uniform(1000, mix=False))
        infos = [env.reset()[1], step(env), step(env)]
        assert len({info["policy_id"] for each in infos for info in each.values()}) == 1

    def test_late_agent_keeps_its_policy_within_the_block(self):
        env = self.late(resample_every=2)
        env.reset()
        step(env)
        first = env.policy_ids
        env.reset()
        step(env)
        assert env.policy_ids == first

    @pytest.mark.parametrize("common", [{}, {"common": {}}])
    def test_late_agents_without_observation_take_seats_in_order_of_arrival(self, common):
        class Blind(StubParallel):
            def step(self, actions):
                observations, *others, infos = super().step(actions)
                seen = [agent for agent in observations if agent != "c" or self.time > 2]
                return dict.fromkeys(seen, 0), *others, {**{agent: infos[agent] for agent in seen}, **common}

        live = [["a"], ["a", "c"], ["a", "d", "c"], ["a", "d", "c"], []]
        env = pm.wrap(Blind(live, possible_agents=None), 1000, seed=0)
        env.reset()
        for _ in range(3):
            step(env)
        assert env.assigner.agents == ("a", "c", "d")

    def test_late_agent_without_an_info_is_tagged(self):
        env = parallel(live=(("a",), ("a", "b"), ()), infos=lambda t, agents: {}, possible_agents=None, seed=0)
        env.reset()
        assert set(step(env)) == {"a", "b"}

    @pytest.mark.parametrize("infos", [lambda t, agents: {}, lambda t, agents: {a: {} for a in agents[::2]}])
    def test_late_agents_of_one_step_take_seats_in_the_environments_order(self, infos):
        live = (("a",), ("a", "b", "c"), ())
        envs = [parallel(live=live, infos=i, possible_agents=None, seed=0) for i in (None, infos)]
        for env in envs:
            env.reset()
            step(env)
        assert envs[0].policy_ids == envs[1].policy_ids

    def test_assignment_does_not_depend_on_reads(self):
        looks = [lambda env: None, lambda env: env.infos, lambda env: env.last(), lambda env: env.policy_ids]
        played = []
        for look in looks:
            env = pm.wrap(generated_agents_env_v0.env(), 1000, seed=0)
            env.reset(seed=0)
            for agent in env.agent_iter(300):
                look(env)
                ended = env.terminations[agent] or env.truncations[agent]
                env.step(None if ended else env.unwrapped.action_space(agent).n - 1)
            played.append(env.policy_ids)
        assert played == [played[0]] * 4
        assert len(played[0]) > 10

    def test_policy_ids_name_the_agents_of_this_episode(self):
        env = parallel(live=(("a",), ("a", "b"), ()), possible_agents=None, seed=0)
        env.reset()
        step(env)
        assert set(env.policy_ids) == {"a", "b"}
        env.reset()
        assert set(env.policy_ids) == {"a"}  # b has its policy for the block, and is not there

    def test_late_agent_unknown_to_a_function_raises_its_name(self):
        env = self.late(lambda agents, draw: {agent: 0 for agent in agents if agent == "a"})
        env.reset()
        with pytest.raises(ValueError, match=r"FromFunction.*got none for \['b'\]"):
            step(env)


class TestAEC:
    def test_aec_last_infos_and_policy_ids_agree_at_every_turn(self):
        env = pm.wrap(StubAEC({"a": 2, "b": 1, "c": 3}), 1000, seed=0)
        env.reset()
        turns = []
        for agent in env.agent_iter():
            *_, terminated, _, info = env.last()
            assert info == {"policy_id": env.policy_ids[agent]}
            assert env.infos == {a: {"policy_id": env.policy_ids[a]} for a in env.agents}
            turns.append(agent)
            env.step(None if terminated else 0)
        assert sorted(turns) == ["a"] * 3 + ["b"] * 2 + ["c"] * 4  # one turn more each, to leave

    def test_aec_infos_are_new_dicts_and_the_environments_unchanged(self):
        one = {"x": 1}
        env = pm.wrap(StubAEC(infos=lambda agents: dict.fromkeys(agents, one)), 1000, seed=0)
        env.reset()
        assert env.infos["a"] is not env.infos["a"]
        env.infos["a"]["mine"] = True
        env.last()[4]["mine"] = True
        assert env.env.infos == {"a": {"x": 1}, "b": {"x": 1}}

    def test_aec_infos_without_an_agent_gain_its_tag_and_other_keys_pass(self):
        common = {"y": 2}
        env = pm.wrap(StubAEC(infos=lambda agents: {"b": {}, "common": common}), 1000, seed=0)
        env.reset()
        assert env.infos["common"] is common
        assert set(env.infos) == {"a", "b", "common"}
        assert env.last()[4] == {"policy_id": env.policy_ids["a"]}

    def test_aec_info_key_in_use_raises_at_reset(self):
        env = pm.wrap(StubAEC(infos=lambda agents: {a: {"policy_id": 1} for a in agents}), 4, seed=0)
        with pytest.raises(ValueError, match="already used"):
            env.reset()
        assert env.assigner.episode[0] == -1

    @pytest.mark.parametrize("make", [StubAEC, simple_spread_v3.env])
    def test_attributes_before_the_first_reset_raise_as_in_pettingzoo(self, make):
        env = pm.wrap(make(), 4)
        for name in ("infos", "policy_ids"):
            with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
                getattr(env, name)
            assert not hasattr(env, name)
        with pytest.raises(AttributeError):
            env.last()
        with pytest.raises(AttributeError, match="policy_ids cannot be accessed before reset"):
            pm.wrap(StubParallel(), 4).policy_ids  # noqa: B018

    def test_aec_last_without_observation_and_other_attributes_are_forwarded(self):
        env = pm.wrap(simple_tag_v3.env(), 4)
        env.reset(seed=0)
        assert env.last(observe=False)[0] is None
        assert env.max_num_agents == env.num_agents == 4
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            env.nonsense  # noqa: B018


class TestEpisodes:
    def test_draw_is_held_for_resample_every_resets(self):
        env = parallel(resample_every=3, seed=0)
        matchups = []
        for episode in range(9):
            env.reset()
            matchups.append(tuple(env.policy_ids.values()))
            for _ in range(episode % 3):  # finished, cut, or cut at once
                step(env)
        assert matchups == [m for m in (matchups[0], matchups[3], matchups[6]) for _ in range(3)]
        assert len(set(matchups)) == 3

    def test_reset_with_seed_restarts_and_without_continues(self):
        env = parallel(resample_every=1)

        def three(seed):
            return [env.reset(seed=s) and env.policy_ids for s in (seed, None, None)]

        first, other, again = three(1), three(2), three(1)
        assert first == again != other
        assert len({str(ids) for ids in first}) == 3

    def test_pinned_seed_continues_when_every_reset_has_a_seed(self):
        pinned = parallel(resample_every=2, seed=5)
        matchups = [pinned.reset(seed=i) and str(pinned.policy_ids) for i in range(6)]
        assert matchups[0] == matchups[1] != matchups[2] == matchups[3] != matchups[4]
        redrawn = parallel(resample_every=2)
        assert len({redrawn.reset(seed=i) and str(redrawn.policy_ids) for i in range(6)}) == 6

    def test_reset_that_raises_begins_no_episode(self):
        env = parallel(fail_at=(1, 2), resample_every=1, seed=0)
        env.reset()
        before = env.state_dict(), env.policy_ids
        for _ in range(2):
            with pytest.raises(RuntimeError, match="fails"):
                env.reset(seed=9)
            assert (env.state_dict(), env.policy_ids) == before
        env.reset()
        assert env.assigner.episode[0] == 1

    def test_mapping_that_raises_begins_no_episode_until_the_next_reset(self):
        answers = [{"a": 1, "b": 1}, {}, {"a": 2, "b": 2}]
        env = parallel(lambda agents, draw: answers.pop(0), resample_every=1, seed=0)
        env.reset()
        with pytest.raises(ValueError, match="episode 1: fn must return a policy"):
            env.reset()
        assert env.policy_ids == {"a": 1, "b": 1}
        env.reset()
        assert env.policy_ids == {"a": 2, "b": 2}
        assert env.assigner.episode[0] == 1

    def test_set_mapping_takes_effect_at_the_next_draw_or_reset(self):
        env = parallel(pm.Fixed(1), resample_every=5, seed=0)
        env.reset()
        env.set_mapping(pm.Fixed(2))
        assert step(env)["a"]["policy_id"] == 1
        assert env.reset()[1]["a"]["policy_id"] == 1
        env.set_mapping(pm.Fixed(3), now=True)
        assert step(env)["a"]["policy_id"] == 1
        assert env.reset()[1]["a"]["policy_id"] == 3

    def test_clones_made_before_the_first_reset_differ(self):
        env = parallel(2**31 - 1)
        clones = [copy.deepcopy(env) for _ in range(4)]
        assert len({clone.reset() and str(clone.policy_ids) for clone in clones}) == 4


class TestForcedMatchups:
    def test_forced_matchup_holds_for_one_episode_and_keeps_the_draw(self):
        env = parallel(seed=0)
        env.reset()
        drawn = env.policy_ids
        infos = env.reset(options={"policy_ids": {"b": 3}})[1]
        assert {a: infos[a]["policy_id"] for a in "ab"} == {"a": drawn["a"], "b": 3} == env.policy_ids
        assert step(env)["b"]["policy_id"] == 3
        env.reset()
        assert env.policy_ids == drawn

    def test_forced_matchup_of_numpy_integers_works_in_aec(self):
        env = pm.wrap(StubAEC(), 4, seed=0)
        env.reset(options={"policy_ids": {"a": np.int64(2), "b": 1}})
        assert env.last()[4] == {"policy_id": 2}
        assert type(env.last()[4]["policy_id"]) is int

    def test_forced_matchup_is_removed_from_the_environments_options(self):
        env = parallel(seed=0)
        options = {"policy_ids": {"a": 1}, "difficulty": 3}
        env.reset(options=options)
        assert env.unwrapped.options == {"difficulty": 3}
        assert options == {"policy_ids": {"a": 1}, "difficulty": 3}
        env.reset(options={"policy_ids": {"a": 1}})
        assert env.unwrapped.options is None
        env.reset(options={})
        assert env.unwrapped.options == {}

    def test_forced_matchup_leaves_late_agents_drawn(self):
        env = parallel(live=(("a",), ("a", "b"), ()), possible_agents=None, seed=0)
        env.reset(options={"policy_ids": {"a": 7}})
        infos = step(env)
        assert infos["a"]["policy_id"] == 7
        assert infos["b"]["policy_id"] == pm.PolicyAssigner(1000, ["a", "b"], seed=0).begin_episodes()[0, 1]

    @pytest.mark.parametrize(
        ("forced", "error", "message"),
        [
            ({"z": 0}, KeyError, r"names 'z', which is not among \['a', 'b'\]"),
            ({"a": 4}, ValueError, r"\['a'\] must be from 0 to 3, got 4"),
            ({"a": -1}, ValueError, "must be from 0 to 3, got -1"),
            ({"a": 1.0}, TypeError, "must be an integer, got 1.0"),
            ({"a": None}, TypeError, "must be an integer, got None"),
            ([1, 2, 3], ValueError, "must hold one policy per seat, 2 in all"),
            ([0.5, 1], TypeError, "must be a policy, a dict from agent to policy or integers"),
        ],
    )
    def test_forced_matchup_invalid_raises_before_the_environment_is_reset(self, forced, error, message):
        env = parallel(4, seed=0)
        with pytest.raises(error, match=message):
            env.reset(options={"policy_ids": forced})
        assert env.unwrapped.resets == -1
        assert env.assigner.episode[0] == -1

    def test_forced_matchup_of_an_absent_generated_agent_raises(self):
        env = parallel(possible_agents=None, seed=0)
        with pytest.raises(KeyError, match="names 'z'"):
            env.reset(options={"policy_ids": {"z": 0}})
        assert env.assigner.episode[0] == -1

    def test_forced_matchup_none_forces_no_agent(self):
        env = parallel(4, seed=0)
        env.reset(options={"policy_ids": None})
        assert env.policy_ids == env.assigner.assignment()
        assert env.unwrapped.options is None

    def test_forced_policy_outside_a_list_is_allowed(self):
        env = parallel(pm.Uniform([4, 5]), seed=0)
        env.reset(options={"policy_ids": {"a": 0}})
        assert env.policy_ids["a"] == 0


class TestCopies:
    @pytest.mark.parametrize(
        "copied",
        [
            copy.deepcopy,
            lambda env: pickle.loads(pickle.dumps(env)),
            lambda env: cloudpickle.loads(cloudpickle.dumps(env)),
        ],
        ids=["deepcopy", "pickle", "cloudpickle"],
    )
    @pytest.mark.parametrize("make", [StubParallel, StubAEC, simple_tag_v3.parallel_env, simple_tag_v3.env])
    @pytest.mark.parametrize("resets", [0, 1, 4])
    def test_copy_continues_as_the_original(self, make, copied, resets):
        env = pm.wrap(make(), 1000, resample_every=3, seed=2)
        for _ in range(resets):
            env.reset(seed=0)
        other = copied(env)
        assert other.assigner is not env.assigner
        assert other.state_dict() == env.state_dict()
        for _ in range(5):
            env.reset(seed=0), other.reset(seed=0)
            assert env.policy_ids == other.policy_ids
            assert other.state_dict() == env.state_dict()  # an unfinished episode is known as such

    def test_copy_mid_episode_keeps_its_tags(self):
        env = parallel(seed=0)
        env.reset(options={"policy_ids": {"a": 3}})
        other = copy.deepcopy(env)
        assert step(other) == step(env)

    def test_assigner_copy_holds_no_environment(self):
        env = parallel(seed=0)
        env.unwrapped.heavy = lambda: None  # cannot be pickled
        env.reset()
        assigner = pickle.loads(pickle.dumps(env.assigner))
        assert assigner.assignment() == env.policy_ids

    def test_environments_in_two_threads_are_independent(self):
        def play(env, matchups):
            for _ in range(200):
                env.reset()
                matchups.append(env.policy_ids)

        results = []
        for threaded in (False, True):
            envs = [parallel(resample_every=1, seed=0, env_index=i) for i in range(4)]
            matchups = [[] for _ in envs]
            threads = [threading.Thread(target=play, args=pair) for pair in zip(envs, matchups, strict=True)]
            for thread in threads:
                thread.start()
                if not threaded:
                    thread.join()
            for thread in threads:
                thread.join()
            results.append(matchups)
        assert results[0] == results[1]


class TestWrap:
    def test_wrap_picks_the_wrapper_of_the_api(self):
        assert type(pm.wrap(StubAEC(), 4)) is pm.PolicyMapAEC
        assert type(pm.wrap(StubParallel(), 4)) is pm.PolicyMapParallel

    def test_wrap_takes_a_number_a_mapping_or_a_function(self):
        for mapping in (1, pm.Fixed(0), lambda agents, draw: dict.fromkeys(agents, 0)):
            assert parallel(mapping).reset()[1] == {"a": {"policy_id": 0}, "b": {"policy_id": 0}}

    @pytest.mark.parametrize("env", [None, 3, "classic/chess_v6", StubParallel, object()])
    def test_non_environment_raises(self, env):
        with pytest.raises(TypeError, match="env must be"):
            pm.wrap(env, 4)

    def test_wrappers_refuse_environments_of_the_other_api(self):
        with pytest.raises(TypeError, match="env must be a pettingzoo.AECEnv"):
            pm.PolicyMapAEC(StubParallel(), 4)
        with pytest.raises(TypeError, match="env must be a pettingzoo.ParallelEnv"):
            pm.PolicyMapParallel(StubAEC(), 4)

    @pytest.mark.parametrize(
        ("mapping", "settings", "error", "message"),
        [
            (0, {}, ValueError, "policies must be"),
            (-1, {}, ValueError, "policies must be"),
            (2.5, {}, TypeError, "mapping must be"),
            (4, {"resample_every": 0}, ValueError, r"resample_every must be from 1 to \d+, got 0"),
            (4, {"resample_every": 2.5}, TypeError, "resample_every must be an integer, got 2.5"),
            (4, {"warmup_episodes": -1}, ValueError, "warmup_episodes"),
            (4, {"seed": -1}, ValueError, "seed must be at least 0"),
            (4, {"env_index": -1}, ValueError, "env_index must be from 0"),
            (4, {"info_key": 3}, TypeError, "info_key must be a string"),
            (pm.ByEnvIndex(2), {}, ValueError, "env_index must be the index of this environment"),
            (pm.Fixed({"a": 0}), {}, ValueError, "no policy for 'b'"),
            (pm.Uniform(1, replace=False), {}, ValueError, "got 1 policies for 2 seats"),
        ],
    )
    def test_wrap_invalid_settings_raise_at_construction(self, mapping, settings, error, message):
        with pytest.raises(error, match=message):
            parallel(mapping, **settings)

    def test_env_fns_give_consecutive_env_indices(self):
        fns = pm.env_fns(StubParallel, 4, 1000, seed=3, resample_every=2, info_key="who")
        fns = [pickle.loads(pickle.dumps(fn)) for fn in fns]
        bulk = pm.PolicyAssigner(1000, ["a", "b"], num_envs=4, seed=3, resample_every=2)
        envs = [fn() for fn in fns]
        for _ in range(5):
            ids = bulk.begin_episodes()
            for row, env in enumerate(envs):
                infos = env.reset(seed=row)[1]
                assert [infos[a]["who"] for a in "ab"] == ids[row].tolist()

    def test_env_fns_env_index_is_that_of_the_first(self):
        rule = pm.ByEnvIndex(4, num_envs=8)
        envs = [fn() for fn in pm.env_fns(StubParallel, 4, rule, env_index=4)]
        assert [env.reset()[1]["a"]["policy_id"] for env in envs] == [0, 1, 2, 3]
        assert [env.assigner.env_index for env in envs] == [4, 5, 6, 7]

    def test_env_fns_read_the_seed_when_they_are_made(self):
        seed = [3, 4]
        one_by_one = pm.env_fns(StubParallel, 2, 1000, seed=iter(seed))
        of_a_list = pm.env_fns(StubParallel, 2, 1000, seed=seed)
        seed[0] = 9
        for fns in (one_by_one, of_a_list):
            assert [fn().assigner.seed for fn in fns] == [(3, 4)] * 2

    @pytest.mark.parametrize(
        "make", [lambda: gymnasium.make_vec("CartPole-v1", num_envs=2), lambda: ScriptedSimulator(3, [], "all")]
    )
    def test_env_fns_refuse_vector_environments_and_simulators(self, make):
        fns = pm.env_fns(make, 2, 4)
        with pytest.raises(TypeError, match="make must make a single environment"):
            fns[0]()

    @pytest.mark.parametrize(
        ("arguments", "settings", "error", "message"),
        [
            ((None, 2, 4), {}, TypeError, "make must be a function"),
            ((StubParallel, 0, 4), {}, ValueError, "num_envs must be at least 1"),
            ((StubParallel, 2, 2.5), {}, TypeError, "mapping must be"),
            ((StubParallel, 2, 4), {"env_index": -1}, ValueError, "env_index must be at least 0"),
            ((StubParallel, 3, pm.ByEnvIndex(2, num_envs=2)), {}, ValueError, "below num_envs=2 .* got 2"),
            ((StubParallel, 2, 4), {"resample_every": 0}, ValueError, "resample_every must be from 1"),
            ((StubParallel, 2, 4), {"seed": -3}, ValueError, "seed must be at least 0"),
            ((StubParallel, 2, 4), {"info_key": 7}, TypeError, "info_key must be a string"),
            ((StubParallel, 2, pm.Balanced(2, num_envs=2)), {}, ValueError, "seed must be given"),
            (
                (StubParallel, 2, pm.RoundRobin(2, num_envs=2)),
                {"seed": 0, "warmup_episodes": 5},
                ValueError,
                "warmup_episodes must be 0",
            ),
        ],
    )
    def test_env_fns_raise_for_settings_no_environment_accepts(self, arguments, settings, error, message):
        with pytest.raises(error, match=message):
            pm.env_fns(*arguments, **settings)

    @pytest.mark.parametrize(
        "stack",
        [
            lambda env: env,
            BaseParallelWrapper,
            parallel_to_aec,
            lambda env: parallel_to_aec(BaseParallelWrapper(env)),
            lambda env: BaseParallelWrapper(aec_to_parallel(BaseWrapper(parallel_to_aec(env)))),
        ],
        ids=["bare", "wrapped", "converted", "wrapped and converted", "there and back"],
    )
    def test_find_assigner_looks_through_wrappers_and_converters(self, stack):
        env = pm.wrap(simple_spread_v3.parallel_env(), 4, seed=0)
        assert pm.find_assigner(stack(env)) is env.assigner

    def test_find_assigner_returns_the_outermost(self):
        inner = parallel(seed=0)
        outer = pm.wrap(inner, 4, info_key="coach")
        assert pm.find_assigner(BaseParallelWrapper(outer)) is outer.assigner

    def test_find_assigner_without_policy_wrapper_raises(self):
        with pytest.raises(ValueError, match="no policy wrapper.*BaseParallelWrapper -> StubParallel"):
            pm.find_assigner(BaseParallelWrapper(StubParallel()))


def test_agent_missing_in_possible_agents_gets_a_policy_at_its_turn():
    bare = StubAEC({"a": 1, "b": 1})
    env = pm.wrap(bare, 1000, seed=0)
    env.reset()
    before = env.policy_ids
    bare.turns["c"] = 1
    bare.possible_agents.append("c")
    StubAEC.reset(bare)  # "c" joins without an info
    bare.agent_selection = "c"
    policy = env.last()[4]["policy_id"]
    assert env.policy_ids == {**before, "c": policy}
    assert policy == pm.PolicyAssigner(1000, ["a", "b", "c"], seed=0).begin_episodes()[0, 2]
