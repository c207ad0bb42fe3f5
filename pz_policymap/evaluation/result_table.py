"""The result of a tournament as text, HTML and plain numbers."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pz_policymap.evaluation.tournament_result import TournamentResult

_FEW = 10  # independent games: fewer make an interval unreliable
_MOST = 3  # names in a note


def standings_rows(result: TournamentResult) -> list[list[str]]:
    """Returns heading and rows of the standings, the best entrants first."""
    if not result.competitive:
        return _cooperative_rows(result)
    ratings, means, rates = result.ratings(), result.mean_returns, result.win_rates
    rows = [
        ["name", "rating", "error", "games", "wins", "draws", "losses", "win rate", "95% interval", "return", "error"]
    ]
    for policy in result.order:
        games, wins, draws, losses, _ = result.standings[policy]
        rows.append(
            [
                result.names[policy],
                f"{ratings.values[policy]:+.0f}",
                f"{ratings.errors[policy]:.0f}",
                *map(str, (games, wins, draws, losses)),
                cell(rates.values[policy]),
                f"{rates.lows[policy]:.2f} to {rates.highs[policy]:.2f}" if games else "-",
                cell(means.values[policy]),
                cell(means.errors[policy]),
            ]
        )
    return rows


def _cooperative_rows(result: TournamentResult) -> list[list[str]]:
    found, means = result.cooperation(), result.mean_returns
    rows = [["name", "return", "error", "self-play", "cross-play", "gap", "error", "worst partner"]]
    for policy in result.order:
        columns = (means.values, means.errors, found.self_play, found.cross_play, found.gaps, found.gap_errors)
        partner = int(found.worst_partners[policy])
        worst = f"{result.names[partner]} ({found.worst_returns[policy]:.2f})" if partner >= 0 else "-"
        rows.append([result.names[policy], *(cell(values[policy]) for values in columns), worst])
    return rows


def pair_rows(result: TournamentResult) -> list[list[str]]:
    """Returns heading and rows of the win rates of all pairs, or of their mean returns if no game was won."""
    values, title = pair_win_rates(result), "win rate against"
    if not result.competitive:
        values, title = result.payoff.mean_returns, "mean return with"
    order, names = result.order, result.names
    return [
        [title, *(names[other] for other in order)],
        *([names[policy], *(cell(values[policy, other]) for other in order)] for policy in order),
    ]


def pair_win_rates(result: TournamentResult) -> Any:
    """Returns wins and half the draws over games, without a prior; NaN without games."""
    payoff = result.payoff
    rates = np.full(payoff.games.shape, np.nan)
    np.divide(payoff.wins + payoff.draws / 2.0, payoff.games, out=rates, where=payoff.games > 0)
    return rates


def cell(value: float) -> str:
    """Returns a number with two digits, NaN as a dash."""
    return "-" if math.isnan(value) else f"{value:.2f}"


def html_table(title: str, rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Returns rows and notes as HTML, for notebooks."""
    lines = [f"<table><caption>{html.escape(title)}</caption>"]
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        lines.append(f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>")
    return "\n".join([*lines, "</table>", *(f"<p>Note: {html.escape(note)}</p>" for note in notes)])


def note_texts(result: TournamentResult, identical: Mapping[tuple[str, ...], int]) -> list[str]:
    """Returns warnings about unreliable numbers, one sentence each.

    Args:
        result: The result.
        identical: The matchups whose games are all identical, with the number of their games.
    """
    notes = []
    if identical:
        shown = [f"the {count} games of {' - '.join(matchup)}" for matchup, count in identical.items()]
        notes.append(
            f"{_listed(shown, 'matchups')} are identical, and count as one game per matchup in errors and intervals."
        )
    if len(result.episodes) and len(set(result.episodes[0].sides)) == 1 and len(result.episodes[0].sides) > 1:
        notes.append("all agents are one team, so no game can be won.")
    units = result.win_rates.units  # the games of one episode, or under one environment seed, are not independent
    few = [result.names[policy] for policy in result.order if units[policy] < _FEW]
    if few and result.competitive:
        who = "all entrants" if len(few) == len(result.names) else _listed(few, "entrants")
        more = "" if identical else "; play more cycles"
        notes.append(f"fewer than {_FEW} independent games of {who}: errors and intervals are unreliable{more}.")
    for name, count in result.forfeits.items():
        notes.append(f"{name} forfeited {count} games, the first by this error: {result.reasons[name]}")
    return notes


def _listed(items: Sequence[str], what: str) -> str:
    more = len(items) - _MOST
    return ", ".join(items[:_MOST]) + (f" and {more} more {what}" if more > 0 else "")


def plain_dict(result: TournamentResult) -> dict[str, Any]:
    """Returns all numbers in plain types."""
    payoff, ratings, rates = result.payoff, result.ratings(), result.win_rates
    means, found = result.mean_returns, result.cooperation()
    entrants = [
        {
            "policy": policy,
            "name": result.names[policy],
            "rating": float(ratings.values[policy]),
            "rating_error": float(ratings.errors[policy]),
            **result.standings[policy]._asdict(),
            "interval": [float(rates.lows[policy]), float(rates.highs[policy])],
            "episodes": int(rates.units[policy]),
            "mean_return": float(means.values[policy]),
            "mean_return_error": float(means.errors[policy]),
            "self_play": float(found.self_play[policy]),
            "cross_play": float(found.cross_play[policy]),
            "forfeits": result.forfeits.get(result.names[policy], 0),
        }
        for policy in result.order
    ]
    matrices = {name: getattr(payoff, name).tolist() for name in ("wins", "draws", "games", "mean_returns")}
    return {
        "games_played": len(result.episodes),
        "policies": entrants,
        "win_rates": pair_win_rates(result).tolist(),
        **matrices,
        "notes": result.notes,
    }
