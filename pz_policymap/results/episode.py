"""`Episode`: the outcome of one episode, the record that every ledger takes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pz_policymap.arguments import MAX_INDEX, in_order, integer, number

MAX_RETURN = 1e300  # a hundred million of them can be added without overflow
_MAX_LENGTH = 2**53


@dataclass(frozen=True, repr=False)
class Episode:
    """The outcome of one episode: plain values, one per seat, to be recorded, sent or logged.

    `record_results` makes these. An episode restored from a log (`dataclasses.asdict` and back) is an equal episode.

    Args:
        policies: The policy that controlled each seat.
        returns: The sum of each seat's rewards, from -1e300 to 1e300.
        lengths: Number of steps of each seat, from 0 to 2**53. Empty: 0 steps each.
        sides: The team of each seat. Seats of one side win and lose together. Empty: every seat is a side of its own.
        scores: Numbers that decide the winner in place of the returns; same range. Empty: the returns.
        agents: The agent ID of each seat, for readers of the record. Empty: 0, 1, ...

    Raises:
        TypeError: If an argument is not a sequence, if it holds a non-number, or if sides are not hashable.
        ValueError: If the episode has no seats, if an argument does not hold one value per seat, or if a number is not
            finite or out of range.

    Example:
        >>> from pz_policymap import Episode
        >>> episode = Episode(policies=[0, 2], returns=[1.0, -1.0])
        >>> episode
        Episode(policies=(0, 2), returns=(1.0, -1.0))
        >>> episode.scores, episode.sides, episode.mean_returns
        ((1.0, -1.0), (0, 1), {0: 1.0, 2: -1.0})
    """

    policies: Sequence[int]
    returns: Sequence[float]
    lengths: Sequence[int] = ()
    sides: Sequence[Hashable] = ()
    scores: Sequence[float] = ()
    agents: Sequence[Hashable] = ()

    def __post_init__(self) -> None:
        policies = in_order("policies", self.policies)
        if not policies:
            raise ValueError("policies must hold at least one seat, got none")
        fields = {
            "policies": tuple(integer("policies", policy, 0, MAX_INDEX) for policy in policies),
            "returns": _numbers("returns", self.returns),
            "lengths": tuple(integer("lengths", steps, 0, _MAX_LENGTH) for steps in in_order("lengths", self.lengths)),
            "sides": in_order("sides", self.sides),
            "scores": _numbers("scores", self.scores),
            "agents": in_order("agents", self.agents),
        }
        for name, default in _defaults(len(policies), fields["returns"]).items():
            fields[name] = fields[name] or default
        for name, values in fields.items():
            if len(values) != len(policies):
                raise ValueError(f"{name} must hold {len(policies)} values, one per seat, got {len(values)}: {values}")
            object.__setattr__(self, name, values)
        try:
            hash(self.sides)
        except TypeError as error:
            raise TypeError(f"sides must be hashable, got {self.sides}") from error

    def __repr__(self) -> str:
        defaults = _defaults(len(self.policies), self.returns)
        shown = {name: value for name, value in vars(self).items() if value != defaults.get(name)}
        return f"Episode({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def mean_returns(self) -> dict[int, float]:
        """Policy id -> mean return over the seats that the policy controlled."""
        held: dict[int, list[float]] = {}
        for policy, value in zip(self.policies, self.returns, strict=True):
            held.setdefault(policy, []).append(value)
        return {policy: math.fsum(values) / len(values) for policy, values in held.items()}


def _defaults(seats: int, returns: Sequence[float]) -> dict[str, tuple[object, ...]]:
    """Returns the values of arguments that were left empty."""
    numbers = tuple(range(seats))
    return {"lengths": (0,) * seats, "sides": numbers, "scores": tuple(returns), "agents": numbers}


def _numbers(name: str, values: Sequence[float]) -> tuple[float, ...]:
    return tuple(number(name, value, -MAX_RETURN, MAX_RETURN) for value in in_order(name, values))
