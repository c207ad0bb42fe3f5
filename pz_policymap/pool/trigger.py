"""`LastSnapshot`: what a learner's next snapshot is measured from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pz_policymap.arguments import integer
from pz_policymap.pool.learner_settings import PoolLearner, Vector
from pz_policymap.results.payoff import Payoff


@dataclass(frozen=True)
class LastSnapshot:
    """The step and the results of a learner at its last snapshot; zeros before the first.

    Attributes:
        step: The learner's step.
        won: Its wins, a draw counting half, against each policy id at that time.
        games: Its games against each policy id at that time.
    """

    step: int = 0
    won: Sequence[float] = ()
    games: Sequence[float] = ()

    @classmethod
    def now(cls, learner: int, step: int, payoff: Payoff) -> LastSnapshot:
        """Returns the state of a learner, given by its policy id, for a snapshot taken now."""
        won, games = _results(learner, payoff)
        return cls(step, tuple(won.tolist()), tuple(games.tolist()))

    def is_due(self, settings: PoolLearner, learner: int, opponents: Sequence[int], step: int, payoff: Payoff) -> bool:
        """Returns whether the next snapshot is due.

        Raw counts are compared: decayed ones would never reach a minimum number of games.

        Args:
            settings: When snapshots are taken.
            learner: The learner's policy id.
            opponents: The policy ids whose games count.
            step: The learner's step.
            payoff: The ledger.
        """
        steps = integer("step", step, self.step) - self.step
        if settings.every is not None and steps >= settings.every:
            return True
        if settings.win_rate is None:
            return False
        if settings.max_steps is not None and steps >= settings.max_steps:
            return True
        won, games = _results(learner, payoff)
        won[: len(self.won)] -= self.won
        games[: len(self.games)] -= self.games
        total = games[list(opponents)].sum()
        return bool(total >= settings.min_games and won[list(opponents)].sum() >= settings.win_rate * total)


def _results(learner: int, payoff: Payoff) -> tuple[Vector, Vector]:
    """Returns a learner's wins, a draw counting half, and its games against each policy id."""
    return payoff.wins[learner] + payoff.draws[learner] / 2.0, payoff.games[learner].astype(np.float64)
