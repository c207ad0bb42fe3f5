"""Random bits at millions of positions: repeats are as frequent as expected, and neighbours are independent.

Positions lie in layers, one per episode, with the axes seed, base, stream, env index (from the base) and seat. Env
indices of neighbours along the axis base are a power of two apart. With --long there are 10**9 positions, else 10**7.
The positions are fixed, so the tests are deterministic. A sound generator had a chance of 1 in 300 to fail at this
threshold.
"""

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from pz_policymap import Draw

THRESHOLD = 1e-4
SEEDS = (0, 1)
BASES = (0, 2**12, 2**20, 2**21, 2**31, 2**32, 2**40, 2**41)
STREAMS = (0, 1)
ENVS, SEATS = 2**12, 16
AGENTS = range(SEATS)
LAYER = len(SEEDS) * len(BASES) * len(STREAMS) * ENVS * SEATS
AXES = ("seed", "base", "stream", "env index", "seat", "episode")
PARTS = 4  # of all values, compared one after the other to save memory


@pytest.fixture(scope="module")
def num_layers(long_run):
    return -(-(10**9 if long_run else 10**7) // LAYER)


def layer(number):
    """Returns the bits of one episode; every other episode is beyond 32 bits."""
    episode = np.full(ENVS, number // 2 + (2**32 if number % 2 else 0))
    bits = np.empty((len(SEEDS), len(BASES), len(STREAMS), ENVS, SEATS), np.int64)
    for i, seed in enumerate(SEEDS):
        for j, base in enumerate(BASES):
            draw = Draw.at(seed, AGENTS, np.arange(base, base + ENVS), episode)
            for k, stream in enumerate(STREAMS):
                bits[i, j, k] = draw.bits(stream)
    return bits


def equal_pairs(num_layers, word):
    """Returns the number of repeated values of `word(bits)`, and the number of values."""
    equal = count = 0
    for part in range(PARTS):
        values = []
        for number in range(num_layers):
            words = word(layer(number).ravel())
            values.append(words[words % PARTS == part])
        together = np.concatenate(values)
        del values
        together.sort()
        equal += np.count_nonzero(together[1:] == together[:-1])
        count += len(together)
    return equal, count


@pytest.mark.parametrize(
    ("kept", "word"),
    [(53, lambda bits: bits), (40, lambda bits: bits >> 13), (40, lambda bits: bits & 2**40 - 1)],
    ids=["all bits", "the upper 40 bits", "the lower 40 bits"],
)
def test_repeated_bits_are_as_frequent_as_expected(kept, word, num_layers, long_run):
    if kept == 40 and long_run:
        num_layers = 5  # of more values than the square root of a bit pattern's number, triples count
    equal, count = equal_pairs(num_layers, word)
    assert count == num_layers * LAYER
    expected = count * (count - 1) / 2 / 2**kept
    print(f"{count} positions, {kept} bits: {equal} equal pairs, {expected:.2f} expected")  # noqa: T201  # for -s
    assert min(poisson.cdf(equal, expected), poisson.sf(equal - 1, expected)) > THRESHOLD


def test_neighbours_are_uniform_and_independent(num_layers):
    size = 64  # of the uppermost bits, and of the lowermost, of two neighbours
    cuts = {"upper": lambda bits: bits >> 47, "lower": lambda bits: bits & size - 1}
    counts = {(axis, cut): np.zeros(size * size, np.int64) for axis in AXES for cut in cuts}
    for number in range(0, num_layers - 1, 2):
        layers = layer(number), layer(number + 1)
        for cut, shorten in cuts.items():
            first, second = (shorten(bits).astype(np.int32) for bits in layers)
            counts["episode", cut] += np.bincount((first * size + second).ravel(), minlength=size * size)
            for values in (first, second):
                for number_of_axis, axis in enumerate(AXES[:-1]):
                    pairs = np.moveaxis(values, number_of_axis, 0)
                    codes = pairs[0::2] * size + pairs[1::2]
                    counts[axis, cut] += np.bincount(codes.ravel(), minlength=size * size)
    smallest = {key: float(chisquare(table).pvalue) for key, table in counts.items()}
    print(smallest)  # noqa: T201  # for -s
    assert counts["seed", "upper"].sum() >= (num_layers - 1) * LAYER // 2
    assert min(smallest.values()) > THRESHOLD, smallest
    # The same for the difference of two neighbours, which is sensitive with fewer values.
    for table in counts.values():
        table = table.reshape(size, size)  # noqa: PLW2901
        apart = (np.arange(size)[:, None] - np.arange(size)) % size
        assert chisquare(np.bincount(apart.ravel(), table.ravel(), size)).pvalue > THRESHOLD
