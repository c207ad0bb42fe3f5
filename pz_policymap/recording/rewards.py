"""Rewards as recorders and learners count them.

The return of an agent is the sum of its `rewards` after each step of a live agent. The `rewards` left over after the
step of a dead agent are skipped, since they have been counted before. Cumulative rewards are not read, since some
environments accumulate the final rewards twice.
"""

from __future__ import annotations

from typing import Any

from pz_policymap.batching.nested_arrays import on_host

_NUMBERS = (float, int)  # the usual types, without conversions that take microseconds


def reward_number(agent: Any, reward: Any) -> float:
    """Returns a reward as a number: None is 0, and an array with a single element is a number.

    Raises:
        ValueError: If it is a vector or not a number.

    Example:
        >>> import numpy as np
        >>> reward_number("red", np.array([0.5])), reward_number("red", None)
        (0.5, 0.0)
    """
    if reward.__class__ in _NUMBERS:
        return reward
    if reward is None:
        return 0.0
    try:
        return float(on_host(reward).item() if hasattr(reward, "shape") else reward)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"rewards must be one number per agent, got {reward!r} for agent {agent!r}; "
            f"combine a vector into a number by a wrapper inside, for example by a weighted sum"
        ) from error
