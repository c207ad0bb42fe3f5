"""`PolicyMapVector`: the three autoreset modes, masks, groups of rows, list infos, seeds, faults, copies."""

import copy
import pickle
from functools import partial

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from mpe2 import simple_spread_v3
from supersuit import concat_vec_envs_v1
from supersuit.vector import ConcatVecEnv, MarkovVectorEnv

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.stub_envs import StubParallel
from tests.vector_envs import KNOWS_MODES, Countdown, Mortal, ScriptedVector, in_mode, needs_modes

MODES = list(Autoreset)
NEXT_STEP, SAME_STEP, DISABLED = MODES


def scripted(num_envs, ends=(), mode=NEXT_STEP, mapping=10**6, infos=None, fail_at=(), declared=True, **settings):
    env = ScriptedVector(num_envs, ends, mode if declared else None, infos, fail_at)
    return pm.wrap(env, mapping, **{"seed": 0, "resample_every": 1, **settings})


def table(num_envs, agents=("agent_0",), episodes=8, mapping=10**6, seed=0, resample_every=1):
    """The policy of each row in each episode, `[episode][row]`, as drawn by one assigner per environment."""
    rows = []
    for index in range(num_envs):
        one = pm.PolicyAssigner(mapping, agents, seed=seed, env_index=index, resample_every=resample_every)
        rows.append([one.begin_episodes()[0] for _ in range(episodes)])
    return np.array(rows).transpose(1, 0, 2).reshape(episodes, -1)


def at(drawn, episodes):
    """Row i's policy at its episode."""
    return [int(drawn[e, row]) for row, e in enumerate(episodes)]


def ids(infos):
    return infos["policy_id"].tolist()


class TestModes:
    def test_next_step_new_tag_comes_with_the_reset_observation(self):
        env, drawn = scripted(3, [[1], [], [0, 2]], NEXT_STEP), table(3)
        assert ids(env.reset()[1]) == at(drawn, [0, 0, 0])
        assert ids(env.step(0)[4]) == at(drawn, [0, 0, 0])  # row 1 ends: its terminal observation
        assert ids(env.step(0)[4]) == at(drawn, [0, 1, 0])  # and here is the first of its next episode
        assert ids(env.step(0)[4]) == at(drawn, [0, 1, 0])
        assert ids(env.step(0)[4]) == at(drawn, [1, 1, 1])
        assert ids(env.step(0)[4]) == at(drawn, [1, 1, 1])

    def test_next_step_episode_of_one_step_ends_after_its_reset(self):
        env, drawn = scripted(1, [[0], [], [0], []], NEXT_STEP), table(1)
        env.reset()
        assert [ids(env.step(0)[4]) for _ in range(4)] == [at(drawn, [e]) for e in (0, 1, 1, 2)]

    def test_same_step_tags_infos_with_the_new_and_final_info_with_the_old_policy(self):
        env, drawn = scripted(3, [[1], [1, 2], []], SAME_STEP), table(3)
        env.reset()
        infos = env.step(0)[4]
        assert ids(infos) == at(drawn, [0, 1, 0])
        assert infos["final_info"]["policy_id"][1] == drawn[0, 1]
        infos = env.step(0)[4]
        assert ids(infos) == at(drawn, [0, 2, 1])
        assert infos["final_info"]["_policy_id"].tolist() == infos["_final_info"].tolist() == [False, True, True]
        assert infos["final_info"]["policy_id"][1:].tolist() == [drawn[1, 1], drawn[0, 2]]
        infos = env.step(0)[4]
        assert ids(infos) == at(drawn, [0, 2, 1])
        assert "final_info" not in infos

    def test_final_info_is_kept_and_the_environments_unchanged(self):
        said = {"x": np.arange(2), "final_info": {"r": np.ones(2)}, "_final_info": np.array([True, False])}
        kept = {**said, "final_info": dict(said["final_info"])}
        env = scripted(2, [[0]], SAME_STEP, infos=said)
        env.reset()
        final = env.step(0)[4]["final_info"]
        assert set(final) == {"r", "policy_id", "_policy_id"}
        assert said.keys() == kept.keys()
        assert said["final_info"].keys() == {"r"}

    def test_disabled_autoreset_begins_episodes_at_reset_only(self):
        env, drawn = scripted(2, [[1], [0]], DISABLED), table(2)
        env.reset()
        assert [ids(env.step(0)[4]) for _ in range(3)] == [at(drawn, [0, 0])] * 3
        assert ids(env.reset(options={"reset_mask": np.array([False, True])})[1]) == at(drawn, [0, 1])
        assert ids(env.reset()[1]) == at(drawn, [1, 2])

    @pytest.mark.parametrize("mode", MODES)
    def test_reset_mask_begins_the_episodes_of_its_rows(self, mode):
        env, drawn = scripted(3, [[0, 1]], mode), table(3)
        env.reset()
        env.step(0)
        options = {"reset_mask": np.array([True, False, True]), "level": 3}
        infos = env.reset(options=options)[1]
        begun = [2, 1, 1] if mode is SAME_STEP else [1, 0, 1]
        assert ids(infos) == at(drawn, begun)
        assert options.keys() == {"reset_mask", "level"}, "the caller's dict is not taken from"
        assert env.unwrapped.mask.tolist() == [True, False, True]
        assert env.unwrapped.options == {"level": 3}
        if mode is NEXT_STEP:
            begun = [1, 1, 1]  # row 1, which had ended, is still reset by the next step
        assert ids(env.step(0)[4]) == at(drawn, begun)

    def test_full_reset_cancels_pending_next_step_resets(self):
        env, drawn = scripted(2, [[0]], NEXT_STEP), table(2)
        env.reset()
        env.step(0)
        env.reset()
        assert ids(env.step(0)[4]) == at(drawn, [1, 1])

    @pytest.mark.parametrize(
        ("mask", "error", "match"),
        [
            ([1, 0], TypeError, r"options\['reset_mask'\] must be a boolean array"),
            ([True], ValueError, r"must have shape \(2,\), got \(1,\)"),
        ],
    )
    def test_reset_mask_invalid_raises_before_the_environment_is_reset(self, mask, error, match):
        env = scripted(2)
        env.reset()
        with pytest.raises(error, match=match):
            env.reset(options={"reset_mask": np.array(mask)})
        assert env.unwrapped.resets == 0
        assert env.assigner.episode.tolist() == [0, 0]

    def test_reset_mask_of_some_rows_at_the_first_reset_raises(self):
        env = scripted(2)
        with pytest.raises(ValueError, match="all rows at the first reset"):
            env.reset(options={"reset_mask": np.array([True, False])})
        env.reset(options={"reset_mask": np.array([True, True])})
        assert env.assigner.episode.tolist() == [0, 0]

    @pytest.mark.parametrize("given", ["SameStep", pytest.param("AutoresetMode.SAME_STEP", marks=needs_modes)])
    def test_autoreset_mode_is_taken_where_none_is_declared(self, given):
        if given.startswith("AutoresetMode"):
            given = gymnasium.vector.AutoresetMode.SAME_STEP
        env, drawn = scripted(1, [[0]], declared=False, autoreset_mode=given), table(1)
        env.reset()
        assert ids(env.step(0)[4]) == at(drawn, [1])

    @needs_modes
    def test_undeclared_autoreset_mode_raises_at_the_first_reset(self):
        env = scripted(1, declared=False)
        with pytest.raises(ValueError, match=r"autoreset_mode must be given.*'NextStep', 'SameStep', 'Disabled'"):
            env.reset()
        assert env.assigner.episode.tolist() == [-1]

    def test_gymnasium_1_0_without_modes_uses_next_step(self, monkeypatch):
        monkeypatch.delattr(gymnasium.vector, "AutoresetMode", raising=False)
        env, drawn = scripted(1, [[0], []], declared=False), table(1)
        assert ids(env.reset()[1]) == at(drawn, [0])
        assert ids(env.step(0)[4]) == at(drawn, [0])
        assert ids(env.step(0)[4]) == at(drawn, [1])


