"""`pz-policymap tournament`: every policy against every other, on a real environment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.errors import CommandError, UsageError, check_folder
from pz_policymap.cli.options import (
    add_command,
    add_environment,
    add_number,
    add_outputs,
    add_teams,
    add_traceback,
    at_least,
)
from pz_policymap.cli.pictures import labels_of, picture_at
from pz_policymap.cli.progress import progress
from pz_policymap.cli.tables import policy_style, show, show_json, show_table
from pz_policymap.evaluation.games import Plan
from pz_policymap.evaluation.outcomes import Keeper, Outcomes, outcomes_at
from pz_policymap.evaluation.policies import policies_named, policy_names
from pz_policymap.evaluation.standings import interval_text, standings
from pz_policymap.evaluation.totals import Totals
from pz_policymap.evaluation.workers import play_games

_TEXT = """
Plays a tournament: in each cycle every matchup once, in every seating, in random order. Then ratings (Bradley-Terry,
in points of Elo's scale, whose mean is 0) and the win rates between all pairs.

Each game is a function of the seed and its number, if policies keep nothing from one game to the next; so --jobs
changes nothing but the time. With --results the games are kept: after an interruption the same command goes on, and
one with more --cycles or --games adds to them. Policies are written, and games are won, as in run.

examples:
  pz-policymap tournament classic/tictactoe-v3 --policies random my_bots:first_free my_bots:blocks
  pz-policymap tournament classic/connect_four-v3 --policies bots:a bots:b --cycles 500 --jobs 2 --results games.npz
  pz-policymap tournament mpe2.simple_tag_v3 --policies 3 --teams --games 100 --json
"""
_MOST_GAMES = 10_000_000  # what is kept of each takes memory


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "tournament", "every policy against every other, with ratings", _TEXT)
    add_environment(parser)
    parser.add_argument(
        "--policies", nargs="+", required=True, metavar="POLICY", help="their names, or how many random ones"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--cycles", type=at_least(1), metavar="N", help="how often each matchup is played (default 10)")
    length.add_argument("--games", type=at_least(1), metavar="N", help="how many games are played in all")
    add_number(parser, "--jobs", 1, 1, "processes that play")
    add_number(parser, "--seed", 0, 0, "seed of the order, of environments and of random policies")
    add_teams(parser)
    parser.add_argument(
        "--self-matches",
        action="store_true",
        help="a policy may play several seats; so it is where there are fewer policies than seats",
    )
    parser.add_argument("--results", metavar="FILE", help="keep the games here, and go on from those that are here")
    add_outputs(parser, "win rates and ratings")
    add_traceback(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    picture = picture_at(options.plot)
    check_folder("--results", options.results)
    plan = _plan(options)
    games = options.games or (options.cycles or 10) * plan.games_per_cycle
    if games > _MOST_GAMES:
        raise UsageError(f"there are {games} games, of at most {_MOST_GAMES}: give --games")
    outcomes = outcomes_at(options.results, plan, games)
    close = _play(options, plan, outcomes, games)
    payoff, totals = pm.Payoff(len(plan.policies)), Totals(len(plan.policies))
    for episode in outcomes.episodes():
        payoff.record(episode)
        totals.record(episode)
    _show(options, plan, int(outcomes.done.sum()), payoff, totals)
    if picture:
        from pz_policymap import plots

        labels = labels_of(plan.policies)
        tall = max(3.5, 0.4 * len(plan.policies))
        picture.draw(
            lambda axes: plots.payoff(axes, payoff, labels),
            lambda axes: plots.ratings(axes, payoff, labels),
            sizes=[(tall + 1.5, tall), (5.0, tall)],
        )
    close()  # last: its errors lose nothing
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    names = policy_names(options.policies)
    if len(names) < 2:
        raise UsageError("--policies must be at least 2, for a tournament")
    name = EnvName(options.env, options.api, settings_from(options.set))
    env = name()
    agents = getattr(env, "possible_agents", None)
    if agents is None:
        raise CommandError(
            f"environment {options.env!r} has no possible_agents, which a tournament must know beforehand"
        )
    if not all(isinstance(agent, (str, int)) for agent in agents):
        raise CommandError(f"environment {options.env!r} has agents that are no names: {list(agents)}")
    if options.teams and not all(isinstance(agent, str) for agent in agents):
        raise CommandError(f"--teams needs agents whose names are strings, got {list(agents)}")
    policies_named(names)  # what cannot be made is said before anything is played
    name.close(env)
    return Plan(
        name,
        tuple(names),
        options.seed,
        tuple(agents),
        options.teams,
        options.self_matches or len(names) < len(agents),
    )


def _play(options: argparse.Namespace, plan: Plan, outcomes: Outcomes, games: int) -> Callable[[], None]:
    """Plays what is missing of the first `games` games; returns what closes the environment."""
    missing = np.flatnonzero(~outcomes.done[:games]).tolist()
    played = games - len(missing)
    if played and missing:
        print(f"going on after {played} of {games} games, which are in {options.results}", file=sys.stderr)
    keeper = Keeper(options.results, outcomes)
    keeper.keep()  # a file that cannot be written is noticed before hours of play
    try:
        with progress("games", games, played) as advance:

            def record(game: int, episode: pm.Episode) -> None:
                outcomes.record(game, episode)
                keeper.keep_now_and_then()
                advance()

            return play_games(plan, missing, min(options.jobs, max(1, len(missing))), record)
    except KeyboardInterrupt:
        kept = "the same command goes on" if options.results else "without --results nothing is kept"
        print(f"{int(outcomes.done[:games].sum())} of {games} games were played; {kept}", file=sys.stderr)
        raise
    finally:
        keeper.keep()


def _show(options: argparse.Namespace, plan: Plan, played: int, payoff: pm.Payoff, totals: Totals) -> None:
    ratings = payoff.ratings()
    order = np.argsort(-ratings.values, kind="stable").tolist()
    fared = standings(payoff)
    met = payoff.games
    rates = np.where(met > 0, (payoff.wins + payoff.draws / 2.0) / np.maximum(met, 1), np.nan)  # without the prior
    if options.json:
        policies: list[dict[str, Any]] = [
            {
                "policy": policy,
                "name": plan.policies[policy],
                "rating": ratings.values[policy],
                "rating_error": ratings.errors[policy],
                "episodes": totals.episodes[policy],
                "mean_return": totals.mean_return[policy],
                **fared[policy]._asdict(),
            }
            for policy in order
        ]
        matrices = {name: getattr(payoff, name) for name in ("wins", "draws", "games", "mean_returns")}
        settings = {"env": options.env, "agents": plan.agents, "seed": plan.seed, "games_played": played}
        show_json({**settings, "policies": policies, "win_rates": rates, **matrices})
        return
    names, rows = (
        ["policy", "name", "rating", "error", "games", "wins", "draws", "losses", "win rate", "95% interval"],
        [],
    )
    for policy in order:
        standing, rating, error = fared[policy], ratings.values[policy], ratings.errors[policy]
        counts = [standing.games, standing.wins, standing.draws, standing.losses]
        front = [policy, plan.policies[policy], f"{rating:+.0f}", f"{error:.0f}"]
        rows.append([*front, *counts, standing.win_rate, interval_text(standing.interval)])
    styles = [[policy_style(policy), policy_style(policy), *[""] * 8] for policy in order]
    show_table(f"{options.env}: {played} games", names, rows, styles, words=2)
    show()
    _show_matrix("Win rate of the row's policy against the column's", rates, order)
    if not payoff.wins.any():
        show()
        _show_matrix("Nobody won a game. Mean return of the row's policy with the column's", payoff.mean_returns, order)


def _show_matrix(title: str, matrix: Any, order: list[int]) -> None:
    rows = [[policy, *(float(matrix[policy, other]) for other in order)] for policy in order]
    styles = [[policy_style(policy), *[""] * len(order)] for policy in order]
    show_table(title, ["policy", *map(str, order)], rows, styles)
