"""The random words of a seed: Philox4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

A cipher turns a counter of four 64-bit words into four random ones, so a word is had by naming it, and nothing is
consumed. NumPy's own Philox counts upwards from a counter: it serves environments in a row in one call. Counters that
lie apart are cheaper computed by the ten rounds of the paper, written over long integers where they are few, and over
arrays where they are many. All give the same words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SALT = 0x706F6C6963795F6964  # "policy_id": our key is never the one that an environment derives from the same seed

Seed = int | tuple[int, ...]
Words = NDArray[np.uint64]
IntArray = NDArray[np.int64]

_WORD = 2**64 - 1
_FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_MULTIPLIERS = np.array(_FACTORS, np.uint64)[:, None]
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)

_FEW = 256  # counters up to which long integers are cheaper than arrays
_LANES = 8  # they are packed in multiples of this
_MAX_RUNS = 64  # setting NumPy's counter costs about 2 us; for more runs than this the arrays are cheaper
_CHUNK = 2048  # counters at a time, so that the arrays stay in cache


class Source:
    """The random words of one seed.

    Args:
        seed: A non-negative int, or a tuple of them, of any size.

    Example:
        >>> source = Source(42)
        >>> words = source.words(np.array([7]), group=0, episode=np.array([3]), stream=0)
        >>> reference = np.random.Philox(key=source.key, counter=[6, 0, 3, 0])  # it counts up before it speaks
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

    def words(self, env_index: IntArray, group: int, episode: IntArray, stream: int, num_words: int = 4) -> Words:
        """Returns the words of each counter (env index, group, episode, stream), shape `(n, num_words)`.

        Args:
            env_index: From 0, shape `(n,)`.
            group: From 0.
            episode: From 0, shape `(n,)`.
            stream: From 0 to 2**64 - 1.
            num_words: How many of the four, from 1.
        """
        count = len(env_index)
        if count and _in_a_row(env_index, episode):
            return self._run(count, int(env_index[0]), group, int(episode[0]), stream)[:, :num_words]
        if 0 < count <= _FEW:
            return _few_words(self.key, env_index, group, episode, stream, num_words)
        apart = (env_index[1:] - env_index[:-1] != 1) | (episode[1:] != episode[:-1])
        if not count or np.count_nonzero(apart) >= _MAX_RUNS:
            return _scattered_words(self.key, env_index, group, episode, stream)[:, :num_words]
        words = np.empty((count, 4), np.uint64)
        starts = [0, *(np.flatnonzero(apart) + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], count], strict=True):
            words[start:stop] = self._run(stop - start, int(env_index[start]), group, int(episode[start]), stream)
        return words[:, :num_words]

    def generator(self, env_index: int, episode: int, stream: int) -> np.random.Generator:
        """Returns a generator for one environment and episode; it counts in the counter's first word."""
        counter = [0, env_index, episode, stream]
        return np.random.Generator(np.random.Philox(key=self.key, counter=counter))

    def _run(self, count: int, env_index: int, group: int, episode: int, stream: int) -> Words:
        """The words of `count` environments in a row."""
        # NumPy increments the counter, a number of 256 bits, before each four words.
        before = (stream << 192 | episode << 128 | group << 64 | env_index) - 1
        self._counter["counter"] = (before & _WORD, before >> 64 & _WORD, before >> 128 & _WORD, before >> 192 & _WORD)
        self._native.state = self._state  # type: ignore[assignment]  # NumPy's stubs want its own arrays
        words: Words = self._native.random_raw(4 * count)
        return words.reshape(count, 4)


def _in_a_row(env_index: IntArray, episode: IntArray) -> bool:
    """Whether the environments come one after the other, all at one episode."""
    if env_index[-1] - env_index[0] != len(env_index) - 1:  # a look at the ends saves one at the rest, as a rule
        return False
    return len(env_index) == 1 or bool((env_index[1:] > env_index[:-1]).all() and (episode == episode[0]).all())


@lru_cache(maxsize=64)
def _round_keys(first: int, second: int) -> list[tuple[int, int]]:
    """The two words of the key in each round."""
    return [((first + i * _WEYL[0]) & _WORD, (second + i * _WEYL[1]) & _WORD) for i in range(_ROUNDS)]


@lru_cache(maxsize=32)
def _packed_keys(first: int, second: int, lanes: int) -> tuple[int, list[tuple[int, int]]]:
    """A long integer with a 1 in each lane, and the same of the words of the key in each round."""
    ones = int.from_bytes((b"\1" + b"\0" * 15) * lanes, "little")
    return ones, [(ones * key_a, ones * key_c) for key_a, key_c in _round_keys(first, second)]


def _few_words(
    key: NDArray[Any], env_index: IntArray, group: int, episode: IntArray, stream: int, num_words: int = 4
) -> Words:
    """The words of counters that lie anywhere, quickly if there are few.

    One long integer holds the same word of all counters, each in the lower half of a lane of 128 bits. A product of
    two words does not leave its lane, so every step of a round is a single operation for all of them.
    """
    count = len(env_index)
    lanes = -(-count // _LANES) * _LANES  # some more, so that the packed keys are seldom new
    ones, round_keys = _packed_keys(int(key[0]), int(key[1]), lanes)
    lower = ones * _WORD
    padded = np.zeros((lanes, 2), "<u8")
    padded[:count, 0] = env_index
    a = int.from_bytes(padded.tobytes(), "little")
    padded[:count, 0] = episode
    c = int.from_bytes(padded.tobytes(), "little")
    b, d = ones * group, ones * stream
    for key_a, key_c in round_keys:
        product_a, product_c = a * _FACTORS[0], c * _FACTORS[1]
        a, b = (product_c >> 64 ^ b ^ key_a) & lower, product_c  # its upper halves are dropped a round later
        c, d = (product_a >> 64 ^ d ^ key_c) & lower, product_a
    words = np.empty((count, num_words), np.uint64)
    for word, packed in enumerate((a, b, c, d)[:num_words]):
        words[:, word] = np.frombuffer(packed.to_bytes(16 * lanes, "little"), "<u8", 2 * count)[::2]
    return words


def _scattered_words(key: NDArray[Any], env_index: IntArray, group: int, episode: IntArray, stream: int) -> Words:
    """The words of counters that lie anywhere."""
    words = np.empty((len(env_index), 4), np.uint64)
    keys = np.array(_round_keys(int(key[0]), int(key[1])), np.uint64)[:, :, None]
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        # A round multiplies counter words 0 and 2 (`left`) and mixes in words 1 and 3 (`right`).
        left = np.array([env_index[part], episode[part]], np.uint64)
        right = np.empty_like(left)
        right[0], right[1] = group, stream
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
