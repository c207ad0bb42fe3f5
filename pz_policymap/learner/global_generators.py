"""`IsolatedRandomness`: replaces the global random generators for a while."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class IsolatedRandomness:
    """Replaces the global generators of Python, NumPy and torch (CPU) for a while, and restores them afterwards.

    Some policies can only draw from global generators, such as those of Stable-Baselines3. Inside `in_place`, their
    draws follow from a seed; outside, the global generators continue as if nothing had been drawn. Torch is left alone
    unless it is imported. Threads share the global generators, so this is for processes that draw in one thread.

    Args:
        seed: Integer from 0 to 2**32 - 1.

    Example:
        >>> isolated = IsolatedRandomness(7)
        >>> before = random.getstate()
        >>> with isolated.in_place():
        ...     first = random.random()
        >>> with isolated.in_place():
        ...     second = random.random()
        >>> reference = random.Random(7)
        >>> [first, second] == [reference.random(), reference.random()], random.getstate() == before
        (True, True)
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._python = random.Random(seed).getstate()  # noqa: S311  # not for secrets
        self._numpy: Any = np.random.MT19937(seed)
        self._torch: Any = None  # until torch is imported

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Uses these generators as the global ones, and restores the others afterwards, errors or not.

        NumPy's global generator makes normal variates in pairs. The second of a pair is dropped at the end inside, and
        kept outside.
        """
        torch: Any = sys.modules.get("torch")
        numpy: Any = np.random  # its stubs lack two public functions
        outside = random.getstate(), numpy.get_bit_generator(), torch and torch.get_rng_state()
        variates = numpy.get_state(legacy=False)  # slow, but the only way to keep the second of a pair
        try:
            random.setstate(self._python)
            numpy.set_bit_generator(self._numpy)  # a hundred times faster than copying its state
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
