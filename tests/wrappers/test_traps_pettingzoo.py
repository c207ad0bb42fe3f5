"""Pitfalls of PettingZoo's interface, each reproduced, and how the policy wrappers handle them."""

import pickle
from types import MappingProxyType

import numpy as np
import pettingzoo
import pytest
from mpe2 import simple_spread_v3
from pettingzoo.classic import rps_v2, tictactoe_v3
from pettingzoo.utils.conversions import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import (
    BaseParallelWrapper,
    BaseWrapper,
    MultiEpisodeEnv,
    MultiEpisodeParallelEnv,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)

import pz_policymap as pm
from tests.arrangements import ENVIRONMENTS
from tests.stub_envs import StubAEC, StubParallel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")

MOVES = (0, 3, 1, 4, 2)  # moves of tictactoe by which player_1 wins


def tags(infos):
    return {agent: info["policy_id"] for agent, info in infos.items()}


def win(env):
    """Plays tictactoe to its end, up to the dead steps."""
    for move in MOVES:
        env.step(move)
    return env


def rock(env):
    """Steps a Parallel environment once."""
    return env.step(dict.fromkeys(env.agents, 0))


def play_aec(env):
    """Plays 200 legal moves, or to the end, and checks every tag."""
    for agent in env.agent_iter(200):
        assert tags(env.infos) == {agent: env.policy_ids[agent] for agent in env.agents}
        observation, _, termination, truncation, info = env.last()
        assert info["policy_id"] == env.policy_ids[agent]
        masked = observation if isinstance(observation, dict) else info
        over = termination or truncation
        env.step(None if over else env.action_space(agent).sample(masked.get("action_mask")))


def play_parallel(env):
    """Plays 30 steps, or to the end, and checks every tag."""
    for _ in range(30):
        infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})[4]
        assert tags(infos) == {agent: env.policy_ids[agent] for agent in infos}
        assert set(env.agents) <= set(infos)


GENERATED = [
    pytest.param(environment, api, id=f"{environment.name}-{api}")
    for environment in ENVIRONMENTS
    if environment.name.startswith("example/")
    for api in environment.makers
]


def one_for_all(agents):
    """Returns one dict shared by all agents, as some environments do."""
    info = {}
    return dict.fromkeys(agents, info)


class TestTagsOutsideLast:
    class TagInLast(BaseWrapper):
        def last(self, observe=True):
            *rest, info = super().last(observe)
            return *rest, {**info, "policy_id": 7}

    def test_tag_survives_a_wrapper_outside(self):
        naive = OrderEnforcingWrapper(self.TagInLast(tictactoe_v3.raw_env()))
        naive.reset()
        assert naive.last()[4] == {}
        ours = OrderEnforcingWrapper(pm.wrap(tictactoe_v3.raw_env(), 1000))
        ours.reset()
        assert ours.last()[4] == {"policy_id": ours.policy_ids["player_1"]}

    def test_tag_survives_the_converter_to_parallel(self):
        naive = aec_to_parallel(self.TagInLast(rps_v2.env()))
        assert naive.reset()[1] == {"player_0": {}, "player_1": {}}
        wrapper = pm.wrap(rps_v2.env(), 1000)
        ours = aec_to_parallel(wrapper)
        assert tags(ours.reset()[1]) == wrapper.policy_ids
        assert tags(rock(ours)[4]) == wrapper.policy_ids

    def test_last_tags_the_selected_agent_only(self):
        class Untouchable(dict):
            def refuse(self, *args):
                raise RuntimeError("this info is not requested")

            __iter__ = __contains__ = __getitem__ = keys = refuse

        env = pm.wrap(StubAEC(), 1000)
        env.reset()
        env.unwrapped.infos["b"] = Untouchable()
        assert env.last()[4] == {"policy_id": env.policy_ids["a"]}
        with pytest.raises(RuntimeError, match="this info is not requested"):
            _ = env.infos


