"""`PoolLearner`: the matchmaking and snapshot settings of one learner of a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import integer, number
from pz_policymap.results.meta_strategies import nash
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.weights import delta_uniform, latest, pfsp

Floats = NDArray[np.float64]
Rule = Literal["uniform", "pfsp", "latest", "delta_uniform", "nash"] | Callable[[Floats], ArrayLike]

# From the ledger, the learner's policy id and the ids of the group to the weights of the group.
RULES: Mapping[str, Callable[[Payoff, int, list[int]], ArrayLike]] = {
    "uniform": lambda payoff, own, ids: np.ones(len(ids)),  # noqa: ARG005
    "pfsp": lambda payoff, own, ids: pfsp(payoff.win_rates_of(own)[ids]),
    "latest": lambda payoff, own, ids: latest(len(ids)),  # noqa: ARG005
    "delta_uniform": lambda payoff, own, ids: delta_uniform(len(ids)),  # noqa: ARG005
    "nash": lambda payoff, own, ids: nash(payoff.win_rates[np.ix_(ids, ids)]),  # noqa: ARG005
}


@dataclass(frozen=True)
class PoolLearner:
    """The matchmaking and snapshot settings of one learner.

    Args:
        name: Its name.
        opponents: Group -> share, or group -> (share, rule); shares need not sum to 1. Groups: "self" (the learner's
            own current policy), "snapshots" (its active snapshots), "all snapshots" (those of every learner), "fixed",
            "NAME:snapshots" (those of another learner), or the name of a learner or fixed policy. The share of an
            empty group goes to the other groups; if all are empty, the learner meets itself.
        rule: The rule of groups given without one: "uniform", "pfsp", "latest", "delta_uniform", "nash", or a function
            from the learner's win rates against the members of a group, oldest first, to their weights. "nash" is the
            equilibrium of the games between the members, which need games against each other: members without games
            are taken to be equal.
        every: Take a snapshot every so many steps, >= 1.
        win_rate: Take a snapshot once the learner's win rate since the last one, against the active members it meets,
            is at least this, in (0, 1].
        min_games: Number of games that `win_rate` needs, >= 1. Raw counts: decayed ones would never reach it.
        max_steps: With `win_rate`: take a snapshot after so many steps in any case, >= 1.

    Raises:
        ImportError: If the rule is "nash" and SciPy is not installed.
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, a share is negative, or a rule is unknown.
    """

    name: str
    opponents: Mapping[str, float | tuple[float, Rule]] = field(default_factory=lambda: {"snapshots": 1.0})
    rule: Rule = "uniform"
    every: int | None = None
    win_rate: float | None = None
    min_games: int = 50
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if not self.opponents:
            raise ValueError("opponents must hold at least one group, got none")
        for group in self.opponents:
            share, rule = self.share_and_rule(group)
            number(f"the share of opponents[{group!r}]", share, 0.0)
            if not callable(rule) and rule not in RULES:
                raise ValueError(f"rule must be one of {list(RULES)} or a function, got {rule!r}")
            if rule == "nash" and find_spec("scipy") is None:
                raise ImportError("rule 'nash' needs SciPy: pip install scipy")
        if not any(self.share_and_rule(group)[0] for group in self.opponents):
            raise ValueError(f"opponents must have a positive share, got {dict(self.opponents)}")
        for name in ("every", "max_steps"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), 1)
        integer("min_games", self.min_games, 1)
        if self.win_rate is not None and number("win_rate", self.win_rate, 0.0, 1.0) == 0.0:
            raise ValueError("win_rate must be above 0, got 0")

    def share_and_rule(self, group: str) -> tuple[float, Rule]:
        """Returns the share of a group and the rule for its members."""
        entry = self.opponents[group]
        return entry if isinstance(entry, tuple) else (entry, self.rule)
