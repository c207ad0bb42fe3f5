"""What the ledgers hold an episode and a saved state to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import equal
from pz_policymap.results.episode import Episode


def check_episode(episode: Any, num_policies: int) -> None:
    """Raises an error if a ledger of so many policies cannot enter this.

    Raises:
        TypeError: If it is no `Episode`.
        ValueError: If a policy is not of the population.
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
    """Raises an error if a saved state is of a ledger with other settings.

    Raises:
        TypeError: If it is no dict.
        ValueError: If a setting is missing or differs.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a dict, got {type(state).__name__}")
    for name, mine in settings.items():
        if not equal(state.get(name), mine):
            raise ValueError(f"state does not fit: it has {name}={state.get(name)!r}, this ledger {mine!r}")


def array_in(state: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Returns a copy of an entry of a state as an array, whatever its type and shape.

    Raises:
        ValueError: If it is none.
    """
    try:
        return np.array(state.get(name))
    except ValueError as error:  # a list of lists of unequal lengths, say
        raise ValueError(f"state does not fit: {name!r} must be an array, got {state.get(name)!r}") from error