class TestBaseWrapperForwarding:
    def test_infos_before_reset_raise_instead_of_untagged_ones(self):
        class Property(BaseWrapper):
            @property
            def infos(self):
                return {agent: {**info, "policy_id": self.drawn[agent]} for agent, info in self.env.infos.items()}

        assert Property(tictactoe_v3.raw_env()).infos == {"player_1": {}, "player_2": {}}
        ours = pm.wrap(tictactoe_v3.raw_env(), 4)  # whose infos are there before any reset
        for read in (lambda: ours.infos, ours.last, lambda: ours.policy_ids):
            with pytest.raises(AttributeError, match="cannot be accessed before reset"):
                read()

    def test_infos_error_of_the_environment_keeps_its_message(self):
        class Broken(StubAEC):
            broken = False

            @property
            def infos(self):
                if self.broken:
                    raise AttributeError("the engine has stopped")
                return {"a": {}, "b": {}}

            @infos.setter
            def infos(self, value):
                pass

        env = pm.wrap(Broken(), 4)
        env.reset()
        env.unwrapped.broken = True
        with pytest.raises(AttributeError, match="the engine has stopped"):
            _ = env.infos

    @pytest.mark.parametrize(
        ("base", "ours"), [(BaseWrapper, pm.PolicyMapAEC), (BaseParallelWrapper, pm.PolicyMapParallel)]
    )
    def test_attribute_before_construction_raises_without_recursion(self, base, ours):
        with pytest.raises(RecursionError):
            _ = base.__new__(base).agents
        with pytest.raises(AttributeError, match="env"):
            _ = ours.__new__(ours).agents

    def test_private_names_are_not_forwarded(self):
        inner = pm.wrap(tictactoe_v3.raw_env(), 4)
        outer = OrderEnforcingWrapper(inner)
        outer.reset()
        assert outer.policy_ids == inner.policy_ids
        assert outer.assigner is inner.assigner
        with pytest.raises(AttributeError, match="private"):
            _ = outer._tags


class TestAssignedInfos:
    class Assigns(BaseWrapper):
        def reset(self, seed=None, options=None):
            super().reset(seed, options)
            self.infos = {agent: {**info, "policy_id": 7} for agent, info in self.env.infos.items()}

    def test_infos_do_not_list_removed_agents(self):
        naive, ours = self.Assigns(tictactoe_v3.raw_env()), pm.wrap(tictactoe_v3.raw_env(), 4)
        for env in (naive, ours):
            env.reset()
            win(env).step(None)
        assert len(naive.agents) == 1
        assert len(naive.infos) == 2
        assert list(ours.infos) == ours.agents
        ours.step(None)
        assert ours.infos == {}

    def test_infos_show_later_entries_of_the_environment(self):
        naive, ours = self.Assigns(tictactoe_v3.raw_env()), pm.wrap(tictactoe_v3.raw_env(), 4)
        for env in (naive, ours):
            env.reset()
            env.unwrapped.infos = {"player_1": {"hint": 3}, "player_2": {}}
        assert "hint" not in naive.infos["player_1"]
        assert ours.infos["player_1"] == ours.last()[4] == {"hint": 3, "policy_id": ours.policy_ids["player_1"]}

    def test_infos_property_cannot_be_assigned(self):
        env = pm.wrap(tictactoe_v3.raw_env(), 4)
        env.reset()
        with pytest.raises(AttributeError):
            env.infos = {}


