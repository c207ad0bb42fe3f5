"""Weights over a population, by results or by age, as pure functions for `Weighted`.

    payoff = pm.Payoff(4)
    opponents = pm.Weighted(lambda: pm.pfsp(payoff.win_rates[0], exclude=0))   # called at every draw

Where a formula gives weight 0 to all policies (all are always beaten, for instance), the result is uniform. An empty
population has an empty vector. No function returns NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pz_policymap.arguments import integer, number
from pz_policymap.results.probabilities import (
    Exclude,
    Vector,
    in_units_of_largest,
    included,
    normalised,
    numbers,
    spread,
    uniform_from,
)

Weighting = Literal["hard", "variance", "linear", "linear_capped"] | Callable[[Vector], ArrayLike]

_WEIGHTINGS: Mapping[str, Callable[[Vector], Vector]] = {
    "variance": lambda x: x * (1.0 - x),
    "linear": lambda x: 1.0 - x,
    "linear_capped": lambda x: np.minimum(0.5, 1.0 - x),
}


def pfsp(
    win_rates: ArrayLike,
    weighting: Weighting = "hard",
    power: float = 2.0,
    floor: float = 0.0,
    exclude: Exclude | Literal["self"] = None,
) -> Vector:
    """Prioritised fictitious self-play: weights opponents by how often the learner beats them.

    With x the learner's win rate against an opponent, the opponent's weight is

        hard            (1 - x)**power      prefers opponents that the learner cannot beat
        variance        x (1 - x)           prefers opponents of its own level
        linear          1 - x
        linear_capped   min(1/2, 1 - x)

    Source: AlphaStar (Vinyals et al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement
    learning", Methods and pseudocode).

    Args:
        win_rates: The learner's win rate against each opponent, from 0 to 1, shape `(num_policies,)`; or one row per
            learner, shape `(num_learners, num_policies)`, such as `Payoff.win_rates`.
        weighting: A name from the table, or a function from win rates to non-negative weights of the same shape.
        power: Exponent of "hard", >= 0. With 0 the weights are uniform; a large power prefers the hardest opponent.
        floor: Share, from 0 to 1, that is spread equally over all opponents, so that results stay up to date.
        exclude: Policies with probability 0, such as the learner itself: one policy or several; or "self", which
            excludes policy i from row i of a matrix. The floor is spread over the others. A function for `weighting`
            receives the win rates of the others only.

    Returns:
        Probabilities of the shape of `win_rates`. Every row sums to 1.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, if `weighting` is unknown or returns invalid weights, or if `exclude`
            leaves no policy.

    Example:
        >>> pfsp([0.1, 0.5, 0.9]).round(3).tolist()
        [0.757, 0.234, 0.009]
        >>> pfsp([0.5, 1.0, 1.0], floor=0.1, exclude=0).tolist()  # all beaten: uniform over the opponents
        [0.0, 0.5, 0.5]
    """
    rates = numbers("win_rates", win_rates, (1, 2))
    if not ((rates >= 0.0) & (rates <= 1.0)).all():  # this form refuses NaN
        raise ValueError(f"win_rates must be from 0 to 1, got {rates}")
    exponent, share = number("power", power, 0.0), number("floor", floor, 0.0, 1.0)
    mask = included(exclude, rates.shape)
    others = rates.copy() if exclude is None else rates[mask].reshape(*rates.shape[:-1], -1)
    if callable(weighting):
        weights = numbers("weighting's result", weighting(others.copy()), (0, 1, 2, 3))
        if weights.shape != others.shape or not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise ValueError(
                f"weighting must return finite, non-negative weights of shape {others.shape}, got {weights}"
            )
    elif weighting == "hard":
        # In units of the hardest opponent, whose weight is then 1 with any power.
        weights = in_units_of_largest(1.0 - others) ** exponent
    elif weighting in _WEIGHTINGS:
        weights = _WEIGHTINGS[weighting](others)
    else:
        names = ["hard", *_WEIGHTINGS]
        raise ValueError(f"weighting must be one of {names} or a function, got {weighting!r}")
    mixed = normalised(weights) * (1.0 - share) + share / max(others.shape[-1], 1)
    return spread(mixed, mask)


def latest(num_policies: int, window: int = 10, latest_ratio: float = 0.5, exclude: Exclude = None) -> Vector:
    """The latest snapshot with a given probability, else one of the last few, including the latest.

    Source: Unity ML-Agents (Juliani et al. 2020, "Unity: A general platform for intelligent agents"), its settings
    `window` and `play_against_latest_model_ratio`.

    Args:
        num_policies: Number of snapshots, >= 0. The latest is `num_policies - 1`.
        window: Number of last snapshots that have a positive probability, >= 1.
        latest_ratio: Probability, from 0 to 1, of choosing the latest directly.
        exclude: Policies that do not count as snapshots, such as the learner itself; their probability is 0.

    Returns:
        Probabilities, shape `(num_policies,)`.

    Raises:
        TypeError: If an argument is not a number.
        ValueError: If it is out of range, or if `exclude` leaves no policy.

    Example:
        >>> latest(4, window=2, latest_ratio=0.5).tolist()
        [0.0, 0.0, 0.25, 0.75]
        >>> latest(4, window=2, latest_ratio=0.5, exclude=3).tolist()  # policy 3 is still learning
        [0.0, 0.25, 0.75, 0.0]
    """
    mask = included(exclude, (integer("num_policies", num_policies, 0),))
    count, kept = int(mask.sum()), integer("window", window, 1)
    ratio = number("latest_ratio", latest_ratio, 0.0, 1.0)
    weights = uniform_from(max(count - kept, 0), count) * (1.0 - ratio)
    weights[-1:] += ratio
    return spread(weights, mask)


def delta_uniform(num_policies: int, delta: float = 0.5, exclude: Exclude = None) -> Vector:
    """Uniform over the later part of all snapshots: those from `delta * v` to v, the latest.

    With `delta=0` all snapshots have equal probability, with `delta=1` the latest has probability 1. Source: Bansal et
    al. 2018, "Emergent complexity via multi-agent competition", section 4.2.

    Args:
        num_policies: Number of snapshots, >= 0. The latest is v = `num_policies - 1`.
        delta: Share of the oldest snapshots that is left out, from 0 to 1.
        exclude: Policies that do not count as snapshots, such as the learner itself; their probability is 0.

    Returns:
        Probabilities, shape `(num_policies,)`.

    Raises:
        TypeError: If an argument is not a number.
        ValueError: If it is out of range, or if `exclude` leaves no policy.

    Example:
        >>> delta_uniform(5, delta=0.5).round(3).tolist()
        [0.0, 0.0, 0.333, 0.333, 0.333]
    """
    mask = included(exclude, (integer("num_policies", num_policies, 0),))
    count = int(mask.sum())
    oldest = number("delta", delta, 0.0, 1.0) * (count - 1)
    return spread(uniform_from(math.ceil(oldest - 1e-9), count), mask)  # 0.07 * 100 is slightly more than 7
