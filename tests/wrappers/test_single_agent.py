"""`PolicyMapEnv`: tags, seeds, forced policies, faults, copies."""

import copy
import pickle

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import pz_policymap as pm
from pz_policymap.randomness.philox import SALT
from tests.vector_envs import Countdown


def wrapped(mapping=1000, longest=3, infos=None, **settings):
    return pm.wrap(Countdown(longest, infos), mapping, **settings)


def episodes(env, count, **first):
    """Plays some episodes to their end and returns the policy of each, which its infos agree on."""
    policies = []
    for number in range(count):
        _, info = env.reset(**(first if number == 0 else {}))
        seen = {info["policy_id"], env.policy_ids}
        over = False
        while not over:
            _, _, over, _, info = env.step(0)
            seen.add(info["policy_id"])
        policies += seen
    assert len(policies) == count, "an episode had more than one policy"
    return policies


def by_numpy(seed, env_index, episode, size):
    """Seat 0's policy of a uniform draw, by NumPy's own Philox and the formula of the documentation."""
    key = np.random.SeedSequence([seed, SALT]).generate_state(2, np.uint64)
    before = (episode << 128 | env_index) - 1
    counter = np.array([before >> shift & (2**64 - 1) for shift in (0, 64, 128, 192)], np.uint64)
    word = np.random.Philox(key=key, counter=counter).random_raw()
    return int((int(word) >> 11) * 2.0**-53 * size)


def test_episode_has_the_policy_of_its_block():
    env = wrapped(seed=5, env_index=3, resample_every=2)
    expected = [by_numpy(5, 3, e - e % 2, 1000) for e in range(6)]
    assert len(set(expected)) == 3
    assert episodes(env, 6) == expected


def test_warmup_resamples_in_each_episode():
    env = wrapped(seed=5, resample_every=10, warmup_episodes=3)
    assert episodes(env, 5) == [by_numpy(5, 0, e, 1000) for e in (0, 1, 2, 2, 2)]


def test_info_has_a_plain_int_beside_the_environments_entries():
    env = wrapped(seed=0, info_key="who")
    info = env.reset()[1]
    assert info == {"left": info["left"], "who": env.policy_ids}
    assert type(info["who"]) is type(env.policy_ids) is int
    assert type(env.step(0)[4]["who"]) is int


def test_info_is_a_new_dict_and_the_environments_unchanged():
    kept = {"x": 1}
    env = wrapped(infos=lambda env: kept, longest=1, seed=0)
    first, second = env.reset()[1], env.step(0)[4]
    assert kept == {"x": 1}
    assert first == second == {"x": 1, "policy_id": env.policy_ids}
    assert first is not second


def test_seed_restarts_the_assignments_and_none_continues():
    env = wrapped(resample_every=1)
    first = episodes(env, 4, seed=9)
    assert len(set(first)) == 4
    assert episodes(env, 4, seed=9) == first == [by_numpy(9, 0, e, 1000) for e in range(4)]
    assert episodes(env, 1) == [by_numpy(9, 0, 4, 1000)]


def test_pinned_seed_continues_whatever_seed_reset_is_given():
    env = wrapped(resample_every=1, seed=9)
    assert [episodes(env, 1, seed=3)[0] for _ in range(3)] == [by_numpy(9, 0, e, 1000) for e in range(3)]


def test_unseeded_environments_differ():
    played = [tuple(episodes(wrapped(2**31 - 1, resample_every=1), 3)) for _ in range(2)]
    assert played[0] != played[1]


@pytest.mark.parametrize("forced", [7, np.int64(7), {"agent_0": 7}, [7]])
def test_forced_policy_holds_for_one_episode_and_keeps_the_draw(forced):
    env = wrapped(seed=0, resample_every=3)
    drawn = episodes(env, 1)
    assert episodes(env, 1, options={"policy_ids": forced}) == [7]
    assert type(env.policy_ids) is int
    assert episodes(env, 1) == drawn
    assert env.assigner.episode.tolist() == [2]


def test_options_reach_the_environment_without_the_forced_policy():
    env = wrapped(seed=0)
    options = {"policy_ids": 1, "level": 2}
    env.reset(options=options)
    assert options == {"policy_ids": 1, "level": 2}
    assert env.unwrapped.options == {"level": 2}
    env.reset(options={"policy_ids": 1})
    assert env.unwrapped.options is None
    env.reset(options={})
    assert env.unwrapped.options == {}