class TestGeneratedAgents:
    @pytest.mark.parametrize("name", ["infos", "agents", "rewards", "terminations", "agent_selection", "policy_ids"])
    def test_wrap_reads_nothing_that_order_enforcing_forbids(self, name):
        env = pm.wrap(simple_spread_v3.env(), 4)
        with pytest.raises(AttributeError, match="before reset"):
            getattr(env, name)
        env.reset()
        getattr(env, name)

    @staticmethod
    def play(env):
        """Plays until agents have come late, checks every tag, and returns the agents of the first step."""
        for seed in range(20):
            result = env.reset(seed=seed)
            first = dict(env.policy_ids)
            if result is None:
                play_aec(env)
            else:
                play_parallel(env)
            if len(env.policy_ids) > len(first):
                return first
        return pytest.fail("no agent joined late")

    @pytest.mark.parametrize(("environment", "api"), GENERATED)
    def test_late_agents_get_policies_of_the_longer_draw(self, environment, api):
        env = pm.wrap(environment.make(api), 1000, seed=5, resample_every=1)
        assert not hasattr(env, "possible_agents")
        first = self.play(env)
        seats = list(env.policy_ids)
        assert seats[: len(first)] == list(first)
        draw = pm.Draw.at(5, seats, [0], env.assigner.episode, resample_every=1)
        assert env.policy_ids == dict(zip(seats, pm.Uniform(1000).assign(draw)[0].tolist(), strict=True))
        assert env.assigner.assignment() == env.policy_ids

    @pytest.mark.parametrize(("environment", "api"), GENERATED)
    def test_generated_agents_join_a_shared_policy(self, environment, api):
        env = pm.wrap(environment.make(api), pm.Uniform(1000, mix=False), seed=5, resample_every=1)
        self.play(env)
        assert len(set(env.policy_ids.values())) == 1


class TestDeadSteps:
    def test_infos_are_new_dicts_at_each_read(self):
        env = pm.wrap(tictactoe_v3.env(), 1000)
        env.reset()
        agent = win(env).agent_selection
        before = env.infos
        assert before[agent] is not env.infos[agent]
        env.step(None)
        assert agent in before
        assert agent not in env.infos
        assert env.last()[4] == {"policy_id": env.policy_ids[env.agent_selection]}

    def test_infos_of_agents_that_die_one_by_one_are_tagged(self):
        knights = next(e for e in ENVIRONMENTS if e.name.startswith("butterfly/knights_archers_zombies"))
        env = pm.wrap(knights.make("aec"), 1000)
        env.reset(seed=1)
        sizes = set()
        for agent in env.agent_iter():
            sizes.add(len(env.agents))
            assert tags(env.infos) == {agent: env.policy_ids[agent] for agent in env.agents}
            _, _, termination, truncation, info = env.last()
            assert info["policy_id"] == env.policy_ids[agent]
            env.step(None if termination or truncation else 5)  # which is to stand and wait
        assert sizes == {1, 2, 3, 4}
        assert env.infos == {}


class TestTerminateIllegal:
    """It ends the game on `env.unwrapped`, so the `step` of a wrapper inside is not called."""

    def test_terminate_illegal_ends_episodes_without_a_step_inside(self):
        class CountsEnds(BaseWrapper):
            ends = 0

            def step(self, action):
                super().step(action)
                self.ends += all(self.terminations.values())

        naive = TerminateIllegalWrapper(CountsEnds(tictactoe_v3.raw_env()), illegal_reward=-1)
        naive.reset()
        naive.step(0)
        naive.step(0)
        assert all(naive.terminations.values())
        assert naive.env.ends == 0

    def test_episodes_are_counted_by_reset_alone(self):
        wrapper = pm.wrap(tictactoe_v3.raw_env(), 1000, resample_every=1, seed=0)
        env = TerminateIllegalWrapper(wrapper, illegal_reward=-1)
        seen = []
        for episode in range(3):
            env.reset()
            seen.append(wrapper.policy_ids)
            assert wrapper.assigner.episode == episode
            env.step(0)
            assert wrapper.state_dict()["episode"] == episode - 1  # the unfinished one would be played again
            env.step(0)
            assert wrapper.state_dict()["episode"] == episode
            while env.agents:
                assert tags(env.infos) == {agent: seen[-1][agent] for agent in env.agents}
                env.step(None)
        expected = pm.Uniform(1000).assign(pm.Draw.at(0, wrapper.possible_agents, [0] * 3, [0, 1, 2], 1)).tolist()
        assert [list(assignment.values()) for assignment in seen] == expected


