"""The random words of a seed: Philox4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

A cipher turns a counter of four 64-bit words into four random words. Any words can therefore be computed on their own,
and nothing is consumed. NumPy's Philox counts upwards from a counter, so environments with consecutive indices take one
call. Many counters that lie apart are computed by the ten rounds of the paper over arrays, with the same result.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SALT = 0x706F6C6963795F6964  # "policy_id": keys differ from the one that an environment derives from the same seed

Seed = int | tuple[int, ...]
Words = NDArray[np.uint64]
IntArray = NDArray[np.int64]

_WORD = 2**64 - 1
_MULTIPLIERS = np.array([0xD2E7470EE14C6C93, 0xCA5A826395121157], np.uint64)[:, None]
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)

_MAX_RUNS = 64  # setting NumPy's counter costs about 2 us; for more runs than this the arrays are cheaper
_CHUNK = 2048  # counters at a time, so that the arrays stay in cache


class Source:
    """The random words of one seed.

    Args:
        seed: A non-negative int, or a tuple of them, of any size.

    Example:
        >>> source = Source(42)
        >>> words = source.words(np.array([7]), group=0, episode=np.array([3]), stream=0)
        >>> reference = np.random.Philox(key=source.key, counter=[6, 0, 3, 0])  # incremented before the first words
        >>> bool((words[0] == reference.random_raw(4)).all())
        True
    """

    def __init__(self, seed: Seed) -> None:
        words = seed if isinstance(seed, tuple) else (seed,)
        self.seed = seed
        self.key: NDArray[Any] = np.random.SeedSequence([*words, SALT]).generate_state(2, np.uint64)
        self._native = np.random.Philox(key=self.key)
        self._state: dict[str, Any] = {**self._native.state}
        self._counter: dict[str, Any] = {"key": self.key}
        self._state["state"] = self._counter

    def __reduce__(self) -> tuple[type[Source], tuple[Seed]]:
        return Source, (self.seed,)

    def words(self, env_index: IntArray, group: int, episode: IntArray, stream: int) -> Words:
        """Returns the words of each counter (env index, group, episode, stream), shape `(n, 4)`.

        Args:
            env_index: Integers >= 0, shape `(n,)`.
            group: An integer >= 0.
            episode: Integers >= 0, shape `(n,)`.
            stream: An integer from 0 to 2**64 - 1.
        """
        count = len(env_index)
        if count == 1:
            return self._run(1, int(env_index[0]), group, int(episode[0]), stream)
        apart = np.flatnonzero((env_index[1:] - env_index[:-1] != 1) | (episode[1:] != episode[:-1]))
        if not count or len(apart) >= _MAX_RUNS:
            return _scattered_words(self.key, env_index, np.full(count, group), episode, stream)
        if not len(apart):
            return self._run(count, int(env_index[0]), group, int(episode[0]), stream)
        words = np.empty((count, 4), np.uint64)
        starts = [0, *(apart + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], count], strict=True):
            words[start:stop] = self._run(stop - start, int(env_index[start]), group, int(episode[start]), stream)
        return words

    def groups(self, env_index: int, num_groups: int, episode: int, stream: int) -> Words:
        """Returns the words of the first groups of one environment, shape `(num_groups, 4)`."""
        if num_groups <= _MAX_RUNS:
            runs = [self._run(1, env_index, group, episode, stream) for group in range(num_groups)]
            return np.concatenate(runs)
        counters = np.full((2, num_groups), [[env_index], [episode]])
        return _scattered_words(self.key, counters[0], np.arange(num_groups), counters[1], stream)

    def generator(self, env_index: int, episode: int, stream: int) -> np.random.Generator:
        """Returns a generator for one environment and episode; it counts in the first word of the counter."""
        counter = [0, env_index, episode, stream]
        return np.random.Generator(np.random.Philox(key=self.key, counter=counter))

    def _run(self, count: int, env_index: int, group: int, episode: int, stream: int) -> Words:
        """Returns the words of `count` environments with consecutive indices, at one episode."""
        # NumPy increments the counter, a number of 256 bits, before each four words.
        counter = [env_index, group, episode, stream]
        for i, word in enumerate(counter):
            if word:
                counter[i] = word - 1
                break
            counter[i] = _WORD  # borrows from the next word
        self._counter["counter"] = counter
        self._native.state = self._state  # type: ignore[assignment]  # NumPy's stubs want its own arrays
        words: Words = self._native.random_raw(4 * count)
        return words.reshape(count, 4)


@lru_cache(maxsize=64)
def _round_keys(first: int, second: int) -> NDArray[np.uint64]:
    """Returns the two words of the key in each round, shape `(rounds, 2, 1)`."""
    keys = [((first + i * _WEYL[0]) & _WORD, (second + i * _WEYL[1]) & _WORD) for i in range(_ROUNDS)]
    return np.array(keys, np.uint64)[:, :, None]


def _scattered_words(key: NDArray[Any], env_index: IntArray, group: IntArray, episode: IntArray, stream: int) -> Words:
    """Returns the words of counters that lie apart, by the ten rounds of the paper."""
    words = np.empty((len(env_index), 4), np.uint64)
    keys = _round_keys(int(key[0]), int(key[1]))
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        # A round multiplies counter words 0 and 2 (`left`) and mixes in words 1 and 3 (`right`).
        left = np.array([env_index[part], episode[part]], np.uint64)
        right = np.empty_like(left)
        right[0], right[1] = group[part], stream
        factor = np.empty_like(left)
        factor[:] = _MULTIPLIERS
        factor_low, factor_high = factor & _LOW, factor >> _HALF
        a, b, c, d = np.empty((4, *left.shape), np.uint64)
        for round_key in keys:
            # The upper halves of the 128-bit products, from products of 32-bit halves; no sum exceeds 64 bits.
            np.bitwise_and(left, _LOW, out=a)
            np.right_shift(left, _HALF, out=b)
            np.multiply(a, factor_low, out=c)
            np.right_shift(c, _HALF, out=c)
            np.multiply(a, factor_high, out=a)
            np.add(a, c, out=a)
            np.multiply(b, factor_low, out=c)
            np.bitwise_and(a, _LOW, out=d)
            np.add(c, d, out=c)
            np.right_shift(c, _HALF, out=c)
            np.right_shift(a, _HALF, out=a)
            np.multiply(b, factor_high, out=b)
            np.add(b, a, out=b)
            np.add(b, c, out=b)
            np.multiply(left, factor, out=left)
            np.bitwise_xor(right, round_key, out=right)
            np.bitwise_xor(right, b[::-1], out=right)
            left, right = right, left[::-1]
        words[part, 0], words[part, 2] = left
        words[part, 1], words[part, 3] = right
    return words
