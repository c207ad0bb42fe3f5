"""Action masks in observations and spaces of PettingZoo: removing them, and bringing them into a trainer's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

MASK = "action_mask"
_REST = "observation"  # PettingZoo's key of the observation beside a mask


def without_mask(observation: Any) -> Any:
    """Returns an observation without the action mask.

    PettingZoo's `{"observation": ..., "action_mask": ...}` becomes the observation. A dict with other keys keeps them.

    Example:
        >>> without_mask({"observation": 5, "action_mask": [0, 1]}), without_mask(7)
        (5, 7)
        >>> without_mask({"board": 5, "clock": 2, "action_mask": [0, 1]})
        {'board': 5, 'clock': 2}
    """
    if type(observation) is dict and len(observation) == 2 and _REST in observation and MASK in observation:
        return observation[_REST]  # the usual form, without checks that take microseconds
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


def flattened(mask: Any) -> NDArray[Any]:
    """Returns a mask as one flat array; the parts of a tuple are concatenated.

    Example:
        >>> flattened(([1, 0], [0, 1, 1])).tolist()
        [1, 0, 0, 1, 1]
    """
    return np.concatenate([np.ravel(part) for part in mask]) if isinstance(mask, tuple) else np.ravel(mask)


def flat_mask(mask: Any, space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """Returns a mask in the form that trainers expect: one boolean per action, flattened.

    Args:
        mask: An array, a tuple with one array per part of the space, or None if every action is allowed.
        space: The action space.

    Raises:
        TypeError: If the action space is not countable and the environment gives no mask.
        ValueError: If the mask does not have one entry per action.

    Example:
        >>> flat_mask([0, 1, 1], spaces.Discrete(3)), flat_mask(None, spaces.MultiDiscrete([2, 1]))
        (array([False,  True,  True]), array([ True,  True,  True]))
    """
    count = _count(space)
    if mask is None:
        if count is None:
            raise TypeError(f"action_masks needs actions that can be counted, got {space}")
        return np.ones(count, np.bool_)
    flat = flattened(mask).astype(np.bool_)
    if count is not None and len(flat) != count:
        raise ValueError(f"{MASK} must have {count} entries, one per action of {space}, got {len(flat)}")
    return flat


def _count(space: spaces.Space[Any]) -> int | None:
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return 2 * int(np.prod(space.shape))  # two actions per bit
    return None