class TestSharedInfos:
    def test_infos_in_one_shared_dict_get_their_own_tags(self):
        shared = StubAEC({"a": 2, "b": 2, "c": 2}, infos=one_for_all)
        shared.reset()
        for number, agent in enumerate(shared.agents):
            shared.infos[agent]["policy_id"] = number
        assert tags(shared.infos) == {"a": 2, "b": 2, "c": 2}

        def by_seat(agents, draw):
            return {agent: number for number, agent in enumerate(agents)}

        env = pm.wrap(shared, by_seat)
        env.reset()
        assert tags(env.infos) == {"a": 0, "b": 1, "c": 2}
        parallel = pm.wrap(StubParallel(infos=lambda time, agents: one_for_all(agents)), by_seat)
        assert tags(parallel.reset()[1]) == tags(rock(parallel)[4]) == {"a": 0, "b": 1}

    @pytest.mark.parametrize("module", [tictactoe_v3, rps_v2])
    def test_persistent_info_dicts_are_never_written_to(self, module):
        env = pm.wrap(module.env(), 1000)
        env.reset()
        kept = dict(env.unwrapped.infos)
        env.infos[env.agents[0]]["mine"] = env.last()[4]["mine"] = 1
        for move in (0, 1):
            env.step(move)
            assert all(env.unwrapped.infos[agent] is info for agent, info in kept.items())
        assert env.unwrapped.infos == {agent: {} for agent in env.agents}
        assert tags(env.infos) == env.policy_ids


class TestMultiEpisodeEnv:
    """It resets after an end, with the seed and one more, and shows the outside one long episode."""

    @staticmethod
    def history(env, wrapper):
        """Plays three episodes in one; returns the assigner's state at each new assignment, and the observed tags."""
        known, seen = [], []

        def look(infos):
            assert tags(infos) == {agent: wrapper.policy_ids[agent] for agent in infos}
            entry = (wrapper.assigner.seed, wrapper.assigner.episode.item())
            if not known or known[-1] != entry:
                known.append(entry)
                seen.append(wrapper.policy_ids)

        start = env.reset(seed=5)
        if start is None:
            for _ in env.agent_iter():
                look(env.infos)
                over = env.last()[2] or env.last()[3]
                env.step(None if over else 0)
        else:
            look(start[1])
            while env.agents:
                look(rock(env)[4])
        return known, seen

    @pytest.fixture(params=["aec", "parallel"])
    def stack(self, request):
        if request.param == "aec":
            return lambda env: MultiEpisodeEnv(env, 3), lambda: rps_v2.env(max_cycles=2)
        return lambda env: MultiEpisodeParallelEnv(env, 3), lambda: rps_v2.parallel_env(max_cycles=2)

    def test_wrapper_inside_restarts_at_every_episode(self, stack):
        several, make = stack
        wrapper = pm.wrap(make(), 1000, resample_every=1)
        known, _ = self.history(several(wrapper), wrapper)
        assert known == [(5, 0), (6, 0), (7, 0)]

    def test_pinned_wrapper_inside_keeps_its_cadence(self, stack):
        several, make = stack
        wrapper = pm.wrap(make(), 1000, resample_every=2, seed=0)
        known, seen = self.history(several(wrapper), wrapper)
        assert known == [(0, 0), (0, 1), (0, 2)]
        assert seen[0] == seen[1] != seen[2]

    def test_wrapper_outside_sees_one_episode(self, stack):
        several, make = stack
        wrapper = pm.wrap(several(make()), 1000, resample_every=1)
        known, _ = self.history(wrapper, wrapper)
        assert known == [(5, 0)]