@pytest.mark.parametrize(
    ("forced", "error", "match"),
    [
        (4, ValueError, r"options\['policy_ids'\] must be from 0 to 3, got 4"),
        (-1, ValueError, "from 0 to 3, got -1"),
        (1.0, TypeError, "must be an integer, got 1.0"),
        (True, TypeError, "must be an integer"),
        ({"agent_0": 4}, ValueError, r"\['agent_0'\] must be from 0 to 3"),
        ({"blue": 1}, KeyError, "names 'blue', which is not among \\['agent_0'\\]"),
        ([1, 2], ValueError, r"one policy per seat, 1 in all, got shape \(2,\)"),
        ([0.5], TypeError, "a policy, a dict from agent to policy or integers"),
        ([9], ValueError, "policies from 0 to 3, or -1"),
    ],
)
def test_forced_policy_invalid_raises_before_the_environment_is_reset(forced, error, match):
    env = wrapped(4, seed=0)
    with pytest.raises(error, match=match):
        env.reset(options={"policy_ids": forced})
    assert env.unwrapped.resets == 0
    assert env.assigner.episode.tolist() == [-1]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"mapping": 0}, ValueError, "policies must be from 1"),
        ({"resample_every": 0}, ValueError, "resample_every must be from 1 to .*, got 0"),
        ({"warmup_episodes": -1}, ValueError, "warmup_episodes"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 1.5}, TypeError, "seed"),
        ({"info_key": 3}, TypeError, "info_key must be a string, got 3"),
        ({"mapping": pm.ByEnvIndex(2)}, ValueError, "env_index must be the index of this environment"),
        ({"mapping": pm.Uniform(1, replace=False), "agents": 2}, TypeError, "must be left out for"),
        ({"autoreset_mode": "SameStep"}, TypeError, "must be left out for"),
        ({"mapping": pm.Fixed({"red": 1})}, ValueError, "'agent_0'"),
    ],
)
def test_invalid_settings_raise_the_name_of_the_argument(arguments, error, match):
    with pytest.raises(error, match=match):
        wrapped(**arguments)


def test_wrapper_of_a_non_environment_raises():
    with pytest.raises(TypeError, match=r"env must be a gymnasium.Env, got 3"):
        pm.PolicyMapEnv(3, 4)


@pytest.mark.parametrize("when", ["reset", "step"])
def test_info_key_in_use_raises_and_begins_no_episode(when):
    env = wrapped(seed=0, infos=lambda env: {"policy_id": 1} if when == "reset" or env.left < 1 else {}, longest=1)
    if when == "step":
        env.reset()
    with pytest.raises(ValueError, match="info_key 'policy_id' is already used"):
        env.reset() if when == "reset" else env.step(0)
    assert env.assigner.episode.tolist() == [-1 if when == "reset" else 0]


def test_policy_ids_before_the_first_reset_raise():
    env = wrapped()
    with pytest.raises(AttributeError, match="policy_ids cannot be accessed before reset"):
        env.policy_ids  # noqa: B018
    with pytest.raises(ResetNeeded, match="step cannot be called before reset"):
        env.step(0)


def test_reset_that_raises_begins_no_episode():
    def infos(env):
        if env.resets == 2:
            raise RuntimeError("no")
        return {}

    env = wrapped(seed=0, resample_every=1, infos=infos)
    env.reset()
    with pytest.raises(RuntimeError):
        env.reset()
    assert env.assigner.episode.tolist() == [0]
    env.reset()
    assert env.policy_ids == by_numpy(0, 0, 1, 1000)


def test_set_mapping_takes_effect_at_the_next_draw_or_at_once():
    env = wrapped(seed=0, resample_every=3)
    (drawn,) = episodes(env, 1)
    env.set_mapping(pm.Fixed(5))
    assert episodes(env, 3) == [drawn, drawn, 5]
    env.set_mapping(pm.Fixed(6), now=True)
    assert episodes(env, 1) == [6]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e)), cloudpickle.loads])
@pytest.mark.parametrize("resets", [0, 1])
def test_copy_continues_as_the_original(copied, resets):
    env = pm.wrap(gymnasium.make("CartPole-v1"), 1000, resample_every=1, seed=3)
    for _ in range(resets):
        env.reset(seed=1)
    twin = copied(cloudpickle.dumps(env) if copied is cloudpickle.loads else env)
    if resets:
        assert twin.policy_ids == env.policy_ids
        assert twin.state_dict() == env.state_dict()
    assert [twin.reset(seed=1)[1] for _ in range(3)] == [env.reset(seed=1)[1] for _ in range(3)]


def test_state_resumes_and_repeats_an_unfinished_episode():
    def fresh():
        return wrapped(resample_every=1, seed=2, longest=1)

    whole = episodes(fresh(), 4)
    env = fresh()
    assert episodes(env, 2) == whole[:2]
    between = env.state_dict()
    env.reset()
    within = env.state_dict()
    for state in (between, within):
        resumed = fresh()
        resumed.load_state_dict(state)
        assert episodes(resumed, 2) == whole[2:]


def test_find_assigner_looks_through_gymnasium_wrappers():
    env = gymnasium.wrappers.TimeLimit(gymnasium.wrappers.RecordEpisodeStatistics(wrapped(seed=0)), 5)
    assert pm.find_assigner(env) is env.env.env.assigner


def test_env_fns_give_single_environments_their_index():
    envs = [fn() for fn in pm.env_fns(Countdown, 3, pm.ByEnvIndex([4, 6, 8]), seed=0)]
    assert [type(env) for env in envs] == [pm.PolicyMapEnv] * 3
    assert [env.reset()[1]["policy_id"] for env in envs] == [4, 6, 8]


def test_autoreset_inside_is_refused_and_outside_works():
    inner = gymnasium.wrappers.TimeLimit(gymnasium.wrappers.Autoreset(gymnasium.make("CartPole-v1")), 10**6)
    with pytest.raises(
        ValueError,
        match="^env must not reset itself, put Autoreset around the policy wrapper, got <TimeLimit<Autoreset",
    ):
        pm.wrap(inner, 4)
    env = pm.wrap(gymnasium.make("CartPole-v1"), 1000, resample_every=1, seed=0)
    outer = gymnasium.wrappers.Autoreset(env)
    outer.reset(seed=0)
    seen = {outer.step(0)[-1]["policy_id"] for _ in range(50)}
    assert len(seen) == env.assigner.episode[0] + 1 > 3