class TestAgreement:
    """Wrappers inside a vectorizer and one wrapper outside it report the same policies."""

    VECTORISERS = {  # noqa: RUF012
        "sync": SyncVectorEnv,
        "async": partial(AsyncVectorEnv, context="fork"),
        "async without shared memory": partial(AsyncVectorEnv, shared_memory=False, context="fork"),
    }

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("vectoriser", "mapping"), [*((name, 1000) for name in VECTORISERS), ("sync", pm.ByEnvIndex(3))]
    )
    def test_wrappers_inside_and_outside_show_equal_ids(self, mode, vectoriser, mapping, request):
        count, settings = 4, {"seed": 7, "resample_every": 3}
        vectorise = self.VECTORISERS[vectoriser]
        inside = in_mode(vectorise, pm.env_fns(Countdown, count, mapping, env_index=2, **settings), mode)
        outside = pm.wrap(in_mode(vectorise, [Countdown] * count, mode), mapping, env_index=2, **settings)
        request.addfinalizer(inside.close)
        request.addfinalizer(outside.close)
        masks = np.random.default_rng(0)
        twice = mode is NEXT_STEP and vectoriser == "async without shared memory"  # what an explicit reset would do
        explicit = KNOWS_MODES and not twice
        compared, finished, seen = 0, 0, set()

        def agree(one, other):
            nonlocal compared, finished
            both = one["_policy_id"] & other["_policy_id"]
            assert both.any()
            assert one["policy_id"][both].tolist() == other["policy_id"][both].tolist()
            compared += both.sum()
            seen.update(enumerate(one["policy_id"].tolist()))
            assert ("final_info" in one) == ("final_info" in other)
            if "final_info" in one:
                mask = one["final_info"]["_policy_id"]
                assert mask.tolist() == other["final_info"]["_policy_id"].tolist()
                assert (one["final_info"]["policy_id"] == other["final_info"]["policy_id"])[mask].all()
                finished += mask.sum()

        agree(inside.reset(seed=1)[1], outside.reset(seed=1)[1])
        for step in range(200):
            one, other = inside.step(np.zeros(count, int)), outside.step(np.zeros(count, int))
            assert one[2].tolist() == other[2].tolist()
            agree(one[4], other[4])
            mask = one[2].copy() if mode is DISABLED else np.zeros(count, bool)
            if explicit and step % 7 == 0:
                mask |= masks.random(count) < 0.5
            if mask.any():
                agree(
                    inside.reset(options={"reset_mask": mask.copy()})[1],
                    outside.reset(options={"reset_mask": mask.copy()})[1],
                )
        assert compared > 500
        assert len(seen) > (count if mapping == 1000 else count - 1), "no policy was resampled"
        assert (finished > 50) == (mode is SAME_STEP)

    def test_spawned_processes_show_equal_ids(self, request):
        make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=4)
        settings = {"seed": 7, "resample_every": 1}
        inside = AsyncVectorEnv(pm.env_fns(make, 2, 1000, **settings), context="spawn")
        outside = pm.wrap(SyncVectorEnv([make] * 2), 1000, **settings)
        request.addfinalizer(inside.close)
        assert ids(inside.reset(seed=1)[1]) == ids(outside.reset(seed=1)[1])
        for _ in range(20):
            assert ids(inside.step(np.zeros(2, int))[4]) == ids(outside.step(np.zeros(2, int))[4])
        assert outside.assigner.episode.min() > 2

    def test_custom_vector_environment_resamples_at_its_ends(self):
        env = pm.wrap(
            gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point"),
            1000,
            resample_every=1,
        )
        env.reset(seed=3)
        seed, drawn = env.assigner.seed, None
        drawn = table(3, mapping=1000, seed=seed, episodes=30)
        episode, ended = np.zeros(3, int), np.zeros(3, bool)
        for _ in range(150):
            _, _, terminations, truncations, infos = env.step(np.ones(3, int))
            episode += ended
            ended = terminations | truncations
            assert ids(infos) == at(drawn, episode)
        assert episode.min() > 5


