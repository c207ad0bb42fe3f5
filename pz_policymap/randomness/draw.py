"""Reproducible randomness: (seed, env index, seat, episode, stream) -> bits.

Whoever knows these five numbers can compute the bits, in any process and in any order: nothing is consumed. They are
words of Philox4x64-10 under a key from the seed, at the counter

    (env index, seat // 4, episode, stream)

of which a seat takes word `seat % 4`. Environments in a row are therefore one native call of NumPy's Philox.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, in_order, integer, seed_of
from pz_policymap.cadence import Cadence
from pz_policymap.randomness.philox import IntArray, Source, Words

MAX_STREAM = 2**16 - 2
_RNG_STREAM = 2**16 - 1  # of the generators handed to functions
_UNUSED_BITS = np.uint64(11)  # of a word: a float has 53


@lru_cache(maxsize=1024)
def _prefix(path: tuple[int | str, ...]) -> int:
    """The upper 48 bits of the stream word: a hash of the path of a nested draw, 0 for one that is not nested."""
    if not path:
        return 0
    digest = hashlib.blake2b(repr(path).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") | 1


class Draw:
    """What a mapping may look at when it decides which policy plays which seat, for many environments at once.

    Args:
        source: The random words of the seed.
        agents: The agents in seat order.
        env_index: The index of each environment that draws, shape `(num_envs,)`.
        episode: The episode at which it draws, shape `(num_envs,)`.
        cadence: Which block an episode belongs to.

    Attributes:
        agents: The agents in seat order, a tuple.
        env_index: As given.
        episode: As given.
        focal: In the background of `Focal`, the focal policy of each environment, shape `(num_envs,)`; else None.

    Example:
        >>> draw = Draw.at(seed=0, agents=["a", "b", "c"], env_index=[0, 1], episode=[10, 10])
        >>> draw.uniform().shape, draw.block.tolist()
        ((2, 3), [1, 1])
        >>> bool((draw.select([2]).uniform() == draw.uniform()[:, [2]]).all())
        True
    """

    def __init__(
        self,
        source: Source,
        agents: tuple[Any, ...],
        env_index: IntArray,
        episode: IntArray,
        cadence: Cadence,
        *,
        _seats: tuple[int, ...] | None = None,
        _path: tuple[int | str, ...] = (),
    ) -> None:
        self.agents = agents
        self.env_index = env_index
        self.episode = episode
        self.focal: IntArray | None = None
        self._source = source
        self._cadence = cadence
        self._seats = _seats  # whose bits each seat has; None: seats 0, 1, ... as they come
        self._path = _path  # the keys of the children that lead here

    @classmethod
    def at(
        cls,
        seed: int | Sequence[int],
        agents: Sequence[Hashable],
        env_index: ArrayLike,
        episode: ArrayLike,
        resample_every: int = 10,
    ) -> Draw:
        """Returns the draw that these environments make at these episodes, to try a mapping without an environment.

        Args:
            seed: A non-negative int, or several.
            agents: The agents in seat order.
            env_index: Integers from 0, shape `(num_envs,)`.
            episode: Integers from 0, shape `(num_envs,)`.
            resample_every: Episodes a draw is held for, from 1: it tells the block.

        Raises:
            TypeError: If an argument holds what is no integer.
            ValueError: If one is out of range, or if the two arrays differ in shape.
        """
        source = Source(seed_of("seed", seed))
        indices, episodes = counters("env_index", env_index), counters("episode", episode)
        if indices.shape != episodes.shape:
            raise ValueError(f"episode must have the shape of env_index, {indices.shape}, got {episodes.shape}")
        if indices.ndim != 1:
            raise ValueError(f"env_index must be a vector, got shape {indices.shape}")
        return cls(source, in_order("agents", agents), indices, episodes, Cadence(resample_every))

    @property
    def block(self) -> IntArray:
        """The block that begins with the draw, shape `(num_envs,)`."""
        return self._cadence.block(self.episode)

    @property
    def num_envs(self) -> int:
        """How many environments draw."""
        return len(self.env_index)

    @property
    def num_seats(self) -> int:
        """How many seats each of them has."""
        return len(self.agents)

    def bits(self, stream: int = 0) -> IntArray:
        """Returns 53 random bits a seat, as integers from 0 to 2**53 - 1, shape `(num_envs, num_seats)`.

        Args:
            stream: A rule that needs several independent numbers a seat numbers them from 0 to 65534.

        Raises:
            ValueError: If `stream` is out of range.
        """
        word = self._stream_word(integer("stream", stream, 0, MAX_STREAM))
        if self._seats is None:
            parts = [
                self._words(first // 4, word, min(4, self.num_seats - first)) for first in range(0, self.num_seats, 4)
            ]
        else:
            groups = {seat // 4: self._words(seat // 4, word, 4) for seat in self._seats}
            parts = [groups[seat // 4][:, seat % 4, None] for seat in self._seats]
        words = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        words >>= _UNUSED_BITS  # they are nobody else's
        bits: IntArray = words.view(np.int64)
        return bits

    def uniform(self, stream: int = 0) -> NDArray[np.float64]:
        """Returns uniform floats in [0, 1), shape `(num_envs, num_seats)`; `stream` as in `bits`."""
        return np.multiply(self.bits(stream), 2.0**-53, dtype=np.float64)

    def integers(self, high: int, stream: int = 0) -> NDArray[np.int32]:
        """Returns `floor(uniform(stream) * high)`, uniform integers from 0 to `high - 1`, in one pass.

        Args:
            high: From 1 to 2**31 - 1.
            stream: As in `bits`.
        """
        # Scaling by a power of two is exact, so the product rounds as `uniform() * high` does, never up to `high`.
        integer("high", high, 1, MAX_INDEX)
        return (self.bits(stream) * (high * 2.0**-53)).astype(np.int32)

    def select(self, seats: Sequence[int]) -> Draw:
        """Returns the draw of some seats alone, in the order given; each seat keeps its bits.

        Args:
            seats: Positions among this draw's seats, from 0.

        Raises:
            TypeError: If one is no integer.
            ValueError: If one is out of range.
        """
        kept = tuple(integer(f"seats[{i}]", seat, 0, self.num_seats - 1) for i, seat in enumerate(seats))
        bits_of = kept if self._seats is None else tuple(self._seats[seat] for seat in kept)
        return self._like(tuple(self.agents[seat] for seat in kept), bits_of, self._path)

    def child(self, *key: int | str, agents: Sequence[Hashable] | None = None) -> Draw:
        """Returns the draw of a nested rule, with bits of its own: independent of this one and of its other children.

        Args:
            key: What tells this child from its siblings.
            agents: What the nested rule has for seats (teams, say), numbered from 0; this draw's seats if None.
        """
        # NumPy's integers and strings print differently by version, and an enum's members as what they are.
        plain = (str.__str__(k) if isinstance(k, str) else operator.index(k) for k in key)
        path = (*self._path, len(key), *plain)
        return self._like(self.agents, self._seats, path) if agents is None else self._like(tuple(agents), None, path)

    def only(self, rows: IntArray) -> Draw:
        """Returns the draw of some environments alone, given by their rows, in that order; each keeps its bits."""
        draw = self._like(self.agents, self._seats, self._path)
        draw.env_index, draw.episode = self.env_index[rows], self.episode[rows]
        draw.focal = None if self.focal is None else self.focal[rows]
        return draw

    def against(self, focal: NDArray[Any]) -> Draw:
        """Returns the same draw for the opponents of these focal policies, one an environment, shape `(num_envs,)`."""
        draw = self._like(self.agents, self._seats, self._path)
        draw.focal = focal
        return draw

    def keys(self, numbers: IntArray) -> Words:
        """Returns a random 64-bit word for each number, the same in every environment: for rules that span several.

        Args:
            numbers: What the environments have in common (a block, say), from 0, shape `(num_envs,)`.
        """
        word = _prefix((*self._path, "keys")) << 16  # a child's path would have a length there
        distinct, inverse = np.unique(numbers, return_inverse=True)
        words: Words = self._source.words(np.zeros_like(distinct), 0, distinct, word)[inverse, 0]
        return words

    def environments(self) -> Iterator[EnvDraw]:
        """Yields the same draw one environment at a time, for rules that want no arrays."""
        word = self._stream_word(_RNG_STREAM)
        numbers = zip(self.env_index.tolist(), self.episode.tolist(), self.block.tolist(), strict=True)
        for env_index, episode, block in numbers:
            yield EnvDraw(env_index, episode, block, self._source.generator(env_index, episode, word))

    def _like(self, agents: tuple[Any, ...], seats: tuple[int, ...] | None, path: tuple[int | str, ...]) -> Draw:
        draw = Draw(self._source, agents, self.env_index, self.episode, self._cadence, _seats=seats, _path=path)
        draw.focal = self.focal
        return draw

    def _words(self, group: int, stream_word: int, num_words: int) -> Words:
        return self._source.words(self.env_index, group, self.episode, stream_word, num_words)

    def _stream_word(self, stream: int) -> int:
        return _prefix(self._path) << 16 | stream


def counters(name: str, values: ArrayLike) -> IntArray:
    """Returns integers >= 0 as an int64 array of the same shape, or raises an error that names the argument."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got {values!r}")
    if array.min() < 0:
        raise ValueError(f"{name} must hold integers from 0, got {values!r}")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class EnvDraw:
    """What a function sees of a draw: one environment, plain numbers and a generator of its own.

    Attributes:
        env_index: The index of the environment, from 0.
        episode: The episode at which it draws, from 0.
        block: The block that begins with it, from 0.
        rng: A generator that begins in the same state whenever this draw is made.
    """

    env_index: int
    episode: int
    block: int
    rng: np.random.Generator
