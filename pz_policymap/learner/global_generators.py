"""`OwnRandomness`: global random generators that are somebody's own for a while."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class OwnRandomness:
    """Puts generators of its own in place of the global ones for a while: Python's, NumPy's and torch's.

    Policies of others draw from the global generators, and cannot be told otherwise: Stable-Baselines3's from torch's
    and NumPy's, hand-written ones from `random` or `numpy.random`. Inside, what they draw follows from a seed;
    outside, nobody notices that they drew. Of torch it is the generator of the CPU, and none where torch is not
    imported. Global generators are shared by threads: this is for processes that draw in one thread.

    Args:
        seed: From 0 to 2**32 - 1.

    Example:
        >>> own = OwnRandomness(7)
        >>> before = random.getstate()
        >>> with own.in_place():
        ...     first = random.random()
        >>> with own.in_place():
        ...     second = random.random()
        >>> reference = random.Random(7)
        >>> [first, second] == [reference.random(), reference.random()], random.getstate() == before
        (True, True)
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._python = random.Random(seed).getstate()  # noqa: S311  # nothing is to be kept secret
        self._numpy: Any = np.random.MT19937(seed)
        self._torch: Any = None  # until it is imported

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Draws from the global generators are draws from these inside, and the others go on after it, errors or not.

        Of normal variates, which NumPy's global generator makes in pairs, a second one that is left in the end is
        forgotten inside, and kept outside.
        """
        torch: Any = sys.modules.get("torch")
        numpy: Any = np.random  # its stubs do not know two public functions
        outside = random.getstate(), numpy.get_bit_generator(), torch and torch.get_rng_state()
        variates = numpy.get_state(legacy=False)  # as slow as all the rest, and the only way to see a second one
        try:
            random.setstate(self._python)
            numpy.set_bit_generator(self._numpy)  # a hundred times faster than to copy its state
            if torch:
                if self._torch is None:
                    self._torch = torch.Generator().manual_seed(self._seed).get_state()
                torch.set_rng_state(self._torch)
            yield
        finally:
            self._python = random.getstate()
            random.setstate(outside[0])
            numpy.set_bit_generator(outside[1])
            if variates["has_gauss"]:
                numpy.set_state(variates)
            if torch:
                self._torch = torch.get_rng_state()
                torch.set_rng_state(outside[2])