class TestArrays:
    def test_tag_is_a_read_only_integer_array_with_a_full_mask(self):
        env = scripted(3)
        infos = env.reset()[1]
        for array in (infos["policy_id"], env.policy_ids):
            assert array.shape == (3,)
            assert array.dtype.kind == "i"
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
        assert infos["_policy_id"].tolist() == [True] * 3
        with pytest.raises(ValueError, match="read-only"):
            infos["_policy_id"][0] = False

    @pytest.mark.parametrize("mode", MODES)
    def test_returned_arrays_are_never_changed(self, mode):
        env = scripted(4, [[i % 4, (i * i) % 4] for i in range(30)], mode)
        kept = []
        infos = env.reset()[1]
        for _ in range(30):
            kept.append((infos["policy_id"], infos["policy_id"].copy()))
            if "final_info" in infos:
                final = infos["final_info"]["policy_id"]
                kept.append((final, final.copy()))
            infos = env.step(0)[4]
        assert all((array == then).all() for array, then in kept)
        assert len({then.tobytes() for _, then in kept}) > (1 if mode is DISABLED else 20) - 1

    def test_step_without_an_end_returns_the_same_array(self):
        env = scripted(4, [[], [], [1], []])
        before = env.reset()[1]["policy_id"]
        assert all(env.step(0)[4]["policy_id"] is before for _ in range(3))
        assert env.step(0)[4]["policy_id"] is not before

    def test_vector_infos_pass_and_the_environments_are_unchanged(self):
        said = {"x": np.arange(2), "_x": np.ones(2, bool)}
        env = scripted(2, infos=said, info_key="who")
        for infos in (env.reset()[1], env.step(0)[4]):
            assert infos.keys() == {"x", "_x", "who", "_who"}
            assert infos["x"] is said["x"]
            assert said.keys() == {"x", "_x"}

    @pytest.mark.parametrize(
        ("infos", "when"),
        [
            ({"policy_id": np.zeros(2)}, "reset"),
            ([{}, {"policy_id": 1}], "reset"),
            ({"final_info": {"policy_id": np.zeros(2)}}, "step"),
            ([{}, {"final_info": {"policy_id": 0}}], "step"),
            ({"_policy_id": np.ones(2, bool)}, "reset"),
        ],
    )
    def test_vector_info_key_in_use_raises(self, infos, when):
        env = scripted(2, [[0, 1]], SAME_STEP, infos=infos)
        if when == "step":
            env.reset()
        with pytest.raises(ValueError, match="info_key '_?policy_id' is already used"):
            env.reset() if when == "reset" else env.step(0)
        if when == "reset":
            assert env.assigner.episode.tolist() == [-1, -1]


