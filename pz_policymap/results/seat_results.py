"""`seat_results`: win rate and return by seat or role, such as whether moving first wins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from pz_policymap.results.episode import Episode
from pz_policymap.results.games import side_standings
from pz_policymap.results.intervals import Intervals, clustered_wilson, confidence_of, ratio_sums, student_t
from pz_policymap.results.ledger import text_table

_SCORE, _PAIRS, _RETURN, _EPISODES = range(4)


@dataclass(frozen=True, repr=False, eq=False)
class SeatResults:
    """Win rates and mean returns, one per label.

    Attributes:
        labels: The agents, or what `label_of` returned for them, in order of appearance.
        win_rates: Pairs of seats won plus half of those drawn, over all pairs, each of shape `(num_labels,)`. NaN
            without opponents.
        mean_returns: Mean returns over episodes, with the mean over the seats of a label, each of the same shape.
    """

    labels: tuple[Hashable, ...]
    win_rates: Intervals
    mean_returns: Intervals

    def __repr__(self) -> str:
        rows: list[list[str]] = [["seat", "units", "win rate", "interval", "mean return", "interval"]]
        for label, wins, returns in zip(self.labels, zip(*self.win_rates), zip(*self.mean_returns)):  # noqa: B905
            row = [str(label), f"{returns[3]:.0f}"]
            for value, low, high, _ in (wins, returns):
                row.append("-" if np.isnan(value) else f"{value:.2f}")
                row.append("too few" if np.isnan(low) else f"{low:.2f} to {high:.2f}")
            rows.append(row)
        return text_table("SeatResults", rows)


def seat_results(
    episodes: Iterable[Episode],
    *,
    policy: int | None = None,
    label_of: Callable[[Any], Hashable] | None = None,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
) -> SeatResults:
    """Returns the results of each seat, whatever policies control it, or of one policy in each seat.

    A seat is compared with every seat of another side and another label: won, drawn or lost by score, as in `Payoff`,
    but also between seats of the same policy. Intervals count clusters: see `clustered_wilson`, and Student's
    distribution for returns.

    Args:
        episodes: The episodes; agents are told apart by `Episode.agents`.
        policy: Restricts the results to seats that this policy controlled. None: all seats.
        label_of: Agent -> label; seats with one label are taken together, such as those of a role. None: the agent.
        clusters: A label per episode; episodes with equal labels are not independent, such as those that share a draw
            or an environment seed. None: episodes are independent.
        confidence: Probability that an interval covers the true value, above 0 and below 1.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `confidence` is out of range, or if `clusters` does not hold one label per episode.

    Example:
        >>> from pz_policymap import Episode
        >>> first = Episode(policies=[0, 1], returns=[1.0, -1.0], agents=["black", "white"])
        >>> second = Episode(policies=[1, 0], returns=[1.0, -1.0], agents=["black", "white"])
        >>> seat_results([first, second] * 10)  # black always won
        SeatResults
         seat  units  win rate      interval  mean return        interval
        black     20      1.00  0.84 to 1.00         1.00    1.00 to 1.00
        white     20      0.00  0.00 to 0.16        -1.00  -1.00 to -1.00
    """
    level = confidence_of(confidence)
    sums: dict[Hashable, dict[Hashable, list[float]]] = {}
    numbers: dict[Hashable, int] = {}
    for episode, cluster in zip(episodes, count() if clusters is None else clusters, strict=clusters is not None):
        for label, terms in _terms(episode, policy, label_of).items():
            mine = sums.setdefault(label, {}).setdefault(cluster, [0.0] * 4)
            for column, term in enumerate(terms):
                mine[column] += term
        numbers.setdefault(cluster, len(numbers))
    table = np.zeros((4, len(numbers), len(sums)))
    for place, by_cluster in enumerate(sums.values()):
        for cluster, values in by_cluster.items():
            table[:, numbers[cluster], place] = values
    rates, pairs, squares, units = ratio_sums(table[_SCORE], table[_PAIRS])
    wins = Intervals(rates, *clustered_wilson(rates, pairs, squares, units, level), units)
    means, episodes_of, squares, units = ratio_sums(table[_RETURN], table[_EPISODES])
    half = np.sqrt(squares) / episodes_of * student_t(units - 1.0, level)
    return SeatResults(tuple(sums), wins, Intervals(means, means - half, means + half, units))


def _terms(
    episode: Episode, policy: int | None, label_of: Callable[[Any], Hashable] | None
) -> dict[Hashable, tuple[float, float, float, float]]:
    """Returns per label the pairs won plus half those drawn, the pairs, the mean return, and 1 for the episode."""
    labels = episode.agents if label_of is None else [label_of(agent) for agent in episode.agents]
    number: dict[Hashable, int] = {}
    places = np.array([number.setdefault(label, len(number)) for label in labels])
    side, standing = side_standings(episode)
    met = (side[:, None] != side) & (places[:, None] != places)
    scores = np.where(met, np.sign(standing[:, None] - standing) + 1.0, 0.0).sum(axis=1) / 2.0
    pairs, returns, shown = met.sum(axis=1), np.array(episode.returns), np.array(episode.policies) == policy
    found = {}
    for label, place in number.items():
        mine = (places == place) & (shown if policy is not None else True)
        if mine.any():
            found[label] = float(scores[mine].sum()), float(pairs[mine].sum()), float(returns[mine].mean()), 1.0
    return found
