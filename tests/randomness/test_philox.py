"""The random words: every way of computing them gives the words of NumPy's Philox."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_policymap.randomness.philox import SALT, Source, _scattered_words

SEEDS = st.one_of(st.integers(0, 2**130), st.lists(st.integers(0, 2**70), min_size=1, max_size=3).map(tuple))
ENV_INDICES = st.integers(0, 2**40)
EPISODES = st.integers(0, 2**32)
GROUPS = st.integers(0, 75)  # of up to 300 seats
STREAMS = st.integers(0, 2**64 - 1)


def reference(seed, env_index, group, episode, stream):
    """Returns the words by the contract: key, counter, and NumPy's increment before each four words."""
    words = seed if isinstance(seed, tuple) else (seed,)
    key = np.random.SeedSequence([*words, SALT]).generate_state(2, np.uint64)
    before = (env_index + (group << 64) + (episode << 128) + (stream << 192) - 1) % 2**256
    return np.random.Philox(key=key, counter=before).random_raw(4)


@given(SEEDS, ENV_INDICES, GROUPS, EPISODES, STREAMS)
def test_one_counter_gives_the_words_of_numpys_philox(seed, env_index, group, episode, stream):
    words = Source(seed).words(np.array([env_index]), group, np.array([episode]), stream)
    np.testing.assert_array_equal(words, [reference(seed, env_index, group, episode, stream)])


@given(SEEDS, ENV_INDICES, GROUPS, EPISODES, STREAMS, st.integers(2, 9))
def test_environments_in_a_row_give_the_words_of_each(seed, env_index, group, episode, stream, count):
    rows = np.arange(env_index, env_index + count)
    words = Source(seed).words(rows, group, np.full(count, episode), stream)
    np.testing.assert_array_equal(words, [reference(seed, int(i), group, episode, stream) for i in rows])


@given(SEEDS, st.lists(st.tuples(ENV_INDICES, EPISODES), min_size=1, max_size=8), GROUPS, STREAMS)
def test_scattered_counters_computed_by_numpy_and_by_the_rounds_of_the_paper_give_the_same_words(
    seed, counters, group, stream
):
    env_index, episode = (np.array(column) for column in zip(*counters, strict=True))
    expected = [reference(seed, e, group, k, stream) for e, k in counters]
    source = Source(seed)
    np.testing.assert_array_equal(source.words(env_index, group, episode, stream), expected)
    groups = np.full(len(counters), group)
    np.testing.assert_array_equal(_scattered_words(source.key, env_index, groups, episode, stream), expected)


@pytest.mark.parametrize("num_groups", [1, 2, 64, 65, 3000])
def test_groups_of_one_environment_give_the_words_of_each_group(num_groups):
    source = Source(3)
    expected = [source.words(np.array([7]), group, np.array([9]), 2)[0] for group in range(num_groups)]
    np.testing.assert_array_equal(source.groups(7, num_groups, 9, 2), expected)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 2047, 2048, 2049, 5000])
def test_scattered_counters_in_any_number_give_the_words_of_each(count):
    rng = np.random.default_rng(count)
    env_index, episode = rng.integers(0, 2**40, count), rng.integers(0, 2**32, count)
    source = Source(count)
    together = source.words(env_index, 5, episode, 7)
    apart = [source.words(env_index[i : i + 1], 5, episode[i : i + 1], 7)[0] for i in range(count)]
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("count", [100, 400])
def test_run_interrupted_by_another_episode_gives_the_words_of_each(count):
    env_index = np.arange(count)
    episode = np.where(env_index < 50, 3, 4)
    words = Source(0).words(env_index, 0, episode, 0)
    np.testing.assert_array_equal(words, [reference(0, i, 0, 3 if i < 50 else 4, 0) for i in range(count)])


def test_unordered_environments_whose_ends_look_like_a_run_give_the_words_of_each():
    env_index = np.array([4, 6, 5, 7])
    words = Source(0).words(env_index, 0, np.full(4, 2), 0)
    np.testing.assert_array_equal(words, [reference(0, int(i), 0, 2, 0) for i in env_index])


@pytest.mark.parametrize("runs", [2, 64, 65])
def test_runs_in_any_number_give_the_words_of_each(runs):
    env_index = np.concatenate([np.arange(1000 * run, 1000 * run + 300 // runs + 5) for run in range(runs)])
    words = Source(0).words(env_index, 0, np.full(len(env_index), 2), 0)
    assert words.dtype == np.uint64  # floats that had lost bits would compare equal
    np.testing.assert_array_equal(words, [reference(0, int(i), 0, 2, 0) for i in env_index])


@pytest.mark.parametrize(
    ("env_index", "episode"),
    [
        ([0, 0, 2], [5] * 3),
        ([0, *[1] * 299], [5] * 300),
        (range(0, 800, 2), [5] * 400),
        (range(0, 1200, 3), [5] * 400),
        (range(400), range(400)),
        (range(400), [5] * 100 + [6] + [5] * 299),
    ],
)
def test_nearly_consecutive_counters_are_not_a_run(env_index, episode):
    words = Source(0).words(np.array(env_index), 0, np.array(episode), 0)
    np.testing.assert_array_equal(words, [reference(0, i, 0, k, 0) for i, k in zip(env_index, episode, strict=True)])


def test_words_of_no_environment_are_empty():
    assert Source(0).words(np.array([], np.int64), 0, np.array([], np.int64), 0).shape == (0, 4)


def test_scattered_words_reproduce_the_published_vector_of_the_generator():
    """Known answer of Random123 1.14, kat_vectors: philox4x64 10, counter 0, key 0."""
    zero = np.zeros(1, np.int64)
    words = _scattered_words(np.zeros(2, np.uint64), zero, zero, zero, 0)
    expected = ["16554d9eca36314c", "db20fe9d672d0fdc", "d7e772cee186176b", "7e68b68aec7ba23b"]
    assert [f"{word:016x}" for word in words[0].tolist()] == expected


def test_a_copied_source_gives_the_same_words():
    source = Source((1, 2))
    for other in (copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert other.seed == (1, 2)
        arguments = (np.array([3]), 1, np.array([4]), 5)
        np.testing.assert_array_equal(other.words(*arguments), source.words(*arguments))


def test_key_differs_from_the_one_that_an_environment_derives_from_the_same_seed():
    for seed in (0, 1, 42, 2**32, 2**64 + 1):
        theirs = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        assert (Source(seed).key != theirs).all()


def test_generators_share_no_words_with_draws_or_with_each_other():
    source = Source(3)
    streams = [source.generator(env, episode, 9).bit_generator.random_raw(400) for env in (0, 1) for episode in (0, 1)]
    draws = source.words(np.arange(100), 0, np.zeros(100, np.int64), 0).ravel()
    everything = np.concatenate([*streams, draws])
    assert len(np.unique(everything)) == len(everything)