class TestGroups:
    """Rows in groups of k: the seats of environment 0, then those of environment 1, ..."""

    def test_group_of_rows_is_one_draw(self):
        env = scripted(6, mapping=pm.Uniform(10**6), agents=["red", "blue"], env_index=4)
        infos = env.reset()[1]
        assert env.assigner.num_envs == 3
        for index in range(3):
            one = pm.PolicyAssigner(10**6, ["red", "blue"], seed=0, env_index=4 + index)
            assert ids(infos)[2 * index : 2 * index + 2] == one.begin_episodes()[0].tolist()

    def test_agents_given_as_a_count_are_named(self):
        assert scripted(6, agents=3).assigner.agents == ("agent_0", "agent_1", "agent_2")
        assert scripted(6).assigner.agents == ("agent_0",)

    def test_shared_policy_controls_all_rows_of_an_environment(self):
        env = scripted(6, mapping=pm.Uniform(1000, mix=False), agents=3)
        first, second = env.reset()[1]["policy_id"].reshape(2, 3).tolist()
        assert len(set(first)) == len(set(second)) == 1
        assert first != second

    @pytest.mark.parametrize(
        ("mode", "episodes"), [(NEXT_STEP, [0, 0, 0, 0, 1, 1, 2]), (SAME_STEP, [0, 0, 0, 1, 1, 2, 2])]
    )
    def test_episode_ends_when_every_row_has_ended_once(self, mode, episodes):
        # Row 1 ends, row 0 ends and is said to have ended again, then row 2; the other environment never ends.
        ends = [[1], [0], [0, 2, 4], [], [0, 1, 2, 3], []]
        env, drawn = scripted(6, ends, mode, agents=3), table(2, ("a", "b", "c"))
        seen = [ids(env.reset()[1])] + [ids(env.step(0)[4]) for _ in range(6)]
        assert [row[:3] for row in seen] == [drawn[e, :3].tolist() for e in episodes]
        assert all(row[3:] == drawn[0, 3:].tolist() for row in seen)

    def test_final_info_has_all_rows_of_a_finished_environment(self):
        env, drawn = scripted(4, [[0], [1]], SAME_STEP, agents=2), table(2, ("a", "b"))
        env.reset()
        assert "final_info" not in env.step(0)[4]
        final = env.step(0)[4]["final_info"]
        assert final["_policy_id"].tolist() == [True, True, False, False]
        assert final["policy_id"][:2].tolist() == drawn[0, :2].tolist()

    def test_final_info_of_a_row_that_ended_earlier_is_tagged(self):
        said = {"final_info": {"r": np.zeros(4)}, "_final_info": np.array([False, False, True, False])}
        env, drawn = scripted(4, [[0], [1, 2]], SAME_STEP, agents=2, infos=said), table(2, ("a", "b"))
        env.reset()
        env.step(0)
        final = env.step(0)[4]["final_info"]
        assert final["_policy_id"].tolist() == [True, True, True, False]
        assert final["policy_id"][:3].tolist() == drawn[0, :3].tolist()

    @pytest.mark.parametrize("settings", [{}, {"autoreset_mode": "Disabled"}])
    def test_final_info_within_an_episode_is_tagged(self, settings):
        said = {"final_info": {"r": np.zeros(4)}, "_final_info": np.array([True, False, False, False])}
        env, drawn = scripted(4, [[0]], SAME_STEP, agents=2, infos=said, **settings), table(2, ("a", "b"))
        env.reset()
        final = env.step(0)[4]["final_info"]
        assert final["_policy_id"].tolist() == [True, False, False, False]
        assert final["policy_id"][0] == drawn[0, 0]

    def test_reset_mask_of_some_rows_of_an_environment_raises(self):
        env = scripted(4, agents=2)
        env.reset()
        with pytest.raises(ValueError, match="must select the 2 rows of an environment together"):
            env.reset(options={"reset_mask": np.array([True, True, True, False])})
        env.reset(options={"reset_mask": np.array([False, False, True, True])})
        assert env.assigner.episode.tolist() == [0, 1]

    @pytest.mark.parametrize("envs", [[False, True], [1], np.array([1])])
    def test_end_episodes_begins_the_next_episode_of_respawning_rows(self, envs):
        ends = [[0, 1, 2, 3]] * 5  # all rows end and respawn all the time
        env = scripted(4, ends, SAME_STEP, agents=2, autoreset_mode="Disabled")
        drawn = table(2, ("a", "b"))
        env.reset()
        assert [ids(env.step(0)[4]) for _ in range(3)] == [drawn[0].tolist()] * 3
        expected = [*drawn[0, :2].tolist(), *drawn[1, 2:].tolist()]
        assert env.end_episodes(envs).tolist() == env.policy_ids.tolist() == expected
        assert ids(env.step(0)[4]) == expected
        assert env.end_episodes([]).tolist() == expected

    def test_end_episodes_is_not_repeated_by_the_next_step(self):
        env, drawn = scripted(2, [[0, 1]], NEXT_STEP), table(2)
        env.reset()
        env.step(0)
        assert env.end_episodes([0]).tolist() == at(drawn, [1, 0])
        assert ids(env.step(0)[4]) == at(drawn, [1, 1])

    @pytest.mark.parametrize(
        ("envs", "error"), [([2], ValueError), ([True], ValueError), ([0.5], TypeError), ([[0]], TypeError)]
    )
    def test_end_episodes_invalid_environments_raise(self, envs, error):
        env = scripted(4, agents=2)
        env.reset()
        with pytest.raises(error):
            env.end_episodes(envs)
        assert env.assigner.episode.tolist() == [0, 0]