class TestConvertedInfos:
    fails = pytest.mark.skipif(
        tuple(map(int, pettingzoo.__version__.split(".")[:2])) < (1, 27),
        reason="before PettingZoo 1.27 the converter fails on such infos with a TypeError",
    )

    @staticmethod
    def lacks_b(time, agents):
        return {"a": {"hp": 3}}

    @fails
    def test_bare_infos_without_an_agent_are_nested_by_the_converter(self):
        env = parallel_to_aec(StubParallel(infos=self.lacks_b))
        env.reset()
        assert env.infos == {"a": {"a": {"hp": 3}}, "b": {"a": {"hp": 3}}}

    def test_wrapped_infos_have_all_agents_and_are_not_nested(self):
        wrapper = pm.wrap(StubParallel(infos=self.lacks_b), 1000)
        env = parallel_to_aec(wrapper)
        env.reset()
        a, b = wrapper.policy_ids.values()
        assert env.infos == {"a": {"hp": 3, "policy_id": a}, "b": {"policy_id": b}}

    @fails
    def test_infos_with_other_keys_are_tagged_outside_the_converter(self):
        def common(time, agents):
            return {**{agent: {} for agent in agents}, "common": {"time": time}}

        inside = pm.wrap(StubParallel(infos=common), 1000)
        env = parallel_to_aec(inside)
        env.reset()
        assert env.infos["a"]["common"] == {"time": 0}
        assert tags({agent: env.infos["b"][agent] for agent in env.agents}) == inside.policy_ids
        outside = pm.wrap(parallel_to_aec(StubParallel(infos=common)), 1000)
        outside.reset()
        assert tags(outside.infos) == outside.policy_ids

    def test_agents_that_are_not_strings_fail_in_the_converter_only(self):
        class Numbered(StubAEC):
            metadata = MappingProxyType({"name": "numbered_v0", "is_parallelizable": True})

        env = pm.wrap(Numbered({1: 2, 2: 2}), 1000)
        env.reset()
        assert tags(env.infos) == env.policy_ids
        for inner in (Numbered({1: 2, 2: 2}), env):
            with pytest.raises(TypeError, match="keywords must be strings"):
                aec_to_parallel(inner).reset()


class TestTerminalInfos:
    def test_terminal_infos_of_removed_agents_are_tagged(self):
        class TagsTheLiving(BaseParallelWrapper):
            def step(self, actions):
                *rest, infos = super().step(actions)
                return *rest, {**infos, **{agent: {**infos[agent], "policy_id": 7} for agent in self.agents}}

        naive = TagsTheLiving(aec_to_parallel(rps_v2.env(max_cycles=1)))
        naive.reset()
        assert rock(naive)[4] == {"player_0": {}, "player_1": {}}

    @pytest.mark.parametrize("inside", [True, False])
    def test_infos_returned_by_the_converter_are_all_tagged(self, inside):
        bare = rps_v2.env(max_cycles=1)
        env = aec_to_parallel(pm.wrap(bare, 1000)) if inside else pm.wrap(aec_to_parallel(bare), 1000)
        env.reset()
        infos = rock(env)[4]
        assert env.agents == []
        assert tags(infos) == pm.find_assigner(env).assignment()


class TestTurnBasedConverter:
    def test_turn_based_converter_writes_into_new_dicts(self):
        bare = turn_based_aec_to_parallel(tictactoe_v3.env())
        wrapper = pm.wrap(tictactoe_v3.env(), 1000)
        ours = turn_based_aec_to_parallel(wrapper)
        for env in (bare, ours):
            env.reset()
            env.step({"player_1": 0})
        assert bare.unwrapped.infos["player_1"] == {"active_agent": "player_2"}
        assert ours.unwrapped.infos == {"player_1": {}, "player_2": {}}
        infos = ours.step({"player_2": 1})[4]
        assert tags(infos) == wrapper.policy_ids
        assert infos["player_1"]["active_agent"] == "player_1"

    def test_turn_based_converter_four_values_are_passed_on(self):
        env = pm.wrap(turn_based_aec_to_parallel(tictactoe_v3.env()), 1000)
        env.reset()
        for number, move in enumerate(MOVES):
            infos = env.step({f"player_{1 + number % 2}": move})[4]
            assert tags(infos) == env.policy_ids
        assert env.agents == []
        assert env.step({}) == ({}, {}, {}, {})


