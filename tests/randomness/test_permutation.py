"""A seeded permutation evaluated at a point: a bijection of every size that looks drawn uniformly."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pz_policymap.randomness.permutation import permuted

WORD = 2**64 - 1
MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all


def keys_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, WORD, count, np.uint64, endpoint=True)


def mixed(word):
    """SplitMix64's finaliser, from the paper's constants."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def swap_or_not(position, size, key, rounds=32):
    """The shuffle as the paper writes it, in Python's unbounded integers."""
    for number in range(1, rounds + 1):
        pivot = mixed(key + number * 0x9E3779B97F4A7C15 & WORD)
        partner = (pivot % size - position) % size
        bit = (max(position, partner) ^ pivot) * 0xBF58476D1CE4E5B9 & WORD
        bit = (bit ^ (bit >> 32)) * 0x94D049BB133111EB & WORD
        if bit >> 63:
            position = partner
    return position


@settings(deadline=None)
@given(size=st.integers(1, 2**63), key=st.integers(0, WORD), data=st.data())
def test_permutation_equals_the_shuffle_of_the_paper(size, key, data):
    position = data.draw(st.integers(0, size - 1))
    found = permuted(np.array([position]), size, np.array([key], np.uint64))
    assert found.tolist() == [swap_or_not(position, size, key)]


def test_positions_and_keys_broadcast():
    keys = keys_of(6).reshape(2, 3, 1)
    places = permuted(np.arange(4), 9, keys)
    assert places.shape == (2, 3, 4)
    for index in np.ndindex(2, 3, 4):
        assert places[index] == swap_or_not(index[2], 9, int(keys[index[:2]][0]))


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 3000), key=st.integers(0, WORD))
def test_permutation_is_a_bijection_for_any_size(size, key):
    places = permuted(np.arange(size), size, np.array([key], np.uint64))
    assert np.sort(places).tolist() == list(range(size))


@pytest.mark.parametrize("size", range(1, 70))
def test_permutation_is_a_bijection_for_each_small_size(size):
    places = permuted(np.arange(size)[None], size, keys_of(50)[:, None])
    assert (np.sort(places, axis=1) == np.arange(size)).all()


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_all_permutations_of_a_small_size_are_equally_likely(size):
    drawn = permuted(np.arange(size)[None], size, keys_of(100_000)[:, None])
    number = {order: i for i, order in enumerate(itertools.permutations(range(size)))}
    counts = np.bincount([number[tuple(order)] for order in drawn.tolist()], minlength=len(number))
    assert chisquare(counts).pvalue > MIN_P


@pytest.mark.parametrize("size", [8, 17, 64])
@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 7)])
def test_pairs_of_positions_are_uniform_over_pairs_of_places(size, pair):
    first, second = permuted(np.array([pair]), size, keys_of(200_000)[:, None]).T
    counts = np.bincount(first * size + second, minlength=size**2).reshape(size, size)
    assert counts.diagonal().sum() == 0
    assert chisquare(counts[~np.eye(size, dtype=bool)]).pvalue > MIN_P


def test_keys_that_count_up_give_unrelated_permutations():
    places = permuted(np.zeros((64_000, 1), np.int64), 64, np.arange(64_000, dtype=np.uint64)[:, None]).ravel()
    steps = np.diff(places) % 64
    assert chisquare(np.bincount(places, minlength=64)).pvalue > MIN_P
    assert chisquare(np.bincount(steps, minlength=64)).pvalue > MIN_P


@pytest.mark.parametrize("size", [6_250_000, 2**40, 2**63 - 25, 2**63])
def test_positions_in_a_row_are_scattered_over_a_large_size(size):
    places = permuted(np.arange(100_000), size, keys_of(1)).astype(np.uint64)
    assert len(set(places.tolist())) == 100_000
    assert int(places.max()) < size
    sixteenths = np.uint64(-(-size // 16))
    steps = (places[1:] + np.uint64(size) - places[:-1]) % np.uint64(size)
    assert chisquare(np.bincount((places // sixteenths).astype(int), minlength=16)).pvalue > MIN_P
    assert chisquare(np.bincount((steps // sixteenths).astype(int), minlength=16)).pvalue > MIN_P


def test_batched_keys_and_positions_equal_single_ones():
    keys, positions = keys_of(5), np.arange(21).reshape(7, 3) % 20
    together = permuted(positions[None], 20, keys[:, None, None])
    assert together.shape == (5, 7, 3)
    for (i, row, column), place in np.ndenumerate(together):
        assert permuted(positions[row, column][None], 20, keys[[i]]) == [place]


@pytest.mark.parametrize("position", [-1, 5, 2**62])
def test_position_out_of_range_raises(position):
    with pytest.raises(ValueError, match=r"positions must be from 0 to 4, got"):
        permuted(np.array([0, position]), 5, keys_of(1))


def test_permutation_of_no_positions_is_empty():
    assert permuted(np.empty((0, 4), np.int64), 9, np.empty((0, 1), np.uint64)).shape == (0, 4)