class TestListInfos:
    """SuperSuit's vectors: a list with one dict per row, and a reset in the step that ends an episode."""

    @staticmethod
    def concat(make, count, num_cpus=0, black_death=False):
        vector = MarkovVectorEnv(make(), black_death=black_death)
        return concat_vec_envs_v1(vector, count, num_cpus=num_cpus)

    @pytest.mark.parametrize("num_cpus", [0, 2])
    def test_list_infos_have_the_tags_of_wrappers_inside(self, num_cpus, request):
        make = partial(simple_spread_v3.parallel_env, max_cycles=3)
        env = pm.wrap(self.concat(make, 2, num_cpus), 1000, agents=3, seed=5, resample_every=2)
        request.addfinalizer(env.close)
        fns = pm.env_fns(make, 2, 1000, seed=5, resample_every=2)
        inside = ConcatVecEnv([partial(MarkovVectorEnv, fn()) for fn in fns])
        seen = set()

        def agree(one, other):
            assert [info["policy_id"] for info in one] == [info["policy_id"] for info in other]
            assert all(type(info["policy_id"]) is int for info in one)
            seen.add(tuple(info["policy_id"] for info in one))

        agree(env.reset(seed=1)[1], inside.reset(seed=1)[1])
        for step in range(1, 16):
            _, _, _, truncations, infos = env.step(np.zeros(6, int))
            agree(infos, inside.step(np.zeros(6, int))[4])
            ended = step % 3 == 0
            assert bool(truncations.all()) == ended
            assert all(("terminal_observation" in info) == ("final_info" in info) == ended for info in infos)
        assert len(seen) == 3  # five resets after the first: blocks 0, 1 and 2

    def test_list_infos_final_info_has_the_finished_policy(self):
        env = pm.wrap(self.concat(Mortal, 2, black_death=True), 10**6, agents=3, seed=0, resample_every=1)
        drawn = table(2, ("a", "b", "c"))
        env.reset()
        for step in range(1, 9):
            infos = env.step(np.zeros(6, int))[4]
            assert [info["policy_id"] for info in infos] == drawn[step // 4].tolist()
            if step % 4 == 0:  # the last of three agents has died, and the next episode has begun
                assert [info["final_info"] for info in infos] == [
                    {"policy_id": p} for p in drawn[step // 4 - 1].tolist()
                ]
            else:
                assert not any("final_info" in info for info in infos)

    def test_list_infos_of_the_environment_are_never_written_to(self):
        said = [{"x": 1}] * 3
        env = scripted(3, declared=False, infos=said)
        infos = env.reset()[1]
        assert [info["policy_id"] for info in infos] == env.policy_ids.tolist()
        assert said == [{"x": 1}] * 3

    def test_list_infos_of_a_gymnasium_vector_follow_its_mode(self):
        vector = DictInfoToList(in_mode(SyncVectorEnv, [Countdown] * 3, SAME_STEP))
        env, twin = (pm.wrap(v, 1000, seed=0, resample_every=1) for v in (vector, copy.deepcopy(vector.env)))
        env.reset(seed=0)
        twin.reset(seed=0)
        ends = 0
        for _ in range(30):
            rows, infos = env.step(np.zeros(3, int))[4], twin.step(np.zeros(3, int))[4]
            assert [row["policy_id"] for row in rows] == ids(infos)
            for row, info in enumerate(rows):
                if "final_info" in info:
                    ends += 1
                    assert info["final_info"]["policy_id"] == infos["final_info"]["policy_id"][row]
                    assert info["final_info"]["left"] == 0
        assert ends > 10

    def test_reset_mask_that_would_reset_all_rows_raises(self):
        env = pm.wrap(self.concat(Mortal, 2, black_death=True), 4, agents=3, seed=0)
        env.reset()
        with pytest.raises(ValueError, match="would reset all rows"):
            env.reset(options={"reset_mask": np.ones(6, bool)})

    def test_find_assigner_looks_through_vectorizers_of_one_environment(self):
        inner = pm.wrap(Mortal(), 4, seed=0)
        vector = MarkovVectorEnv(inner, black_death=True)
        assert pm.find_assigner(ConcatVecEnv([lambda: vector])) is inner.assigner
        assert pm.find_assigner(SyncVectorEnv(pm.env_fns(Countdown, 1, 4))).agents == ("agent_0",)
        with pytest.raises(ValueError, match=r"env holds 2 environments in SyncVectorEnv\.envs"):
            pm.find_assigner(SyncVectorEnv(pm.env_fns(Countdown, 2, 4)))


class TestSeeds:
    def test_seed_restarts_the_assignments(self):
        env = scripted(3, [[0], [1]] * 4, SAME_STEP, seed=None)
        runs = []
        for _ in range(2):
            env.unwrapped.time = 0
            runs.append([ids(env.reset(seed=4)[1])] + [ids(env.step(0)[4]) for _ in range(8)])
        assert runs[0] == runs[1]
        assert runs[0][0] == at(table(3, seed=4), [0, 0, 0])

    def test_pinned_vector_continues_whatever_seed_reset_is_given(self):
        env, drawn = scripted(2), table(2)
        assert [ids(env.reset(seed=9)[1]) for _ in range(3)] == [at(drawn, [e, e]) for e in range(3)]
        assert env.unwrapped.seed == 9

    def test_list_of_seeds_is_one_seed(self):
        env = scripted(2, seed=None)
        first = ids(env.reset(seed=[3, 4])[1])
        assert first == at(table(2, seed=[3, 4]), [0, 0])
        assert env.unwrapped.seed == [3, 4]
        assert ids(env.reset(seed=[4, 3])[1]) != first
        assert ids(env.reset(seed=(3, 4))[1]) == first
        assert env.assigner.seed == (3, 4)

    @pytest.mark.parametrize("seeds", [[None, 5], [None, None]])
    def test_list_of_seeds_with_none_seeds_the_environments_only(self, seeds):
        env = scripted(2, seed=None)
        env.reset(seed=1)
        assert ids(env.reset(seed=seeds)[1]) == at(table(2, seed=1), [1, 1])
        assert env.unwrapped.seed == seeds

    def test_seed_with_reset_mask_seeds_the_environments_only(self):
        env, drawn = scripted(2, seed=None), table(2, seed=1)
        env.reset(seed=1)
        assert ids(env.reset(seed=7, options={"reset_mask": np.array([False, True])})[1]) == at(drawn, [0, 1])
        assert ids(env.reset(seed=7, options={"reset_mask": np.array([True, True])})[1]) == at(drawn, [1, 2])
        assert env.unwrapped.seed == 7

    def test_unseeded_environments_differ(self):
        assert ids(scripted(9, seed=None).reset()[1]) != ids(scripted(9, seed=None).reset()[1])

    @pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ([1, -1], ValueError), ("x", TypeError)])
    def test_seed_invalid_begins_no_episode(self, seed, error):
        env = scripted(2, seed=None)
        with pytest.raises(error):
            env.reset(seed=seed)
        assert env.assigner.episode.tolist() == [-1, -1]


