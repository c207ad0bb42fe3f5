"""`policy_results` and `seat_results`: estimates whose intervals count clusters of episodes, such as draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from pz_policymap.arguments import integer
from pz_policymap.results.episode import Episode
from pz_policymap.results.games import games, side_standings
from pz_policymap.results.intervals import (
    Intervals,
    clustered_wilson,
    confidence_of,
    ratio_errors,
    ratio_sums,
    student_intervals,
)
from pz_policymap.results.ledger import check_episode, text_table

Terms = tuple[float, float, float, float]


@dataclass(frozen=True, repr=False, eq=False)
class ClusteredResults:
    """Win rates and mean returns, one per label.

    Attributes:
        heading: Name of the label column in the repr.
        labels: The policies or seats.
        win_rates: Games won plus half of those drawn, over all games, each of shape `(num_labels,)`. NaN without games.
        mean_returns: Mean returns over episodes, with the mean over the seats of a label, each of the same shape.
    """

    heading: str
    labels: tuple[Hashable, ...]
    win_rates: Intervals
    mean_returns: Intervals

    def __repr__(self) -> str:
        rows: list[list[str]] = [[self.heading, "units", "win rate", "interval", "mean return", "interval"]]
        for label, wins, returns in zip(self.labels, zip(*self.win_rates), zip(*self.mean_returns)):  # noqa: B905
            row = [str(label), f"{returns[3]:.0f}"]
            for value, low, high, *_ in (wins, returns):
                row.append("-" if np.isnan(value) else f"{value:.2f}")
                row.append("too few" if np.isnan(low) else f"{low:.2f} to {high:.2f}")
            rows.append(row)
        return "ClusteredResults\n" + text_table(rows)


def policy_results(
    episodes: Iterable[Episode],
    num_policies: int,
    *,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
) -> ClusteredResults:
    """Returns the overall win rate and mean return of each policy, with intervals that count clusters.

    Games are those of `Payoff`. Use it where episodes are not independent. Episodes that share a draw, for instance,
    share the roles of each policy, and the games of a tournament under one environment seed share the deal.

    Args:
        episodes: The episodes.
        num_policies: Size of the population, >= 1.
        clusters: A label per episode; episodes with equal labels are not independent. None: episodes are independent.
        confidence: Probability that an interval covers the true value, above 0 and below 1.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or if `clusters` does not hold one label per episode.

    Example:
        >>> from pz_policymap import Episode
        >>> held = [Episode(policies=[0, 1], returns=[1.0, 0.0])] * 10  # one draw, held for ten episodes
        >>> policy_results(held, num_policies=2, clusters=[0] * 10)
        ClusteredResults
        policy  units  win rate      interval  mean return  interval
             0      1      1.00  0.21 to 1.00         1.00   too few
             1      1      0.00  0.00 to 0.79         0.00   too few
    """
    size = integer("num_policies", num_policies, 1)
    terms = (_policy_terms(episode, size) for episode in episodes)
    return _estimates("policy", range(size), terms, clusters, confidence_of(confidence))


def seat_results(
    episodes: Iterable[Episode],
    *,
    policy: int | None = None,
    label_of: Callable[[Any], Hashable] | None = None,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
) -> ClusteredResults:
    """Returns the results of each seat under all policies, or of one policy in each seat.

    A seat is compared with every seat of another side and another label: won, drawn or lost by score, as in `Payoff`,
    but also between seats of the same policy. Intervals count clusters: see `clustered_wilson`, and Student's
    distribution for returns.

    Args:
        episodes: The episodes; agents are distinguished by `Episode.agents`.
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
        ClusteredResults
         seat  units  win rate      interval  mean return        interval
        black     20      1.00  0.84 to 1.00         1.00    1.00 to 1.00
        white     20      0.00  0.00 to 0.16        -1.00  -1.00 to -1.00
    """
    terms = (_seat_terms(episode, policy, label_of) for episode in episodes)
    return _estimates("seat", (), terms, clusters, confidence_of(confidence))


def _estimates(
    heading: str,
    labels: Iterable[Hashable],
    terms: Iterable[dict[Any, Terms]],
    clusters: Iterable[Hashable] | None,
    level: float,
) -> ClusteredResults:
    """Returns the results from the terms of each episode by label; `labels` come first."""
    sums: dict[Hashable, dict[Hashable, list[float]]] = {label: {} for label in labels}
    for by_label, cluster in zip(terms, count() if clusters is None else clusters, strict=clusters is not None):
        for label, values in by_label.items():
            mine = sums.setdefault(label, {}).setdefault(cluster, [0.0] * 4)
            for column, value in enumerate(values):
                mine[column] += value
    tables = [np.array(list(by_cluster.values()), np.float64).reshape(-1, 4).T for by_cluster in sums.values()]
    ratios = [[*ratio_sums(scores, met), *ratio_sums(totals, episodes)] for scores, met, totals, episodes in tables]
    rates, met, squares, units, means, episodes, spread, clusters_of = np.array(ratios).reshape(-1, 8).T
    wins = clustered_wilson(rates, met, squares, units, level)
    errors = ratio_errors(episodes, spread, clusters_of)
    return ClusteredResults(heading, tuple(sums), wins, student_intervals(means, clusters_of, errors, level))


def _policy_terms(episode: Episode, num_policies: int) -> dict[int, Terms]:
    """Returns per policy the games won plus half those drawn, the games, the mean return, and 1 for the episode."""
    check_episode(episode, num_policies)
    policies, _, played, results = games(episode)
    met, means = played.sum(axis=1), episode.mean_returns
    scores = (results.sum(axis=1) + met) / 2.0
    return {policy: (float(scores[i]), float(met[i]), means[policy], 1.0) for i, policy in enumerate(policies.tolist())}


def _seat_terms(
    episode: Episode, policy: int | None, label_of: Callable[[Any], Hashable] | None
) -> dict[Hashable, Terms]:
    """Returns the same per label, with a pair of seats as a game."""
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
