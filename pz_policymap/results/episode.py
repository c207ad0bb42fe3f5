"""`Episode`: what one episode ended with, the record that every ledger takes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pz_policymap.arguments import MAX_INDEX, in_order, integer, number

_MOST = 1e300  # a hundred million of them can be added up
_LONGEST = 2**53


@dataclass(frozen=True)
class Episode:
    """What one episode ended with: plain values, one a seat, to be recorded, sent or logged.

    `record_results` makes these. Made again from a log (`dataclasses.asdict` and back), they give the same ledger.

    Args:
        policies: Who played each seat.
        returns: The sum of each seat's rewards, from -1e300 to 1e300.
        lengths: How many steps each seat took, up to 2**53; empty where nobody counted, which is 0 steps each.
        sides: What each seat's team is called: the seats of one side win and lose together. Empty: every seat is a
            side.
        scores: What decides who won, where that is not the return, in the same range. Empty: the returns.
        agents: What each seat's agent is called, for those who read the record. Empty: 0, 1, ...

    Raises:
        TypeError: If an argument is no sequence, holds what is no number, or sides that cannot be told apart.
        ValueError: If there are no seats, if there is not one value a seat, or if a number is out of range or not
            finite.

    Example:
        >>> from pz_policymap import Episode
        >>> episode = Episode(policies=[0, 2], returns=[1.0, -1.0])
        >>> episode.policies, episode.scores, episode.sides
        ((0, 2), (1.0, -1.0), (0, 1))
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
        seats = tuple(range(len(policies)))
        fields = {
            "policies": tuple(integer("policies", policy, 0, MAX_INDEX) for policy in policies),
            "returns": tuple(number("returns", value, -_MOST, _MOST) for value in in_order("returns", self.returns)),
            "lengths": tuple(integer("lengths", steps, 0, _LONGEST) for steps in in_order("lengths", self.lengths)),
            "sides": in_order("sides", self.sides) or seats,
            "scores": tuple(number("scores", value, -_MOST, _MOST) for value in in_order("scores", self.scores)),
            "agents": in_order("agents", self.agents) or seats,
        }
        fields["lengths"] = fields["lengths"] or (0,) * len(seats)
        fields["scores"] = fields["scores"] or fields["returns"]
        for name, values in fields.items():
            if len(values) != len(seats):
                raise ValueError(f"{name} must hold {len(seats)} values, one a seat, got {len(values)}: {values}")
            object.__setattr__(self, name, values)
        try:
            hash(self.sides)
        except TypeError as error:
            raise TypeError(f"sides must be hashable, got {self.sides}") from error