class TestForcedMatchups:
    @pytest.mark.parametrize(
        ("forced", "seats"),
        [
            (7, [7, 7, 7, 7]),
            ({"blue": 7}, [None, 7, None, 7]),
            ([7, -1, 8, 9], [7, None, 8, 9]),
            (np.array([-1, -1, -1, -1]), [None] * 4),
        ],
    )
    def test_forced_matchup_holds_for_one_episode_of_the_block(self, forced, seats):
        ends = [[0, 1], []]
        env = scripted(4, ends, SAME_STEP, agents=["red", "blue"], resample_every=10)
        drawn = ids(env.reset()[1])
        expected = [p if s is None else s for p, s in zip(drawn, seats, strict=True)]
        infos = env.reset(options={"policy_ids": forced})[1]
        assert ids(infos) == env.policy_ids.tolist() == expected
        assert env.assigner.policy_ids.reshape(-1).tolist() == drawn
        infos = env.step(0)[4]  # the first environment begins its next episode
        assert ids(infos) == [*drawn[:2], *expected[2:]]
        assert infos["final_info"]["policy_id"][:2].tolist() == expected[:2]
        assert ids(env.reset()[1]) == drawn
        assert env.unwrapped.options is None

    def test_forced_matchup_with_reset_mask_holds_for_its_rows(self):
        env = scripted(4, agents=2, resample_every=10)
        drawn = ids(env.reset()[1])
        options = {"policy_ids": 3, "reset_mask": np.array([False, False, True, True])}
        assert ids(env.reset(options=options)[1]) == [*drawn[:2], 3, 3]
        options = {"policy_ids": 4, "reset_mask": np.array([True, True, False, False])}
        assert ids(env.reset(options=options)[1]) == [4, 4, 3, 3]

    @pytest.mark.parametrize(
        ("forced", "error", "match"),
        [
            (8, ValueError, r"options\['policy_ids'\] must be from 0 to 7, got 8"),
            ([1, 2, 3], ValueError, r"one policy per seat, 4 in all, got shape \(3,\)"),
            ([1, 2, 3, 8], ValueError, "policies from 0 to 7, or -1"),
            ([1, 2, 3, -2], ValueError, "policies from 0 to 7, or -1"),
            ([0.0] * 4, TypeError, "integers"),
            ({"green": 1}, KeyError, "names 'green'"),
            ({"blue": 9}, ValueError, r"\['blue'\] must be from 0 to 7"),
        ],
    )
    def test_forced_matchup_invalid_raises_before_the_vector_is_reset(self, forced, error, match):
        env = scripted(4, mapping=8, agents=["red", "blue"])
        with pytest.raises(error, match=match):
            env.reset(options={"policy_ids": forced})
        assert env.unwrapped.resets == -1


class TestState:
    @pytest.mark.parametrize(("mode", "finished"), [(NEXT_STEP, [0, 1]), (SAME_STEP, [0, 1]), (DISABLED, [0, 1])])
    def test_state_dict_marks_unfinished_episodes(self, mode, finished):
        env = scripted(2, [[1]], mode)
        assert env.state_dict()["episode"].tolist() == [-1, -1]
        env.reset()
        assert env.state_dict()["episode"].tolist() == [-1, -1]
        env.step(0)
        assert env.state_dict()["episode"].tolist() == [-1, 0]  # the row that ended has played episode 0

    @pytest.mark.parametrize("mode", MODES)
    def test_resumed_vector_equals_an_uninterrupted_one(self, mode):
        env, drawn = scripted(3, [[0, 1, 2], [0, 1, 2]], mode, agents=3), table(1, ("a", "b", "c"))
        env.reset()
        env.step(0)
        resumed = scripted(3, mode=mode, agents=3)
        resumed.load_state_dict(env.state_dict())
        assert ids(resumed.reset()[1]) == drawn[1].tolist()

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e)), cloudpickle.loads])
    @pytest.mark.parametrize("steps", [None, 0, 2])
    @pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
    def test_copy_continues_as_the_original(self, copied, steps, mode):
        env = scripted(4, [[0], [0, 1], [2, 3], [1, 3]] * 3, mode, agents=2)
        if steps is not None:
            env.reset(options={"policy_ids": [5, -1, -1, -1]})
        for _ in range(steps or 0):
            env.step(0)
        twin = copied(cloudpickle.dumps(env) if copied is cloudpickle.loads else env)
        if steps is None:
            assert ids(env.reset()[1]) == ids(twin.reset()[1])
        assert not twin.policy_ids.flags.writeable
        for _ in range(8):
            assert ids(env.step(0)[4]) == ids(twin.step(0)[4])
            assert (env.state_dict()["episode"] == twin.state_dict()["episode"]).all()

    def test_set_mapping_takes_effect_at_the_next_draws_or_at_once(self):
        env = scripted(2, [[0], [0], [0, 1], [0, 1]], SAME_STEP, resample_every=2)
        drawn = ids(env.reset()[1])
        env.set_mapping(pm.Fixed(5))
        assert ids(env.step(0)[4]) == drawn
        assert ids(env.step(0)[4]) == [5, drawn[1]]
        env.set_mapping(pm.Fixed(6), now=True)
        assert env.policy_ids.tolist() == [5, drawn[1]]
        assert ids(env.step(0)[4]) == [6, 6]

    def test_state_with_a_late_agent_gives_rows_their_policies(self):
        script = [["red", "blue"], ["red", "blue", "late"], []]
        before = pm.wrap(StubParallel(script, possible_agents=["red", "blue"]), 1000, seed=1)
        before.reset(), before.step({}), before.step({})
        env = scripted(2, [[0, 1]], mapping=1000, seed=1, resample_every=10, agents=["red", "blue"])
        env.assigner.load_state_dict(before.assigner.state_dict())
        assert (env.agents, env.assigner.agents) == (("red", "blue"), ("red", "blue", "late"))
        drawn = [before.policy_ids["red"], before.policy_ids["blue"]]
        assert ids(env.reset()[1]) == drawn
        assert [ids(env.step(0)[-1]) for _ in range(2)] == [drawn] * 2
        assert ids(env.reset(options={"policy_ids": {"blue": 3}})[1]) == [drawn[0], 3]
        assert ids(env.reset(options={"reset_mask": np.array([True, True])})[1]) == drawn
        with pytest.raises(KeyError, match="late"):
            env.reset(options={"policy_ids": {"late": 3}})


