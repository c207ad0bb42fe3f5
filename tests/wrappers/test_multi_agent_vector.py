"""`PolicyMapMultiAgentVector`: batched simulators whose dicts go from agent to arrays."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import pz_policymap as pm
from tests.simulators import AGENTS, Gym, ScriptedSimulator

FLAGS = ["agents", "all", "array", "done"]


def wrapped(num_envs=3, ends=(), flags="agents", mode="SameStep", mapping=10**6, **settings):
    simulator = {name: settings.pop(name) for name in ("convert", "infos") if name in settings}
    env = ScriptedSimulator(num_envs, ends, flags, mode, **simulator)
    return pm.wrap(env, mapping, **{"seed": 0, "resample_every": 1, **settings})


def drawn(num_envs=3, episodes=6, seed=0, resample_every=1):
    """Policies by episode, environment and agent, as separate assigners of one environment draw them."""
    rows = []
    for index in range(num_envs):
        one = pm.PolicyAssigner(10**6, AGENTS, seed=seed, env_index=index, resample_every=resample_every)
        rows.append([one.begin_episodes()[0] for _ in range(episodes)])
    return np.array(rows).transpose(1, 0, 2)


def expected(episodes):
    """The policies of each environment at its episode."""
    table = drawn(len(episodes))
    return [table[episode, env].tolist() for env, episode in enumerate(episodes)]


def tags(infos):
    return np.stack([infos[agent]["policy_id"] for agent in AGENTS], 1).tolist()


def everyone(*envs):
    return [(env, agent) for env in envs for agent in AGENTS]


class TestEnds:
    @pytest.mark.parametrize("flags", FLAGS)
    def test_same_step_tags_the_next_episode_and_keeps_the_finished_in_final_info(self, flags):
        env = wrapped(3, [[1], [], [0, 1]], flags)
        assert tags(env.reset()[1]) == expected([0, 0, 0])
        infos = env.step(0)[-1]
        assert tags(infos) == env.policy_ids.tolist() == expected([0, 1, 0])
        final = infos["blue"]["final_info"]
        assert final["policy_id"].tolist() == drawn()[0, :, 1].tolist()
        assert final["_policy_id"].tolist() == [False, True, False]
        assert "final_info" not in env.step(0)[-1]["blue"]
        assert tags(env.step(0)[-1]) == expected([1, 2, 0])

    @pytest.mark.parametrize("flags", FLAGS)
    def test_next_step_tags_the_next_episode_one_step_later(self, flags):
        env = wrapped(2, [[1]], flags, "NextStep")
        env.reset()
        assert [tags(env.step(0)[-1]) for _ in range(3)] == [expected(e) for e in ([0, 0], [0, 1], [0, 1])]

    def test_episode_ends_when_each_agent_has_ended_once(self):
        env = wrapped(2, [[(0, "red")], everyone(1)[:2], [(0, "blue"), (0, "green"), (1, "red")], [(1, "green")]])
        env.reset()
        episodes = ([0, 0], [0, 0], [1, 0], [1, 1])
        assert [tags(env.step(0)[-1]) for _ in episodes] == [expected(each) for each in episodes]

    def test_agents_without_flags_have_not_ended(self):
        env = wrapped(1, [everyone(0)])
        step = env.unwrapped_step = env.env.step
        env.env.step = lambda actions: tuple(
            {agent: flag for agent, flag in part.items() if agent != "blue"} if place in (2, 3) else part
            for place, part in enumerate(step(actions))
        )
        env.reset()
        assert tags(env.step(0)[-1]) == expected([0])

    def test_nan_flags_of_dead_agents_count_as_ended(self):
        env = wrapped(2)
        env.reset()
        flags = {agent: np.array([1.0, 0.0]) for agent in AGENTS} | {"blue": np.array([np.nan, 0.0])}
        result = ({}, {}, flags, {agent: np.zeros(2) for agent in AGENTS}, {})
        env.env.step = lambda actions: result
        assert tags(env.step(0)[-1]) == expected([1, 0])

    def test_reset_buf_of_the_simulator_decides(self):
        env = wrapped(2, [everyone(0), []])
        env.reset()
        env.env.reset_buf = np.array([False, True])  # as in Isaac Lab: whatever the flags of the agents
        assert tags(env.step(0)[-1]) == expected([0, 1])

    def test_reset_at_begins_the_episode_of_one_environment(self):
        env = wrapped(3, [everyone(1)], mode="Disabled")
        env.reset()
        assert tags(env.step(0)[-1]) == expected([0, 0, 0])
        observations, infos = env.reset_at(1)
        assert (tags(infos), sorted(observations), env.env.calls[-1]) == (expected([0, 1, 0]), sorted(AGENTS), 1)

    def test_reset_mask_begins_the_episodes_of_its_environments(self):
        env = wrapped(3, mode="Disabled")
        env.reset()
        options = {"reset_mask": np.array([True, False, True]), "level": 3}
        assert tags(env.reset(options=options)[1]) == expected([1, 0, 1])
        assert env.env.calls[-1][1] is not options
        assert env.env.calls[-1][1].keys() == {"reset_mask", "level"}

    @pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
    def test_reset_mask_of_a_simulator_that_resets_itself_is_refused(self, mode):
        env = wrapped(3, mode=mode)
        env.reset()
        with pytest.raises(ValueError, match=r"options\['reset_mask'\] must be left out"):
            env.reset(options={"reset_mask": np.array([True, False, True])})

    @pytest.mark.parametrize(
        ("mask", "error", "match"),
        [
            ([1, 0], TypeError, r"options\['reset_mask'\] must be a boolean array"),
            ([True], ValueError, r"must have shape \(2,\), got \(1,\)"),
            ([True, False], ValueError, "must select all rows at the first reset"),
        ],
    )
    def test_invalid_masks_are_refused_before_the_simulator_is_reset(self, mask, error, match):
        env = wrapped(2, mode="Disabled")
        with pytest.raises(error, match=match):
            env.reset(options={"reset_mask": np.array(mask)})
        assert env.env.calls == []

    def test_end_episodes_begins_the_next_episode_of_agents_that_respawn(self):
        env = wrapped(2, [everyone(0), everyone(0)], mode="SameStep", autoreset_mode="Disabled")
        env.reset()
        assert [tags(env.step(0)[-1]) for _ in range(2)] == [expected([0, 0])] * 2
        assert env.end_episodes([1]).tolist() == expected([0, 1])

    @pytest.mark.parametrize(("mode", "at"), [("SameStep", [2, 4, 6]), ("NextStep", [3, 6])])
    def test_episodes_of_fixed_length_end_without_flags(self, mode, at):
        env = wrapped(2, mode=mode, episode_length=2)
        env.env.step = lambda actions: ({}, {}, None, None, {})
        env.reset()
        seen = [tags(env.step(0)[-1]) for _ in range(6)]
        assert seen == [expected([sum(step >= begun for begun in at)] * 2) for step in range(1, 7)]

    def test_episodes_of_fixed_length_begin_again_at_each_reset(self):
        env = wrapped(2, mode="Disabled", episode_length=2)
        env.env.step = lambda actions: ({}, {}, None, None, {})
        env.reset()
        env.step(0)
        env.reset_at(0)
        ended = []
        for _ in range(3):
            env.step(0)
            ended.append(env.episodes.over().tolist())
        assert ended == [[False, True], [True, True], [True, True]]
        env.reset_at(1)
        env.step(0)
        assert env.episodes.over().tolist() == [True, False]

    def test_flags_of_another_shape_are_refused(self):
        env = wrapped(2, flags="array", mode="SameStep")
        env.reset()
        env.env.step = lambda actions: ({}, {}, np.zeros(3, bool), {})
        with pytest.raises(ValueError, match=r"done flags must have shape \(2,\), got \(3,\)"):
            env.step(0)


class TestAssignments:
    def test_ids_are_those_of_assignments_and_env_fns_in_every_episode(self):
        env = wrapped(4, [[0, 3], [3], [1, 2]], "all", mapping=9, resample_every=2, env_index=5)
        env.reset()
        episode = np.zeros(4, int)
        for ends in ([0, 3], [3], [1, 2], []):
            env.step(0)
            episode[ends] += 1
            settings = {"seed": 0, "resample_every": 2}
            pure = pm.assignments(9, AGENTS, env_index=np.arange(5, 9), episode=episode, **settings)
            assert env.policy_ids.tolist() == pure.tolist()
        assert env.assigner.episode.tolist() == episode.tolist()

    def test_arrays_are_read_only_and_never_change(self):
        env = wrapped(2, [everyone(0)])
        infos = env.reset()[1]
        ids, of_red = env.policy_ids, infos["red"]["policy_id"]
        kept = ids.copy(), of_red.copy()
        env.step(0)
        for array, before in zip((ids, of_red), kept, strict=True):
            assert (array == before).all()
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        assert env.policy_ids is not ids
        assert (of_red.dtype, of_red.shape, ids.shape) == (np.int32, (2,), (2, 3))

    @pytest.mark.parametrize("infos", [{"score": np.ones(2)}, {"red": {"score": np.ones(2)}, "step": 3}])
    def test_infos_pass_and_get_one_entry_per_agent(self, infos):
        kept = copy.deepcopy(infos)
        env = wrapped(2, infos=infos)
        for tagged in (env.reset()[1], env.step(0)[-1]):
            assert tagged.keys() == infos.keys() | set(AGENTS)
            assert tags(tagged) == expected([0, 0])
            assert all(tagged["red"][key] is value for key, value in infos.get("red", {}).items())
        assert infos.keys() == kept.keys()
        assert infos.get("red", {}).keys() == kept.get("red", {}).keys()

    def test_final_info_of_the_simulator_is_tagged_with_the_policies_before(self):
        infos = {agent: {"final_info": {"won": np.ones(2)}} for agent in AGENTS}
        env = wrapped(2, infos=infos)
        env.reset()
        final = env.step(0)[-1]["red"]["final_info"]
        assert final["policy_id"].tolist() == drawn(2)[0, :, 0].tolist()
        assert final.keys() == {"won", "policy_id", "_policy_id"}

    def test_policy_ids_as_numpy_are_the_ids(self):
        env = wrapped(2)
        observations, _ = env.reset()
        assert env.policy_ids_as(observations) is env.policy_ids

    def test_policy_ids_as_tensors_are_made_once_per_change(self):
        torch = pytest.importorskip("torch")
        env = wrapped(2, [[], everyone(0)], convert=torch.as_tensor)
        observations, _ = env.reset()
        first = env.policy_ids_as(observations)
        assert (first.dtype, first.tolist()) == (torch.int64, env.policy_ids.tolist())
        env.step(0)
        assert env.policy_ids_as(observations["red"]) is first
        env.step(0)
        assert env.policy_ids_as(observations).tolist() == env.policy_ids.tolist() != first.tolist()

    def test_vectors_of_gymnasium_have_policy_ids_as_tensors(self):
        torch = pytest.importorskip("torch")
        env = pm.wrap(gymnasium.make_vec("CartPole-v1", 4), 8, seed=0)
        env.reset(seed=1)
        assert env.policy_ids_as(torch.zeros(1)).tolist() == env.policy_ids.tolist()

    def test_forced_matchups_hold_for_one_episode(self):
        env = wrapped(2, [everyone(1)], mapping=7)
        free = pm.assignments(7, AGENTS, seed=0, env_index=[0, 1], episode=[[0], [1], [2]], resample_every=1)
        matrix = np.array([[1, -1, 2], [-1, -1, 0]])
        env.reset(options={"policy_ids": matrix})
        forced = np.where(matrix < 0, free[0], matrix)
        assert env.policy_ids.tolist() == forced.tolist()
        assert env.env.calls[-1] == (None, None)
        assert tags(env.step(0)[-1]) == [forced[0].tolist(), free[1, 1].tolist()]
        env.reset(options={"policy_ids": {"blue": 4}})
        assert env.policy_ids[:, 1].tolist() == [4, 4]

    def test_forced_matchups_hold_for_an_environment_reset_alone(self):
        env = wrapped(2, mode="Disabled", mapping=7)
        env.reset()
        before = env.policy_ids
        env.env.reset_at = lambda index, options=None: env.env.reset(options=options)
        env.reset_at(1, options={"policy_ids": 3, "level": 2})
        assert env.policy_ids.tolist() == [before[0].tolist(), [3, 3, 3]]
        assert env.env.calls[-1] == (None, {"level": 2})

    def test_another_mapping_is_followed_from_the_next_draw(self):
        env = wrapped(2, [everyone(0)], mapping=pm.Fixed(0))
        env.reset()
        env.set_mapping(pm.Fixed(5))
        env.step(0)
        assert env.policy_ids.tolist() == [[5] * 3, [0] * 3]

    @pytest.mark.parametrize("seed", [4, [4, 5, 6]])
    def test_seed_restarts_the_schedule_of_an_unpinned_wrapper(self, seed):
        env = wrapped(3, seed=None)
        env.reset(seed=seed)
        first = env.policy_ids
        env.reset()
        assert env.policy_ids.tolist() != first.tolist()
        env.reset(seed=seed)
        assert env.policy_ids.tolist() == first.tolist()
        assert env.env.calls[-1][0] is seed


class TestState:
    @pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
    def test_copy_continues_as_the_original(self, clone):
        env = wrapped(2, [[], everyone(0), everyone(0, 1)])
        env.reset()
        env.step(0)
        twin = clone(env)
        for _ in range(3):
            assert tags(env.step(0)[-1]) == tags(twin.step(0)[-1])
        with pytest.raises(ValueError, match="read-only"):
            twin.policy_ids[0] = 0
        assert not twin.step(0)[-1]["red"]["_policy_id"].flags.writeable

    def test_resumed_run_repeats_unfinished_episodes(self):
        env = wrapped(2, [everyone(0)])
        env.reset()
        env.step(0)
        other = wrapped(2)
        other.reset()
        other.load_state_dict(env.state_dict())
        assert tags(other.reset()[1]) == expected([1, 0])

    def test_step_after_a_failed_draw_needs_a_whole_reset(self):
        failing = []

        def rule(agents, draw):
            if failing:
                raise RuntimeError("no policies")
            return dict.fromkeys(agents, 0)

        env = wrapped(2, [everyone(0)], mapping=pm.FromFunction(rule, 2))
        env.reset()
        failing.append(True)
        with pytest.raises(ValueError, match="no policies"):
            env.step(0)
        with pytest.raises(ResetNeeded, match="step cannot be called"):
            env.step(0)
        failing.clear()
        env.reset()
        env.step(0)


class TestFaults:
    def test_step_before_the_first_reset_is_refused(self):
        env = wrapped(2)
        for call in (lambda: env.step(0), lambda: env.reset_at(0), lambda: env.end_episodes([0])):
            with pytest.raises(ResetNeeded, match="before reset"):
                call()
        with pytest.raises(AttributeError, match="before reset"):
            _ = env.policy_ids

    @pytest.mark.parametrize("infos", [{"red": {"policy_id": 1}}, {"red": {"_policy_id": 1}}])
    def test_info_key_in_use_is_refused(self, infos):
        env = wrapped(2, infos=infos)
        with pytest.raises(ValueError, match="already used by the environment: the info of 'red'"):
            env.reset()
        with pytest.raises(ResetNeeded):
            env.step(0)

    @pytest.mark.parametrize(
        ("outcome", "error", "match"),
        [
            (([np.zeros((2, 2))], {}), TypeError, "observations must be a dict from agent to arrays"),
            (({"red": np.zeros((2, 2))}, None), TypeError, "infos must be a dict from agent to arrays, got None"),
            (({"red": np.zeros((2, 2))}, {"red": 3}), TypeError, r"infos\['red'\] must be a dict, got 3"),
            (({"red": np.zeros((3, 2))}, {}), ValueError, r"must have 2 rows, one per environment, got shape \(3, 2\)"),
        ],
    )
    def test_other_layouts_are_refused(self, outcome, error, match):
        env = wrapped(2)
        env.env.reset = lambda: outcome
        with pytest.raises(error, match=match):
            env.reset()

    def test_agents_that_the_simulator_does_not_have_are_refused_at_construction(self):
        with pytest.raises(ValueError, match=r"agents must name agents of the environment, .*, got \['red', 'B"):
            wrapped(2, agents=["red", "Blue", "green"])
        assert wrapped(2, agents=["blue", "red"]).agents == ("blue", "red")

    def test_agents_that_no_observation_names_are_refused_at_the_first_reset(self):
        class Unnamed(ScriptedSimulator):
            possible_agents = None

        env = pm.PolicyMapMultiAgentVector(Unnamed(2), 4, agents=["red", "Blue", "green"])
        with pytest.raises(ValueError, match=r"agents must name agents of the environment, .*, got \['red', 'B"):
            env.reset()
        with pytest.raises(ResetNeeded):
            env.step(0)
        late = pm.PolicyMapMultiAgentVector(Unnamed(2), 4, agents=[*AGENTS, "late"])
        assert "late" in late.reset()[1]

    def test_mode_that_is_not_declared_must_be_given(self):
        with pytest.raises(ValueError, match="autoreset_mode must be given"):
            wrapped(2, mode=None)
        assert wrapped(2, mode=None, autoreset_mode="SameStep").autoreset_mode.value == "SameStep"

    def test_objects_without_environments_or_agents_are_refused(self):
        for simulator in (object(), Gym(num_envs=3)):
            with pytest.raises(TypeError, match="env must have num_envs and possible_agents"):
                pm.PolicyMapMultiAgentVector(simulator, 2)
        with pytest.raises(TypeError, match="or a simulator with num_envs and agents"):
            pm.wrap(object(), 2)

    @pytest.mark.parametrize("length", [0, 1.5])
    def test_invalid_episode_length_is_named(self, length):
        with pytest.raises((TypeError, ValueError), match="episode_length must be"):
            wrapped(2, episode_length=length)


class Named:
    def __init__(self, name):
        self.name = name


class Hidden(Gym):
    @property
    def unwrapped(self):
        return self.inner


@pytest.mark.parametrize(
    "env",
    [
        Gym(num_envs=4, possible_agents=["a", "b"]),
        Gym(num_envs=1, possible_agents=["a", "b"]),
        Gym(num_envs=np.int64(4), agents=[Named("a"), Named("b")]),
        Hidden(inner=Gym(num_envs=4, agents=["a", "b"])),
    ],
)
def test_simulators_are_wrapped_by_their_attributes(env):
    env.metadata = {"autoreset_mode": "SameStep"}
    wrapper = pm.wrap(env, 3)
    assert isinstance(wrapper, pm.PolicyMapMultiAgentVector)
    assert wrapper.agents == ("a", "b")
    assert pm.find_assigner(wrapper) is wrapper.assigner
    assert "Uniform(3)" in repr(wrapper)


@pytest.mark.parametrize(
    "attributes",
    [{"num_envs": 4}, {"num_envs": True, "possible_agents": ["a", "b"]}, {"possible_agents": ["a", "b"]}],
)
def test_environments_with_half_of_the_attributes_are_refused_or_single(attributes):
    with pytest.raises(TypeError, match="env must have a single agent"):
        pm.wrap(Gym(**attributes), 3)


def test_attributes_are_those_of_the_simulator():
    env = wrapped(2)
    assert env.possible_agents is AGENTS
    for name in ("_hidden", "env_that_is_missing"):
        with pytest.raises(AttributeError):
            getattr(env, name)


def test_options_of_a_reset_reach_the_simulator():
    class Optioned(ScriptedSimulator):
        def reset(self, *, seed=None, options=None):
            self.options = options
            return super().reset(seed=seed, options=options)

    env = pm.wrap(Optioned(2, [], "agents", "SameStep", np.array, None), 4, seed=0)
    env.reset(options={"level": 3, "policy_ids": 1})
    assert env.env.options == {"level": 3}
    assert (env.policy_ids == 1).all()


def test_reset_with_return_info_is_asked_for_infos():
    class AsVmas(ScriptedSimulator):
        def reset(self, *, seed=None, return_info=False):
            observations, infos = super().reset(seed=seed)
            return (observations, infos) if return_info else observations

    env = pm.wrap(AsVmas(2, [], "agents", "SameStep", infos={agent: {"speed": 3} for agent in AGENTS}), 4)
    assert "speed" in env.reset(seed=0)[1][AGENTS[0]]


def test_simulator_that_takes_no_seed_is_reset_with_one():
    class Unseeded(ScriptedSimulator):
        def reset(self):
            return super().reset()

    env = pm.wrap(Unseeded(2), 4, resample_every=1)
    env.reset(seed=5)
    expected = pm.assignments(4, AGENTS, seed=5, env_index=[0, 1], resample_every=1)
    np.testing.assert_array_equal(env.policy_ids, expected)
