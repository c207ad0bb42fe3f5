"""Asks a mapping for a draw and holds it to what it promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import MAX_INDEX, unsigned
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.randomness.draw import Draw


def checked_assign(mapping: PolicyMapping, draw: Draw) -> NDArray[Any]:
    """Returns what the mapping draws, or raises an error that names mapping, draw and agent."""
    try:
        ids = np.asarray(mapping.assign(draw))
    except Exception as error:
        raise named_error(error, mapping, draw) from error
    problem: Exception | None = None
    if ids.shape != (draw.num_envs, draw.num_seats):
        short = ids.ndim == 2 and ids.shape[1] < draw.num_seats
        problem = ValueError(
            f"it must assign an array of shape (num_envs, num_seats) = {(draw.num_envs, draw.num_seats)}, "
            f"got {ids.shape}" + (f": nothing for agent {draw.agents[ids.shape[1]]!r}" if short else "")
        )
    elif ids.dtype.kind not in "iu":
        problem = TypeError(f"it must assign integers, got {ids.flat[0]!r} ({ids.dtype}) for agent {draw.agents[0]!r}")
    else:
        end = min(mapping.num_policies or MAX_INDEX + 1, MAX_INDEX + 1)
        if unsigned(ids).max() >= end:  # a negative index is a huge one
            row, seat = np.argwhere((ids < 0) | (ids >= end))[0]
            problem = ValueError(
                f"it must assign policies from 0 to {end - 1}, got {ids[row, seat]} for agent "
                f"{draw.agents[seat]!r} of environment {draw.env_index[row]}"
            )
    if problem is not None:
        raise named_error(problem, mapping, draw)
    return ids


def named_error(error: Exception, mapping: PolicyMapping, draw: Draw) -> Exception:
    """Returns the error with mapping and draw in front: a TypeError stays one, anything else is a ValueError."""
    first, last = draw.env_index[0], draw.env_index[-1]
    envs = f"environment {first}" if draw.num_envs == 1 else f"environments {first} to {last}"
    kind = TypeError if isinstance(error, TypeError) else ValueError
    text = str(error) if isinstance(error, (TypeError, ValueError)) else repr(error)
    return kind(f"{mapping.fingerprint} failed at the draw of {envs}, episode {draw.episode[0]}: {text}")