class TestFaults:
    @pytest.mark.parametrize(
        ("settings", "error", "match"),
        [
            ({"agents": 0}, ValueError, "agents must be at least 1, got 0"),
            ({"agents": 4}, ValueError, "agents must divide the 6 rows of the environment, got 4"),
            ({"agents": 1.0}, TypeError, "agents must be an integer, got 1.0"),
            ({"agents": True}, TypeError, "agents must be an integer, got True"),
            ({"agents": "ab"}, TypeError, "agents must be an integer, got 'ab'"),
            ({"agents": ["a", "a"]}, ValueError, "agents must be distinct"),
            ({"agents": []}, ValueError, "agents must divide the 6 rows of the environment, got 0"),
            ({"autoreset_mode": "sometimes"}, ValueError, "autoreset_mode must be a gymnasium.vector.AutoresetMode"),
            ({"autoreset_mode": "SameStep"}, ValueError, "'NextStep', as the environment declares, got 'SameStep'"),
            ({"mode": "sometimes"}, ValueError, r"env.metadata\['autoreset_mode'\] must be"),
            ({"info_key": None}, TypeError, "info_key must be a string, got None"),
            ({"resample_every": 2.5}, TypeError, "resample_every must be an integer"),
            ({"env_index": -1}, ValueError, "env_index must be from 0 to .*, got -1"),
            ({"mapping": pm.ByEnvIndex(2, num_envs=4)}, ValueError, "must be below num_envs=4"),
            ({"mapping": pm.Uniform(2, replace=False), "agents": 3}, ValueError, "got 2 policies for 3 seats"),
        ],
    )
    def test_invalid_settings_raise_the_name_of_the_argument(self, settings, error, match):
        with pytest.raises(error, match=match):
            scripted(6, **settings)

    def test_wrapper_of_a_non_vector_raises(self):
        with pytest.raises(TypeError, match=r"env must be a gymnasium.vector.VectorEnv"):
            pm.PolicyMapVector(Countdown(), 4)

    def test_mapping_across_environments_gets_the_index_of_each_row(self):
        assert ids(scripted(3, mapping=pm.ByEnvIndex([4, 6])).reset()[1]) == [4, 6, 4]
        assert ids(scripted(3, mapping=pm.ByEnvIndex([4, 6]), env_index=1).reset()[1]) == [6, 4, 6]
        assert ids(scripted(1, mapping=pm.ByEnvIndex([4, 6])).reset()[1]) == [4]

    def test_vector_before_the_first_reset_raises(self):
        env = scripted(2)
        with pytest.raises(AttributeError, match="policy_ids cannot be accessed before reset"):
            env.policy_ids  # noqa: B018
        with pytest.raises(ResetNeeded, match="step cannot be called before reset"):
            env.step(0)
        with pytest.raises(ResetNeeded, match="end_episodes cannot be called before reset"):
            env.end_episodes([0])

    def test_reset_that_raises_begins_no_episode(self):
        env, drawn = scripted(2, fail_at=[1], resample_every=1), table(2)
        env.reset()
        with pytest.raises(RuntimeError):
            env.reset(options={"policy_ids": 3})
        assert env.policy_ids.tolist() == at(drawn, [0, 0])
        assert ids(env.reset()[1]) == at(drawn, [1, 1])

    def test_mapping_that_fails_at_reset_begins_no_episode(self):
        def fn(agents, draw):
            return dict.fromkeys(agents, -1 if draw.episode == 1 else 2)

        env = scripted(2, mapping=fn)
        env.reset()
        with pytest.raises(ValueError, match=r"FromFunction.*episode 1"):
            env.reset()
        assert env.assigner.episode.tolist() == [0, 0]
        assert env.policy_ids.tolist() == [2, 2]

    @pytest.mark.parametrize("mode", [NEXT_STEP, pytest.param(SAME_STEP, marks=needs_modes)])
    def test_draw_that_fails_in_a_step_requires_a_full_reset(self, mode):
        weights = [[1.0, 0.0], [float("nan"), 1.0], [0.0, 1.0]]
        env = scripted(2, [[0]], mode, mapping=pm.Weighted(lambda: weights.pop(0)), resample_every=1)
        env.reset()
        with pytest.raises(ValueError, match="weights must be finite"):
            env.step(0), env.step(0)
        with pytest.raises(ResetNeeded, match="the last reset or step failed"):
            env.step(0)
        assert ids(env.reset()[1]) == [1, 1]
        env.step(0)

    def test_mask_of_a_copy_is_read_only(self):
        env = copy.deepcopy(scripted(2))
        assert not env.reset()[1]["_policy_id"].flags.writeable


