"""Checkpoints: states of assigners, and the file format."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap.checkpoint import replacing
from tests.stub_envs import StubAEC, StubParallel

AGENTS = ["red", ("blue", 3)]


def assigner_of(mapping=1000, agents=AGENTS, **settings):
    return pm.PolicyAssigner(mapping, agents, **{"resample_every": 3, **settings})


def through_file(tmp_path, assigner):
    pm.save(tmp_path / "run.npz", assigner=assigner)
    return pm.load(tmp_path / "run.npz")["assigner"]


class TestResuming:
    @pytest.mark.parametrize("num_envs", [1, 4])
    @pytest.mark.parametrize("played", [0, 1, 3, 5])
    def test_resumed_run_equals_an_uninterrupted_one(self, tmp_path, num_envs, played):
        assigner = assigner_of(num_envs=num_envs, env_index=2, seed=[1, 2])
        for _ in range(played):
            assigner.begin_episodes()
        state = through_file(tmp_path, assigner)
        resumed = assigner_of(num_envs=num_envs, env_index=2)
        resumed.load_state_dict(state)
        assert resumed.assignment() == assigner.assignment()
        for _ in range(7):
            np.testing.assert_array_equal(resumed.begin_episodes(), assigner.begin_episodes())
        assert resumed.seed == (1, 2)

    def test_rows_at_different_episodes_resume_at_their_episode(self, tmp_path):
        assigner = assigner_of(num_envs=3, seed=0)
        for rows in ([0, 1, 2], [1], [1], [2]):
            assigner.begin_episodes(rows)
        resumed = assigner_of(num_envs=3, seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner))
        assert resumed.episode.tolist() == [0, 2, 1]
        for rows in ([0, 1], [0, 2], [0, 1, 2]):
            np.testing.assert_array_equal(resumed.begin_episodes(rows), assigner.begin_episodes(rows))

    def test_a_loaded_state_is_pinned(self, tmp_path):
        assigner = assigner_of()
        assigner.begin_episodes(seed=5)
        resumed = assigner_of()
        resumed.load_state_dict(through_file(tmp_path, assigner))
        assert resumed.pinned
        assert resumed.begin_episodes(seed=6).tolist() == assigner.begin_episodes().tolist()

    def test_a_state_from_before_the_first_episode_pins_nothing(self, tmp_path):
        resumed = assigner_of()
        resumed.load_state_dict(through_file(tmp_path, assigner_of()))
        assert not resumed.pinned
        resumed.begin_episodes(seed=6)
        assert resumed.seed == 6

    def test_entropy_of_128_bits_survives(self, tmp_path):
        assigner = assigner_of()
        assigner.begin_episodes()
        resumed = assigner_of()
        resumed.load_state_dict(through_file(tmp_path, assigner))
        assert resumed.seed == assigner.seed

    def test_requested_draw_survives(self, tmp_path):
        assigner = assigner_of(seed=0)
        assigner.begin_episodes()
        assigner.set_mapping(1000, now=True)
        resumed = assigner_of(seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner))
        resumed.begin_episodes()
        assert resumed.draw_episode[0] == 1

    def test_late_agents_and_the_weights_of_the_draw_survive(self, tmp_path):
        weights = [1.0, 0.0, 0.0]
        rule = pm.Weighted(lambda: weights)
        assigner = assigner_of(rule, agents=None, seed=0)
        assigner.begin_episodes(agents=["a", "b"])
        assigner.add_agents(["c"])
        weights[:] = [0.0, 1.0, 0.0]
        resumed = assigner_of(rule, agents=None, seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner))
        resumed.add_agents(["d"])
        assert resumed.assignment() == dict.fromkeys("abcd", 0)

    def test_a_late_agent_after_a_mapping_that_never_drew_follows_the_new_mapping(self, tmp_path):
        assigner = assigner_of(pm.Fixed(1), agents=None, seed=0)
        assigner.begin_episodes(agents=["a"])
        assigner.set_mapping(pm.Fixed(2))
        resumed = assigner_of(pm.Fixed(2), agents=None, seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner))
        resumed.add_agents(["b"])
        assert resumed.assignment() == {"a": 1, "b": 2}

    def test_a_mapping_that_never_drew_may_be_saved_and_loaded_again(self, tmp_path):
        assigner = assigner_of(1000, seed=0)
        assigner.begin_episodes()
        assigner.set_mapping(4)
        for _ in range(2):
            resumed = assigner_of(4, seed=0)
            resumed.load_state_dict(through_file(tmp_path, assigner))
            assert resumed.assignment() == assigner.assignment()
            assigner = resumed
        assert assigner.state_dict()["draw"]["mapping"] == "Uniform(1000)"

    def test_draws_of_a_larger_and_a_smaller_population_resume_together(self, tmp_path):
        assigner = assigner_of(pm.Fixed(900), num_envs=3, resample_every=2, seed=0)
        assigner.begin_episodes()
        assigner.set_mapping(4, now=True)
        assigner.begin_episodes([1])
        resumed = assigner_of(4, num_envs=3, resample_every=2, seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner))
        assert (resumed.policy_ids == assigner.policy_ids).all()
        assert (resumed.policy_ids[[0, 2]] == 900).all()
        assert (resumed.begin_episodes() == assigner.begin_episodes()).all()

    def test_mapping_with_weights_callable_may_be_saved_before_its_first_draw(self, tmp_path):
        rule = pm.Weighted(lambda: [0.2, 0.8])
        resumed = assigner_of(rule, seed=0)
        resumed.load_state_dict(through_file(tmp_path, assigner_of(rule, seed=0)))
        assert (resumed.begin_episodes() == assigner_of(rule, seed=0).begin_episodes()).all()

    def test_mapping_set_again_after_another_keeps_the_weights_of_its_draw(self, tmp_path):
        weights = [1.0, 0.0]
        first = pm.Weighted(lambda: weights)
        assigner = assigner_of(first, agents=None, seed=0)
        assigner.begin_episodes(agents=["a"])
        assigner.set_mapping(pm.Fixed(3))
        meanwhile = assigner_of(pm.Fixed(3), agents=None, seed=0)
        meanwhile.load_state_dict(through_file(tmp_path, assigner))
        meanwhile.set_mapping(first)
        weights[:] = [0.0, 1.0]
        resumed = assigner_of(first, agents=None, seed=0)
        resumed.load_state_dict(through_file(tmp_path, meanwhile))
        resumed.add_agents(["b"])
        assert resumed.assignment() == {"a": 0, "b": 0}

    def test_the_state_is_a_copy(self):
        assigner = assigner_of(num_envs=3, seed=0)
        assigner.begin_episodes()
        state = assigner.state_dict()
        state["episode"][:] = 50
        state["draw"]["policies"][:] = 50
        assert assigner.episode.tolist() == [0, 0, 0]
        assert (assigner.policy_ids != 50).all()
        resumed = assigner_of(num_envs=3, seed=0)
        state = assigner.state_dict()
        resumed.load_state_dict(state)
        state["draw"]["policies"][:] = 50
        assert (resumed.policy_ids == assigner.policy_ids).all()

    def test_one_environment_has_a_state_of_plain_types(self):
        assigner = assigner_of(seed=0, agents=["a", "b"])
        assigner.begin_episodes()
        json.dumps(assigner.state_dict())

    def test_the_state_does_not_grow_with_episodes(self):
        assigner = assigner_of(seed=0, agents=["a", "b"])
        sizes = []
        for _ in range(2000):
            assigner.begin_episodes()
            sizes.append(len(json.dumps(assigner.state_dict())))
        assert max(sizes[-100:]) <= max(sizes[:100]) + 10  # a few more digits

    def test_another_process_resumes(self, tmp_path):
        assigner = assigner_of(seed=0, agents=["a", "b"])
        for _ in range(4):
            assigner.begin_episodes()
        path = tmp_path / "run.npz"
        pm.save(path, assigner=assigner)
        code = (
            "import sys, pz_policymap as pm\n"
            "a = pm.PolicyAssigner(1000, ['a', 'b'], resample_every=3)\n"
            "a.load_state_dict(pm.load(sys.argv[1])['assigner'])\n"
            "print([a.begin_episodes().tolist() for _ in range(5)])"
        )
        run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == str([assigner.begin_episodes().tolist() for _ in range(5)])


class TestUnfinishedEpisodes:
    @pytest.mark.parametrize("make", [StubParallel, StubAEC])
    def test_resumed_run_repeats_an_unfinished_episode_only(self, make):
        env = pm.wrap(make(), 1000, resample_every=1, seed=0)

        def resumed():
            other = pm.wrap(make(), 1000, resample_every=1, seed=0)
            other.load_state_dict(env.state_dict())
            other.reset()
            return other.policy_ids

        for _ in range(3):
            env.reset()
            assert resumed() == env.policy_ids
            play_out(env)
            following = resumed()
            assert following != env.policy_ids
        env.reset()
        assert env.policy_ids == following

    @pytest.mark.parametrize("make", [StubParallel, StubAEC])
    def test_before_the_first_reset_no_episode_is_unfinished(self, make):
        state = pm.wrap(make(), 1000, seed=0).assigner.state_dict()
        assert (state["episode"], state["draw"]["episode"]) == (-1, -1)

    def test_aec_episode_in_its_dead_steps_is_finished(self):
        env = pm.wrap(StubAEC(turns={"a": 1, "b": 1}), 1000, resample_every=1, seed=0)
        env.reset()
        env.step(0)
        env.step(None)
        assert env.state_dict()["episode"] == -1
        env.step(0)  # the last agent has ended; it is still listed
        assert env.agents == ["b"]
        assert env.state_dict()["episode"] == 0

    @pytest.mark.parametrize("make", [StubParallel, StubAEC])
    @pytest.mark.parametrize("ended", [True, False])
    def test_failed_reset_changes_nothing(self, make, ended):
        def rule(agents, draw):
            return dict.fromkeys(agents, 1 // (1 - draw.episode))

        env = pm.wrap(make(), rule, resample_every=1, seed=0)
        env.reset()
        if ended:
            play_out(env)
        before = env.state_dict()
        for _ in range(2):
            with pytest.raises(ValueError, match="ZeroDivisionError"):
                env.reset()
            assert env.state_dict() == before

    def test_an_unfinished_episode_keeps_the_weights_of_its_draw(self):
        weights = [1.0, 0.0]
        rule = pm.Weighted(lambda: weights)
        env = pm.wrap(StubParallel(), rule, resample_every=1, seed=0)
        env.reset()
        state = env.state_dict()
        weights[:] = [0.0, 1.0]
        resumed = pm.wrap(StubParallel(), rule, resample_every=1, seed=0)
        resumed.load_state_dict(state)
        resumed.reset()
        assert resumed.policy_ids == {"a": 0, "b": 0}
        resumed.reset()
        assert resumed.policy_ids == {"a": 1, "b": 1}

    def test_loading_repeatedly_repeats_one_episode_only(self):
        for make in (StubParallel, StubAEC):
            env = pm.wrap(make(), 1000, resample_every=1, seed=0)
            for _ in range(3):
                env.reset()
            state = env.state_dict()
            for _ in range(3):
                env.load_state_dict(state)
                assert env.state_dict() == state
            env.reset()
            assert env.assigner.episode[0] == 2
            assert env.state_dict() == state

    def test_requested_draw_is_still_due_for_rows_that_have_not_made_it(self):
        asked, resumed = (assigner_of(pm.Uniform(1000), ["a"], num_envs=2, resample_every=100) for _ in range(2))
        asked.begin_episodes()
        asked.set_mapping(pm.Uniform(1000), now=True)
        asked.begin_episodes([0])
        assert asked.state_dict()["redraw"].tolist() == [-1, 1]
        resumed.set_mapping(pm.Uniform(1000))
        resumed.load_state_dict(asked.state_dict())
        resumed.begin_episodes()
        assert resumed.draw_episode.tolist() == [1, 1]
        np.testing.assert_array_equal(resumed.policy_ids[0], asked.policy_ids[0])

    def test_draw_requested_in_an_unfinished_episode_is_made_after_it(self):
        live = pm.wrap(StubParallel(), 1000, resample_every=10, seed=0)
        for _ in range(4):
            live.reset()
        played = live.policy_ids
        live.set_mapping(1000, now=True)
        resumed = pm.wrap(StubParallel(), 1000, resample_every=10, seed=0)
        resumed.load_state_dict(live.state_dict())
        resumed.reset()
        assert resumed.policy_ids == played
        for _ in range(7):
            live.reset(), resumed.reset()
            assert resumed.policy_ids == live.policy_ids
            assert resumed.assigner.draw_episode[0] == live.assigner.draw_episode[0]

    def test_mapping_set_after_loading_is_used_at_the_next_reset(self):
        assigner = assigner_of(pm.Fixed(1), seed=0)
        assigner.begin_episodes()
        resumed = assigner_of(pm.Fixed(1), seed=0)
        resumed.load_state_dict(assigner.state_dict(unfinished=True))
        resumed.set_mapping(pm.Fixed(3), now=True)
        assert resumed.begin_episodes().tolist() == [[3, 3]]
        assert resumed.episode[0] == 0

    def test_restart_with_another_seed_resamples(self):
        assigner = assigner_of()
        assigner.load_state_dict(assigner.state_dict())  # of a run that has no seed yet
        drawn = [assigner.begin_episodes(seed=seed).tolist() for seed in (1, 2, 1)]
        assert drawn[0] == drawn[2] != drawn[1]

    def test_unfinished_episodes_are_given_by_the_caller(self):
        assigner = assigner_of(num_envs=3, seed=0)
        assigner.begin_episodes()
        assert assigner.state_dict()["episode"].tolist() == [0, 0, 0]
        assert assigner.state_dict(unfinished=[True, False, True])["episode"].tolist() == [-1, 0, -1]


def assign_nobody(agents, draw):
    raise AssertionError("no draw is due")


def play_out(env):
    if isinstance(env, pm.PolicyMapParallel):
        while env.agents:
            env.step(dict.fromkeys(env.agents, 0))
    else:
        for _ in env.agent_iter():
            dead = env.last()[2]
            env.step(None if dead else 0)


class TestStatesThatDoNotFit:
    def state(self):
        assigner = assigner_of(seed=0, agents=["a", "b"], env_index=1)
        assigner.begin_episodes()
        return assigner.state_dict()

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"mapping": 999}, "mapping='Uniform.1000.*this assigner 'Uniform.999"),
            ({"resample_every": 4}, "resample_every=3, this assigner 4"),
            ({"warmup_episodes": 1}, "warmup_episodes=0, this assigner 1"),
            ({"agents": ["b", "a"]}, r"agents=\['a', 'b'\], this assigner \['b', 'a'\]"),
            ({"agents": None}, "agents=.*this assigner None"),
            ({"env_index": 0}, "env_index=1, this assigner 0"),
            ({"num_envs": 2}, "num_envs=1, this assigner 2"),
            ({"seed": 1}, "seed=0, this assigner 1"),
        ],
    )
    def test_state_with_other_settings_raises(self, settings, message):
        other = assigner_of(**{"mapping": 1000, "agents": ["a", "b"], "env_index": 1, **settings})
        before = str(other.state_dict())
        with pytest.raises(ValueError, match=message):
            other.load_state_dict(self.state())
        assert str(other.state_dict()) == before

    @pytest.mark.parametrize("key", ["version", "mapping", "seed", "episode", "redraw", "draw", "agents", "num_envs"])
    def test_state_without_an_entry_raises(self, key):
        state = self.state()
        del state[key]
        with pytest.raises(ValueError, match=f"no '{key}'"):
            assigner_of(agents=["a", "b"], env_index=1).load_state_dict(state)

    @pytest.mark.parametrize("draw", [None, {}, "draw", []])
    def test_draw_without_an_entry_raises(self, draw):
        with pytest.raises(ValueError, match="^state does not fit: it has no 'agents'"):
            assigner_of(agents=["a", "b"], env_index=1).load_state_dict({**self.state(), "draw": draw})

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (["version"], 2),
            (["version"], "1"),
            (["seed"], -4),
            (["seed"], "0"),
            (["episode"], 1.5),
            (["episode"], [0, 1]),
            (["episode"], -2),
            (["episode"], 2**62 + 1),
            (["episode"], 2**70),
            (["episode"], None),
            (["redraw"], -5),
            (["redraw"], 1.5),
            (["episode"], 2**63 - 1),
            (["draw", "episode"], "0"),
            (["draw", "policies"], [1]),
            (["draw", "policies"], [1, -2]),
            (["draw", "policies"], [1, -1]),
            (["draw", "policies"], [1, 1000]),
            (["draw", "policies"], [1 + 0j, 1]),
            (["draw", "policies"], [True, True]),
            (["draw", "policies"], [0.5, 1]),
            (["draw", "policies"], [2**40, 1]),
            (["draw", "agents"], ["a"]),
            (["draw", "agents"], ["x", "y"]),
            (["draw", "agents"], None),
            (["draw", "weights"], None),
            (["draw", "mapping"], None),
        ],
    )
    def test_invalid_entry_of_a_state_raises_and_changes_nothing(self, path, value):
        state = self.state()
        inner = state
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        assigner = assigner_of(agents=["a", "b"], env_index=1)
        before = assigner.state_dict()
        with pytest.raises(ValueError, match="^state does not fit: .*" + path[-1]):
            assigner.load_state_dict(state)
        assert assigner.state_dict() == before

    @pytest.mark.parametrize("path", [("episode",), ("redraw",), ("draw", "episode"), ("draw", "policies")])
    @pytest.mark.parametrize("value", [-2, 2**62 + 1, 0.5, "0", True])
    def test_non_integer_counters_and_indices_raise(self, path, value):
        state = self.state()
        inner = state if len(path) == 1 else state["draw"]
        inner[path[-1]] = [value, value] if path[-1] == "policies" else value
        with pytest.raises(ValueError, match=f"^state does not fit: '{path[-1]}' must be integers from -1 to"):
            assigner_of(agents=["a", "b"], env_index=1).load_state_dict(state)

    @pytest.mark.parametrize("late", ["a", ["c"]])
    def test_draw_with_repeated_or_unhashable_agents_raises(self, late):
        state = self.state()
        state["draw"] |= {"agents": ["a", "b", late], "policies": [1, 2, 3]}
        with pytest.raises(ValueError, match="^state does not fit: agents must be distinct and hashable"):
            assigner_of(agents=["a", "b"], env_index=1).load_state_dict(state)

    def test_draw_of_a_larger_earlier_mapping_loads(self):
        assigner = assigner_of(pm.Fixed(1500), seed=0, agents=["a", "b"])
        assigner.begin_episodes()
        assigner.set_mapping(1000)
        other = assigner_of(agents=["a", "b"])
        other.load_state_dict(assigner.state_dict())
        assert other.policy_ids.tolist() == [[1500, 1500]]

    def test_invalid_seed_of_a_state_raises(self):
        assigner = assigner_of(agents=["a", "b"], env_index=1)
        for seed, message in [(-1, "seed must be"), ([], "seed must")]:
            with pytest.raises(ValueError, match=f"^state does not fit: {message}"):
                assigner.load_state_dict({**self.state(), "seed": seed})

    @pytest.mark.parametrize("weights", [[], [[0.5, -1]], [["x"]], [[0, 0]]])
    def test_weights_that_do_not_fit_the_mapping_raise(self, weights):
        rule = pm.Weighted(lambda: [1, 1])
        assigner = assigner_of(rule, seed=0)
        assigner.begin_episodes()
        state = assigner.state_dict()
        state["draw"]["weights"] = weights
        with pytest.raises(ValueError, match="does not accept its weights"):
            assigner_of(rule).load_state_dict(state)

    @pytest.mark.parametrize("state", [None, [], "state", 3])
    def test_non_dict_state_raises(self, state):
        with pytest.raises(TypeError, match=f"state must be a dict, got {type(state).__name__}"):
            assigner_of().load_state_dict(state)

    def test_state_before_the_first_draw_loads_for_a_population_of_one(self):
        state = assigner_of(pm.Uniform(1), agents=None).state_dict()
        assert state["draw"]["policies"] == []
        other = assigner_of(pm.Uniform(1), agents=None)
        other.load_state_dict(state)
        assert other.state_dict() == state

    def test_state_with_the_largest_counters_loads(self):
        """Policy ids are 32 bits wide; no sum of two counters up to 2**62 overflows."""
        assigner, other = (assigner_of(pm.FromFunction(assign_nobody), env_index=2**62) for _ in range(2))
        state = {**other.state_dict(), "seed": 0, "episode": 2**62, "redraw": 2**62}
        state["draw"] |= {"episode": 2**62, "policies": [2**31 - 1] * len(AGENTS)}
        assigner.load_state_dict(state)
        assert assigner.state_dict() == state


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text().filter(lambda key: not key.startswith("~")), inner, max_size=4)
    ),
    max_leaves=12,
)


class TestFile:
    @given(st.dictionaries(st.text(min_size=1).filter(lambda k: not k.startswith("~")), PLAIN, max_size=4))
    def test_plain_types_round_trip(self, tmp_path_factory, state):
        path = tmp_path_factory.getbasetemp() / "plain.npz"
        pm.save(path, mine=state)
        assert pm.load(path) == {"mine": state}

    def test_arrays_round_trip_with_their_types(self, tmp_path):
        arrays = {
            name: np.arange(6).reshape(2, 3).astype(name) for name in ("bool", "int8", "uint64", "float32", "float64")
        }
        pm.save(tmp_path / "a.npz", mine={"nested": [arrays, np.int64(3), np.float64(0.5), np.zeros((0, 3))]})
        loaded, three, half, empty = pm.load(tmp_path / "a.npz")["mine"]["nested"]
        for name, array in arrays.items():
            assert loaded[name].dtype == array.dtype
            np.testing.assert_array_equal(loaded[name], array)
        assert (three, half, empty.shape) == (3, 0.5, (0, 3))

    def test_several_parts_share_a_file(self, tmp_path):
        pm.save(tmp_path / "a.npz", assigner=assigner_of(), other={"x": 1})
        assert set(pm.load(tmp_path / "a.npz")) == {"assigner", "other"}

    @pytest.mark.parametrize(
        ("parts", "error", "message"),
        [
            ({}, ValueError, "parts must be at least one object"),
            ({"mine": 3}, TypeError, "mine must have a state_dict"),
            ({"mine": {"f": print}}, TypeError, r"states\['mine'\]\['f'\] cannot be saved"),
            ({"mine": {3: 1}}, TypeError, "key that cannot be saved: 3"),
            ({"mine": {"~array": 1}}, TypeError, "key that cannot be saved: '~array'"),
            ({"mine": {"a": np.array([print])}}, TypeError, "cannot be saved"),
            ({"mine": {"a": np.ma.masked_array([1.0, 2.0], [False, True])}}, TypeError, "cannot be saved"),
            ({"mine": {"a": [1, {2}]}}, TypeError, r"\['a'\]\[1\] cannot be saved"),
        ],
    )
    def test_unsupported_value_raises_and_the_old_file_stays(self, tmp_path, parts, error, message):
        path = tmp_path / "a.npz"
        pm.save(path, mine={"old": True})
        with pytest.raises(error, match=message):
            pm.save(path, **parts)
        assert pm.load(path) == {"mine": {"old": True}}
        assert os.listdir(tmp_path) == ["a.npz"]

    def test_flipped_bit_raises(self, tmp_path):
        path = tmp_path / "a.npz"
        pm.save(path, mine={"x": np.arange(1000)})
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            pm.load(path)

    def test_array_in_another_version_of_numpys_format_raises(self, tmp_path):
        path = tmp_path / "a.npz"
        pm.save(path, mine={"x": np.arange(3)})
        with zipfile.ZipFile(path) as archive:
            text = archive.read("state.json")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("state.json", text)
            with archive.open("0.npy", "w") as member:
                np.lib.format.write_array(member, np.arange(3), version=(2, 0))
        with pytest.raises(ValueError, match="0.npy must have version .* of NumPy's format"):
            pm.load(path)

    def test_save_works_without_o_directory(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "O_DIRECTORY")  # Windows
        pm.save(tmp_path / "run.npz", part={"a": 1})
        pm.save(tmp_path / "run.npz", part={"a": 2})
        assert pm.load(tmp_path / "run.npz") == {"part": {"a": 2}}
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_error_while_replacing_a_file_keeps_the_old_one(self, tmp_path):
        def write(content, divisor):
            with replacing(tmp_path / "model.zip") as file:
                file.write(content)
                1 / divisor

        write(b"old", 1)
        with pytest.raises(ZeroDivisionError):
            write(b"half of the new", 0)
        assert (tmp_path / "model.zip").read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["model.zip"]

    def test_load_of_a_missing_file_raises_file_not_found(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            pm.load(tmp_path / "nothing.npz")

    def test_save_keeps_symbolic_links_and_follows_the_umask(self, tmp_path):
        (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
        pm.save(tmp_path / "link.npz", mine={"x": 1})
        assert (tmp_path / "link.npz").is_symlink()
        assert pm.load(tmp_path / "real.npz") == {"mine": {"x": 1}}
        ordinary = tmp_path / "ordinary"
        ordinary.touch()
        assert (tmp_path / "real.npz").stat().st_mode == ordinary.stat().st_mode
