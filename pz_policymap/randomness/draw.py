"""Reproducible randomness: (seed, env index, seat, episode, stream) -> bits.

The bits depend on these five numbers only, so any process can compute them in any order: nothing is consumed. They are
words of Philox4x64-10 under a key from the seed, at the counter

    (env index, seat // 4, episode, stream)

of which a seat takes word `seat % 4`. Consecutive environments therefore take one native call of NumPy's Philox.
"""

from __future__ import annotations

import hashlib
import operator
import reprlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import MAX_INDEX, in_order, integer, seed_of
from pz_policymap.cadence import RESAMPLE_EVERY, Cadence
from pz_policymap.randomness.philox import IntArray, Source, Words

MAX_STREAM = 2**16 - 2
_RNG_STREAM = 2**16 - 1  # of the generators that functions receive
_UNUSED_BITS = np.uint64(11)  # of a word: a float has 53


@lru_cache(maxsize=1024)
def _prefix(path: tuple[int | str, ...]) -> int:
    """Returns the upper 48 bits of the stream word: a hash of the path of a nested draw, 0 for the root."""
    if not path:
        return 0
    digest = hashlib.blake2b(repr(path).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") | 1


class Draw:
    """The input of a mapping when it decides which policy controls which seat, for many environments at once.

    Args:
        source: The random words of the seed.
        agents: The agents in seat order.
        env_index: The index of each environment that draws, integers >= 0, shape `(num_envs,)`.
        episode: The episode at which each environment draws, integers >= 0, shape `(num_envs,)`.
        cadence: The schedule, which determines the block of an episode.

    Attributes:
        agents: The agents in seat order, a tuple.
        env_index: As given.
        episode: As given.
        focal: In the background of `Focal`, the focal policy of each environment, shape `(num_envs,)`; otherwise None.

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
        self._seats = _seats  # the seat whose bits each seat has; None: its own
        self._path = _path  # the keys of the children that lead here

    def __repr__(self) -> str:
        envs = np.array2string(self.env_index, separator=", ", threshold=8)
        episodes = np.array2string(self.episode, separator=", ", threshold=8)
        agents = reprlib.repr(list(self.agents))
        return f"Draw(seed={self._source.seed}, agents={agents}, env_index={envs}, episode={episodes})"

    @classmethod
    def at(
        cls,
        seed: int | Sequence[int],
        agents: Sequence[Hashable],
        env_index: ArrayLike,
        episode: ArrayLike,
        resample_every: int = RESAMPLE_EVERY,
    ) -> Draw:
        """Returns the draw of these environments at these episodes, to try a mapping without an environment.

        Args:
            seed: A non-negative int, or several.
            agents: The agents in seat order.
            env_index: Integers >= 0, shape `(num_envs,)`.
            episode: Integers >= 0, shape `(num_envs,)`.
            resample_every: Number of episodes between resamples, >= 1; it determines the block.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If a number is out of range, or if the two arrays are not vectors of one length.
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
        """Number of environments that draw."""
        return len(self.env_index)

    @property
    def num_seats(self) -> int:
        """Number of seats of each environment."""
        return len(self.agents)

    def bits(self, stream: int = 0) -> IntArray:
        """Returns 53 random bits per seat, as integers from 0 to 2**53 - 1, shape `(num_envs, num_seats)`.

        Args:
            stream: Number of the stream, 0 to 65534, for mappings that need several independent numbers per seat.

        Raises:
            TypeError: If `stream` is a non-integer.
            ValueError: If it is out of range.
        """
        word = _prefix(self._path) << 16 | (integer("stream", stream, 0, MAX_STREAM) if stream else 0)
        if self._seats is not None:
            groups = {seat // 4: self._words(seat // 4, word) for seat in self._seats}
            words = np.stack([groups[seat // 4][:, seat % 4] for seat in self._seats], axis=1)
        elif self.num_seats <= 4:
            words = self._source.words(self.env_index, 0, self.episode, word)[:, : self.num_seats]
        elif self.num_envs == 1:
            num_groups = -(-self.num_seats // 4)
            words = self._source.groups(int(self.env_index[0]), num_groups, int(self.episode[0]), word)
            words = words.reshape(1, -1)[:, : self.num_seats]
        else:
            words = np.concatenate([self._words(first // 4, word) for first in range(0, self.num_seats, 4)], axis=1)
            words = words[:, : self.num_seats]
        words >>= _UNUSED_BITS  # in place: the array is new
        bits: IntArray = words.view(np.int64)
        return bits

    def uniform(self, stream: int = 0) -> NDArray[np.float64]:
        """Returns uniform floats in [0, 1), shape `(num_envs, num_seats)`; `stream` as in `bits`."""
        return np.multiply(self.bits(stream), 2.0**-53, dtype=np.float64)

    def integers(self, high: int, stream: int = 0) -> NDArray[np.int32]:
        """Returns `floor(uniform(stream) * high)`, uniform integers from 0 to `high - 1`, in one pass.

        Args:
            high: An integer from 1 to 2**31 - 1.
            stream: As in `bits`.

        Raises:
            TypeError: If an argument is a non-integer.
            ValueError: If it is out of range.
        """
        # Scaling by a power of two is exact, so the product rounds as `uniform() * high` does, never up to `high`.
        if type(high) is not int or not 0 < high <= MAX_INDEX:
            high = integer("high", high, 1, MAX_INDEX)
        return (self.bits(stream) * (high * 2.0**-53)).astype(np.int32)

    def select(self, seats: Sequence[int]) -> Draw:
        """Returns the draw of these seats alone, in the order given; each seat keeps its bits.

        Args:
            seats: Positions among the seats of this draw, integers >= 0.

        Raises:
            TypeError: If a position is a non-integer.
            ValueError: If it is out of range.
        """
        kept = tuple(integer(f"seats[{i}]", seat, 0, self.num_seats - 1) for i, seat in enumerate(seats))
        bits_of = kept if self._seats is None else tuple(self._seats[seat] for seat in kept)
        return self._like(tuple(self.agents[seat] for seat in kept), bits_of, self._path)

    def child(self, *key: int | str, agents: Sequence[Hashable] | None = None) -> Draw:
        """Returns the draw of a nested mapping, with bits independent of this draw and of its other children.

        Args:
            key: Strings or integers that differ from those of the other children.
            agents: The seats of the nested mapping (teams, for example), numbered from 0. None: the seats of this draw.
        """
        # The repr of NumPy scalars differs between versions, and the repr of an enum member shows its class.
        plain = (str.__str__(k) if isinstance(k, str) else operator.index(k) for k in key)
        path = (*self._path, len(key), *plain)
        return self._like(self.agents, self._seats, path) if agents is None else self._like(tuple(agents), None, path)

    def only(self, rows: IntArray | slice) -> Draw:
        """Returns the draw of the environments in these rows alone, in that order; each keeps its bits."""
        draw = self._like(self.agents, self._seats, self._path)
        draw.env_index, draw.episode = self.env_index[rows], self.episode[rows]
        draw.focal = None if self.focal is None else self.focal[rows]
        return draw

    def against(self, focal: NDArray[Any]) -> Draw:
        """Returns the same draw for opponents of the focal policies, one per environment, shape `(num_envs,)`."""
        draw = self._like(self.agents, self._seats, self._path)
        draw.focal = focal
        return draw

    def keys(self, numbers: IntArray) -> Words:
        """Returns a random 64-bit word for each number, the same in every environment.

        Mappings that span environments use it.

        Args:
            numbers: Integers >= 0 that environments share (their block, for example), shape `(num_envs,)`.
        """
        word = _prefix((*self._path, "keys")) << 16  # differs from the path of a child, which has a length there
        distinct, inverse = np.unique(numbers, return_inverse=True)
        words: Words = self._source.words(np.zeros_like(distinct), 0, distinct, word)[inverse, 0]
        return words

    def environments(self) -> Iterator[EnvDraw]:
        """Yields the same draw one environment at a time, for functions that use no arrays."""
        word = _prefix(self._path) << 16 | _RNG_STREAM
        numbers = zip(self.env_index.tolist(), self.episode.tolist(), self.block.tolist(), strict=True)
        for env_index, episode, block in numbers:
            yield EnvDraw(self.agents, env_index, episode, block, self._source.generator(env_index, episode, word))

    def _like(self, agents: tuple[Any, ...], seats: tuple[int, ...] | None, path: tuple[int | str, ...]) -> Draw:
        draw = Draw(self._source, agents, self.env_index, self.episode, self._cadence, _seats=seats, _path=path)
        draw.focal = self.focal
        return draw

    def _words(self, group: int, stream_word: int) -> Words:
        return self._source.words(self.env_index, group, self.episode, stream_word)


def counters(name: str, values: ArrayLike) -> IntArray:
    """Returns integers >= 0 as an int64 array of the same shape, or raises an error that names the argument."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got {values!r}")
    if array.min() < 0:
        raise ValueError(f"{name} must hold integers >= 0, got {values!r}")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class EnvDraw:
    """The draw of one environment, as a function `fn(agents, draw) -> {agent: policy}` receives it (`FromFunction`).

    Attributes:
        agents: The agents in seat order.
        env_index: Index of the environment, >= 0.
        episode: The episode at which it draws, >= 0.
        block: The block that begins with this draw, >= 0.
        rng: A generator that starts in the same state whenever this draw is repeated, on any worker.

    Example:
        >>> from pz_policymap import Draw, EnvDraw
        >>> def learner_first(agents: list[str], draw: EnvDraw) -> dict[str, int]:
        ...     opponent = int(draw.rng.integers(1, 4))
        ...     return {agent: opponent if seat else 0 for seat, agent in enumerate(agents)}
        >>> draw = next(Draw.at(0, ["a", "b"], env_index=[3], episode=[20]).environments())
        >>> draw
        EnvDraw(agents=('a', 'b'), env_index=3, episode=20, block=2)
        >>> learner_first(["a", "b"], draw)
        {'a': 0, 'b': 2}
    """

    agents: tuple[Any, ...]
    env_index: int
    episode: int
    block: int
    rng: np.random.Generator = field(repr=False)
