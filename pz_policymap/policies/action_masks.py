"""Action masks of PettingZoo: where they are in an observation or an info, and what is left without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

MASK = "action_mask"
_REST = "observation"  # what PettingZoo calls the observation beside a mask


def without_mask(observation: Any) -> Any:
    """Returns an observation without the action mask.

    Of the pair that PettingZoo's environments hand out, the observation is left; of a dict of more, the rest.

    Example:
        >>> without_mask({"observation": 5, "action_mask": [0, 1]}), without_mask(7)
        (5, 7)
        >>> without_mask({"board": 5, "clock": 2, "action_mask": [0, 1]})
        {'board': 5, 'clock': 2}
    """
    if not isinstance(observation, Mapping) or MASK not in observation:
        return observation
    rest = {key: value for key, value in observation.items() if key != MASK}
    return rest[_REST] if list(rest) == [_REST] else rest


def space_without_mask(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Returns the space of observations without the action mask."""
    if not isinstance(space, spaces.Dict) or MASK not in space.spaces:
        return space
    rest = without_mask(space.spaces)
    return spaces.Dict(rest) if isinstance(rest, dict) else rest


def in_a_row(mask: Any) -> NDArray[Any]:
    """Returns a mask as one flat array: those of several parts, a tuple, one after the other.

    Example:
        >>> in_a_row(([1, 0], [0, 1, 1])).tolist()
        [1, 0, 0, 1, 1]
    """
    return np.concatenate([np.ravel(part) for part in (mask if isinstance(mask, tuple) else (mask,))])


def flat_mask(mask: Any, space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """Returns a mask as trainers take it: one boolean an action, those of several parts one after the other.

    Args:
        mask: An array, a tuple of arrays for the parts of the space, or None where every action is allowed.
        space: The actions.

    Raises:
        TypeError: If there is no mask and the actions cannot be counted.
        ValueError: If the mask has not an entry an action.

    Example:
        >>> flat_mask([0, 1, 1], spaces.Discrete(3)), flat_mask(None, spaces.MultiDiscrete([2, 1]))
        (array([False,  True,  True]), array([ True,  True,  True]))
    """
    count = _count(space)
    if mask is None:
        if count is None:
            raise TypeError(f"action_masks needs actions that can be counted, got {space}")
        return np.ones(count, np.bool_)
    flat = in_a_row(mask).astype(np.bool_)
    if count is not None and len(flat) != count:
        raise ValueError(f"{MASK} must have {count} entries, one an action of {space}, got {len(flat)}")
    return flat


def _count(space: spaces.Space[Any]) -> int | None:
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return 2 * int(np.prod(space.shape))  # two actions a bit
    return None