class TestFindAssignerThroughConverters:
    @pytest.mark.parametrize(
        ("convert", "make"),
        [
            (aec_to_parallel, rps_v2.env),
            (parallel_to_aec, rps_v2.parallel_env),
            (turn_based_aec_to_parallel, tictactoe_v3.env),
        ],
    )
    def test_find_assigner_looks_through_a_converter(self, convert, make):
        inner = pm.wrap(make(), 4)
        env = convert(inner)
        env.reset()
        assert not hasattr(env, "policy_ids")
        assert pm.find_assigner(env) is inner.assigner
        assert pm.find_assigner(env).assignment() == inner.policy_ids

    def test_find_assigner_looks_through_several_converters(self):
        inner = pm.wrap(rps_v2.env(), 4)
        env = OrderEnforcingWrapper(parallel_to_aec(BaseParallelWrapper(aec_to_parallel(inner))))
        assert pm.find_assigner(env) is inner.assigner


class TestPickledEzPickleEnvironments:
    """EzPickle recreates the environment but keeps the wrapper's state, so the episode begins at the next reset."""

    @pytest.mark.parametrize("played", [0, 1, 3])
    def test_pickled_copy_continues_at_its_next_reset(self, played):
        env = pm.wrap(simple_spread_v3.env(), 1000, resample_every=2, seed=0)
        for _ in range(played):
            env.reset()
        copy = pickle.loads(pickle.dumps(env))
        assert not hasattr(copy.unwrapped, "infos")
        for _ in range(3):
            env.reset()
            copy.reset()
            assert tags(copy.infos) == copy.policy_ids == env.policy_ids
            assert copy.assigner.episode == env.assigner.episode

    def test_pickled_copy_before_its_reset_raises(self):
        env = pm.wrap(simple_spread_v3.env(), 1000, seed=0)
        env.reset()
        env.step(0)
        copy = pickle.loads(pickle.dumps(env))
        assert copy.policy_ids == env.policy_ids
        with pytest.raises(AttributeError, match="infos"):
            _ = copy.infos
        assert copy.state_dict() == env.state_dict()
        assert copy.state_dict()["episode"] == -1  # the unfinished episode would be repeated
        copy.reset()
        assert copy.state_dict()["episode"] == 0  # and now the next one


class TestGeneratorOfTheEnvironment:
    class DrawsFromIt(BaseParallelWrapper):
        def reset(self, seed=None, options=None):
            observations, infos = super().reset(seed, options)
            policy = int(self.unwrapped.np_random.integers(4))
            return observations, {agent: {"policy_id": policy} for agent in infos}

    @staticmethod
    def observations(env):
        """Returns what agent_0 sees first in a seeded episode and in the next."""
        return [env.reset(seed=seed)[0]["agent_0"].tolist() for seed in (7, None)]

    def test_assignments_leave_the_environments_generator_alone(self):
        bare = self.observations(simple_spread_v3.parallel_env())
        naive = self.observations(self.DrawsFromIt(simple_spread_v3.parallel_env()))
        assert naive[0] == bare[0]
        assert naive[1] != bare[1]
        assert self.observations(pm.wrap(simple_spread_v3.parallel_env(), 4, resample_every=1)) == bare

    def test_assignments_use_another_stream_than_the_environments_seed(self):
        env = simple_spread_v3.parallel_env()
        env.reset(seed=7)
        place = env.unwrapped.world.agents[0].state.p_pos.tolist()
        again = np.random.default_rng(7).uniform(-1, 1, 2).tolist()
        assert place == again
        wrapper = pm.wrap(env, 4)
        wrapper.reset(seed=7)
        ours = pm.Draw.at(wrapper.assigner.seed, wrapper.possible_agents, np.arange(8), np.zeros(8, np.int64)).bits()
        for generator in (np.random.PCG64(7), np.random.Philox(7)):
            assert not np.isin(ours, generator.random_raw(100_000) >> np.uint64(11)).any()
