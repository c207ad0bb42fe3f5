"""`LastSnapshot`: the state of a learner at its last snapshot, which decides when the next one is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pz_policymap.arguments import integer
from pz_policymap.pool.learner_settings import PoolLearner
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
    def now(cls, learner: int, step: int, payoff: Payoff | None) -> LastSnapshot:
        """Returns the state of a learner, given by its policy id, for a snapshot taken now."""
        won, games = ([], []) if payoff is None else (column.tolist() for column in payoff.results_of(learner))
        return cls(step, won, games)

    def without(self, policy_id: int) -> LastSnapshot:
        """Returns the same state without the results against a policy that the ledger has forgotten."""
        won, games = ([0.0 if i == policy_id else n for i, n in enumerate(row)] for row in (self.won, self.games))
        return LastSnapshot(self.step, won, games)

    def is_due_by_steps(self, settings: PoolLearner, step: int) -> bool:
        """Returns whether the next snapshot is due because of the number of steps."""
        steps = integer("step", step, self.step) - self.step
        limits = (settings.every, settings.max_steps if settings.win_rate is not None else None)
        return any(limit is not None and steps >= limit for limit in limits)

    def is_due_by_win_rate(self, settings: PoolLearner, learner: int, opponents: list[int], payoff: Payoff) -> bool:
        """Returns whether the next snapshot of a learner with a `win_rate` is due because of it.

        Raw counts are compared: decayed ones would never reach a minimum number of games.

        Args:
            settings: When snapshots are taken.
            learner: The learner's policy id.
            opponents: The policy ids whose games count.
            payoff: The ledger.
        """
        won, games = payoff.results_of(learner)
        games[: len(self.games)] -= self.games
        total = games[opponents].sum()
        if total < settings.min_games:
            return False
        won[: len(self.won)] -= self.won
        return bool(won[opponents].sum() >= (settings.win_rate or 0.0) * total)
