"""`PlayResult`: the results of each policy over some episodes, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pz_policymap import plots
from pz_policymap.evaluation.result_table import cell, html_table
from pz_policymap.evaluation.standings import standings
from pz_policymap.plots.style import side_by_side
from pz_policymap.results.episode import Episode
from pz_policymap.results.ledger import text_table
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.statistics import PolicyStatistics
from pz_policymap.results.sums import added

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PlayResult:
    """Results of episodes by policy; records the episodes that `play` yields, or those of `record_results`.

    The table shows no confidence intervals: roles may be unequal, and episodes that share an assignment are not
    independent. To compare policies, use `tournament`.

    Args:
        names: The names of the policies, in the order of their ids.

    Attributes:
        names: As given.
        payoff: The ledger of games.
        statistics: The number of episodes and steps per policy.

    Example:
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> env = pm.wrap(rps_v2.parallel_env(), pm.Fixed({"player_0": 0, "player_1": 1}))
        >>> result = pm.PlayResult(["paper", "rock"])
        >>> for episode in pm.play(env, [lambda *seen: 1, lambda *seen: 0], episodes=10, seed=0):
        ...     result.record(episode)
        >>> result
        10 episodes of 2 policies
        policy  name   episodes  steps  mean return  games  win rate
        0       paper        10    150        15.00     10      1.00
        1       rock         10    150       -15.00     10      0.00
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.payoff, self.statistics = Payoff(len(self.names)), PolicyStatistics(len(self.names))
        self._episodes = 0
        self._returns = [(0.0, 0.0)] * len(self.names)

    def record(self, episode: Episode) -> None:
        """Adds the outcome of one episode; errors as in `Payoff.record`."""
        self.payoff.record(episode)
        self.statistics.record(episode)
        self._episodes += 1
        for policy, value in episode.mean_returns.items():
            self._returns[policy] = added(*self._returns[policy], value)

    def as_dict(self) -> dict[str, Any]:
        """Returns all numbers in plain types, for JSON; unknown ones are NaN."""
        episodes, steps = self.statistics.episodes.tolist(), self.statistics.steps.tolist()
        return {
            "episodes": self._episodes,
            "policies": [
                {
                    "policy": policy,
                    "name": name,
                    "episodes": episodes[policy],
                    "steps": steps[policy],
                    "mean_return": self._returns[policy][0] / episodes[policy] if episodes[policy] else math.nan,
                    **standing._asdict(),
                }
                for policy, (name, standing) in enumerate(zip(self.names, standings(self.payoff), strict=True))
            ],
        }

    def plot(self) -> Figure:
        """Returns a matplotlib figure: the win rates of all pairs, and the share of all steps that each policy had.

        Save it by `figure.savefig("result.png")`. Needs the extra `plot`.
        """
        labels = [str(policy) for policy in range(len(self.names))]
        if len(set(self.names)) > 1:
            labels = [f"{policy} {name}" for policy, name in enumerate(self.names)]
        tall = max(3.5, 0.35 * len(labels))
        return side_by_side(
            lambda axes: plots.payoff(axes, self.payoff, labels),
            lambda axes: plots.shares(axes, self.statistics.steps, names=labels),
            sizes=[(tall + 1.5, tall), (5.0, tall)],
        )

    def _title(self) -> str:
        return f"{self._episodes} episodes of {len(self.names)} policies"

    def _rows(self) -> list[list[str]]:
        keys = ("policy", "name", "episodes", "steps", "mean_return", "games", "win_rate")
        rows = [[key.replace("_", " ") for key in keys]]
        for row in self.as_dict()["policies"]:
            values = (row[key] for key in keys)
            rows.append([cell(value) if isinstance(value, float) else str(value) for value in values])
        return rows

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(self._rows(), words=2)}"

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._rows(), [])