@needs_modes
def test_reset_mask_is_seen_by_wrappers_inside():
    env = RecordEpisodeStatistics(scripted(2, [[], []], DISABLED))
    env.reset()
    env.step(0)
    env.reset(options={"reset_mask": np.array([True, False])})
    assert env.episode_lengths.tolist() == [0, 1]


class Rows(ScriptedVector):
    """Returns the rows in `rows`, like an environment that returns part of its batch."""

    rows = (0, 1, 2, 3)

    def reset(self, *, seed=None, options=None):
        observations, _ = super().reset(seed=seed, options=options)
        return observations[list(self.rows)], {"env_id": np.array(self.rows)}

    def step(self, actions):
        *arrays, _ = super().step(actions)
        return *(array[list(self.rows)] for array in arrays), {"env_id": np.array(self.rows)}


class TestRows:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("rows", [(0, 2), (1, 0, 3, 2), (3,)])
    def test_batch_of_named_rows_has_the_tags_of_its_rows(self, rows, mode):
        script = [[0], [3], [1, 2], [], [0, 1, 2, 3], [3], [2]]
        whole, part = (Rows(4, script, mode) for _ in range(2))
        part.rows = rows
        seen = set()
        env, of_part = (pm.wrap(bare, 1000, seed=0, resample_every=1) for bare in (whole, part))
        for expected, infos in [(env.reset()[1], of_part.reset()[1])] + [
            (env.step(0)[4], of_part.step(0)[4]) for _ in range(10)
        ]:
            tag = infos["policy_id"]
            assert tag.tolist() == expected["policy_id"][list(rows)].tolist()
            assert not tag.flags.writeable
            assert infos["_policy_id"].tolist() == [True] * len(rows)
            if "final_info" in expected and "final_info" in infos:
                final, of_all = infos["final_info"], expected["final_info"]
                assert final["policy_id"].tolist() == of_all["policy_id"][list(rows)].tolist()
            seen.add(tuple(tag.tolist()))
        assert (len(seen) == 1) == (mode == DISABLED)

    @pytest.mark.parametrize("wrapper", [None, "recorder"])
    @pytest.mark.parametrize(
        ("rows", "match"),
        [((0, 2), "must return 4 rows.*got 2"), ((1, 0, 2, 3), r"infos\['env_id'\] must be 0 to 3 in order")],
    )
    def test_batch_with_other_rows_raises_at_reset_and_step(self, rows, match, wrapper):
        bare = Rows(4)
        env = pm.wrap(bare, 4, seed=0, agents=None if wrapper else 2)
        if wrapper == "recorder":
            env = pm.record_results(env, [].append)
        env.reset()
        env.step(0)
        bare.rows = rows
        with pytest.raises(ValueError, match=match):
            env.step(0)
        with pytest.raises(ValueError, match=match):
            env.reset()
        assert set(env.assigner.episode.tolist()) == {int(wrapper == "recorder")}

    @pytest.mark.parametrize("rows", [(3, 4), (1, 1)])
    def test_batch_of_unknown_or_repeated_rows_raises(self, rows):
        bare = Rows(4)
        env = pm.wrap(bare, 4, seed=0)
        env.reset()
        bare.step = lambda actions: (*[np.zeros(2, bool)] * 4, {"env_id": np.array(rows)})
        with pytest.raises(ValueError, match=r"infos\['env_id'\] must be"):
            env.step(0)

    def test_infos_with_missing_rows_raise(self):
        with pytest.raises(ValueError, match="infos must have 3 entries, one per row, got 2"):
            scripted(3, declared=False, infos=[{}, {}]).reset()


class TestKnownAgents:
    VECTOR = staticmethod(
        lambda: concat_vec_envs_v1(MarkovVectorEnv(simple_spread_v3.parallel_env()), num_vec_envs=2, num_cpus=0)
    )

    def test_agents_of_supersuit_vectors_are_known(self):
        env = pm.wrap(self.VECTOR(), 4, seed=0)
        assert env.agents == ("agent_0", "agent_1", "agent_2")
        assert env.assigner.num_envs == 2
        assert pm.record_results(env, pm.Payoff(4)).agents == env.agents

    @pytest.mark.parametrize("agents", [1, 2, 6])
    def test_agents_of_another_number_raise(self, agents):
        with pytest.raises(ValueError, match="agents must name the 3 agents .* of each environment, got"):
            pm.wrap(self.VECTOR(), 4, seed=0, agents=agents)


def test_repr_shows_environment_and_mapping():
    text = repr(scripted(4, mapping=pm.Uniform(4), agents=2))
    assert text.startswith("<PolicyMapVector<ScriptedVector(num_envs=4)>")
    assert text.endswith("num_envs=2, num_seats=2>")


def test_step_with_torch_flags_equals_arrays():
    torch = pytest.importorskip("torch")

    class Tensors(ScriptedVector):
        def step(self, actions):
            *arrays, infos = super().step(actions)
            return *map(torch.as_tensor, arrays), infos

    played = [], []
    for cls, episodes in zip((ScriptedVector, Tensors), played, strict=True):
        env = pm.wrap(cls(4, [[0, 1], [2], [3]], SAME_STEP), 1000, seed=0, resample_every=1, agents=2)
        env = pm.record_results(env, episodes.append)
        env.reset()
        for _ in range(4):
            env.step(0)
        episodes.append(env.policy_ids.tolist())
    assert len(played[0]) == 3
    assert played[0] == played[1]
