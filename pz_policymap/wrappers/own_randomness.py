"""`OwnRandomness`: global random generators that are somebody's own for a while."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np


class OwnRandomness:
    """Puts generators of its own in place of the global ones while it is entered: Python's, NumPy's and torch's.

    Policies of others draw from the global generators: Stable-Baselines3's from torch's, hand-written ones from
    `random` or `numpy.random`. Inside, what they draw follows from a seed; outside, nobody notices that they drew. Of
    torch it is the generator of the CPU, and none where torch is not imported.

    Args:
        seed: From 0 to 2**32 - 1.

    Example:
        >>> own = OwnRandomness(7)
        >>> before = random.getstate()
        >>> with own:
        ...     first = random.random()
        >>> with own:
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
        self._outside: Any = None  # the state of torch's generator while this is entered

    def __enter__(self) -> None:
        self._swap()
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            if self._torch is None:
                self._torch = torch.Generator().manual_seed(self._seed).get_state()
            self._outside = torch.get_rng_state()
            torch.set_rng_state(self._torch)

    def __exit__(self, *error: object) -> None:
        self._swap()
        if self._outside is not None:
            torch: Any = sys.modules["torch"]
            self._torch = torch.get_rng_state()
            torch.set_rng_state(self._outside)
            self._outside = None

    def _swap(self) -> None:
        python, numpy = random.getstate(), np.random.get_bit_generator()  # type: ignore[attr-defined]  # it is public
        random.setstate(self._python)
        # A hundred times faster than to copy its state. Of normal variates, which NumPy makes in pairs, a second one
        # that was kept for the next call is forgotten.
        np.random.set_bit_generator(self._numpy)  # type: ignore[attr-defined]
        self._python, self._numpy = python, numpy
