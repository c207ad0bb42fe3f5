"""`PolicyWrapper`: the base class of all policy wrappers, and the type of their keyword arguments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike

from pz_policymap.arguments import text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.conversion import MappingLike

DEFAULT_KEY = "policy_id"


class WrapOptions(TypedDict, total=False):
    """Keyword arguments of every policy wrapper. `wrap` documents them; None means the default."""

    resample_every: int | None
    warmup_episodes: int
    seed: int | Sequence[int] | None
    env_index: int | None
    info_key: str


class PolicyWrapper:
    """An environment wrapper that holds an assigner and tags infos with its assignments.

    Attributes:
        assigner: The `PolicyAssigner` that makes the assignments.
        info_key: Key of the tag in each info.
    """

    env: Any
    assigner: PolicyAssigner
    info_key: str

    def __repr__(self) -> str:
        inner = str(self.env)
        inner = inner if inner.startswith("<") else f"<{inner}>"
        return f"<{type(self).__name__}{inner}, {self.assigner.mapping!r}>"

    @property
    def policies_in_use(self) -> set[int]:
        """The policies of the draw in force and of the running episode, forced ones included.

        A policy that is not among them, nor in the mapping, will not act any more. Agents that join mid-episode follow
        the mapping of the draw: after `set_mapping`, all policies of that mapping are in use until the next draw.
        """
        held = getattr(self, "policy_ids", {})  # none before the first reset
        now = list(held.values()) if isinstance(held, Mapping) else np.ravel(held)
        return self.assigner.policies_in_use | {int(policy_id) for policy_id in np.unique(now)} - {-1}

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Replaces the mapping from the next draw on. The current assignment does not change.

        Args:
            mapping: As in `wrap`.
            now: Whether to resample at the next reset, regardless of the schedule.

        Raises:
            TypeError, ValueError: As at construction. The old mapping then stays.
        """
        self.assigner.set_mapping(mapping, now)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to save in a checkpoint, for `pm.save` or `load_state_dict`.

        A state taken in the middle of an episode repeats that episode when it is loaded.
        """
        return self.assigner.state_dict(unfinished=self._unfinished())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state. The next reset begins the episode that would have come next; the seed is pinned.

        Args:
            state: A state from `state_dict`, of this or of another process.

        Raises:
            TypeError: If `state` is not a dict.
            ValueError: If the state does not fit this wrapper. Nothing has changed then.
        """
        self.assigner.load_state_dict(state)
        self._drop_episode()

    def _unfinished(self) -> ArrayLike:
        """Returns whether each environment is in the middle of an episode."""
        raise NotImplementedError

    def _drop_episode(self) -> None:
        """Forgets the running episode, which is not part of a state that was just loaded."""
        raise NotImplementedError


def split_options(options: WrapOptions) -> tuple[dict[str, Any], str]:
    """Returns the keyword arguments of `PolicyAssigner` and the key of the tag; checks names and the key.

    Example:
        >>> split_options({"resample_every": None, "seed": 3, "info_key": "policy"})
        ({'seed': 3}, 'policy')
    """
    unknown = options.keys() - WrapOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword arguments {sorted(unknown)}, expected {list(WrapOptions.__annotations__)}")
    settings = {name: value for name, value in options.items() if name != "info_key" and value is not None}
    return settings, text("info_key", options.get("info_key", DEFAULT_KEY))


def check_free(info: Any, key: str, agent: Hashable = None) -> None:
    """Raises an error if an info from the environment cannot be tagged.

    Args:
        info: The info.
        key: Key of the tag.
        agent: The agent whose info it is, for the error.

    Raises:
        TypeError: If an info is not a dict.
        ValueError: If the environment already uses the key.
    """
    owner = "an info" if agent is None else f"the info of {agent!r}"
    if not isinstance(info, Mapping):
        raise TypeError(f"{owner} must be a dict, got {info!r} from the environment")
    if key in info:
        raise ValueError(
            f"info_key {key!r} is already used by the environment: {owner} is {dict(info)}; wrap with another info_key"
        )


def reset_outcome(outcome: Any, env: Any) -> tuple[Any, Any]:
    """Returns the observations and infos that a reset returned.

    Raises:
        TypeError: If it returned something else.
    """
    if not (isinstance(outcome, (tuple, list)) and len(outcome) == 2):
        raise TypeError(f"reset must return (observations, infos), got {outcome!r} from {name_of(env)}")
    return outcome[0], outcome[1]


def name_of(env: Any) -> str:
    """Returns the name of an environment in errors; its `str` may be a drawing of the whole board."""
    return type(getattr(env, "unwrapped", env)).__name__


def reset_failed(what: str) -> ResetNeeded:
    """Returns the error for a call after a failed reset, when the tags are still those of the old episode."""
    return ResetNeeded(f"{what}: the last reset or step failed, so reset the whole environment first")
