"""Shared by `Payoff` and `PolicyStatistics`: one lock, checks of episodes and of loaded states, and text forms."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import equal
from pz_policymap.results.episode import Episode

MAX_ROWS = 8  # of a repr

# Environments in several threads may share a ledger. One lock for all ledgers, so that a ledger can be copied and
# pickled. It is reentrant: a signal handler may read a ledger that its own thread is writing.
LOCK = threading.RLock()

with suppress(AttributeError):  # Windows does not fork
    # A forked process must not inherit a lock held by a thread that it does not have.
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


def check_episode(episode: Any, num_policies: int) -> None:
    """Raises an error if a ledger of `num_policies` policies cannot record this episode.

    Raises:
        TypeError: If `episode` is not an `Episode`.
        ValueError: If it holds a policy that is not in the population.
    """
    if not isinstance(episode, Episode):
        raise TypeError(f"episode must be an Episode, got {episode!r}")
    highest = max(episode.policies)
    if highest >= num_policies:
        raise ValueError(
            f"policies must be below num_policies={num_policies}, got {list(episode.policies)}; "
            f"grow({highest + 1}) makes room"
        )


def check_settings(state: Any, settings: Mapping[str, Any]) -> None:
    """Raises an error if a state was saved by a ledger with other settings.

    Raises:
        TypeError: If `state` is not a dict.
        ValueError: If a setting is missing or differs.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a dict, got {type(state).__name__}")
    for name, mine in settings.items():
        if not equal(state.get(name), mine):
            raise ValueError(f"state does not fit: it has {name}={state.get(name)!r}, this ledger {mine!r}")


def array_in(state: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Returns a copy of one entry of a state as an array of any type and shape.

    Raises:
        ValueError: If the entry is not an array.
    """
    try:
        return np.array(state.get(name))
    except ValueError as error:  # a list of lists of unequal lengths, for instance
        raise ValueError(f"state does not fit: {name!r} must be an array, got {state.get(name)!r}") from error


def flat_scalars(prefix: str, columns: Mapping[str, Sequence[float] | NDArray[Any]]) -> dict[str, float]:
    """Returns columns with one number per policy as one flat dict, without NaNs."""
    return {
        f"{prefix}{policy}/{name}": float(value)
        for policy, row in enumerate(zip(*columns.values(), strict=True))
        for name, value in zip(columns, row, strict=True)
        if not math.isnan(value)
    }


def text_table(rows: Sequence[Sequence[str]], words: int = 0) -> str:
    """Returns rows as text: the first `words` columns aligned to the left, the others, of numbers, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        [
            text.ljust(width) if place < words else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)
