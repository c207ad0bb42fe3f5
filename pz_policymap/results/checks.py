"""What the ledgers hold an episode and a saved state to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
        if state.get(name) != mine:
            raise ValueError(f"state does not fit: it has {name}={state.get(name)!r}, this ledger {mine!r}")
