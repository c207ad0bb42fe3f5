"""`pz-policymap tournament`: every policy against every other, on a real environment."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from typing import Any

import numpy as np

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.errors import CommandError, UsageError, check_folder, told
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
from pz_policymap.cli.policies import entrants_named, policies_named, policy_names
from pz_policymap.cli.progress import progress
from pz_policymap.cli.tables import policy_style, show, show_json, show_table
from pz_policymap.evaluation.episode_loop import PlayError
from pz_policymap.evaluation.standings import interval_text
from pz_policymap.evaluation.tournament_result import TournamentResult

_TEXT = """
Plays a tournament: in each cycle every matchup once, in every seating, in random order. Then ratings (Bradley-Terry,
in points of the Elo scale, with mean 0) and the win rates between all pairs.

Each game is a function of the seed, the names of its policies in seat order and its repetition, provided that policies
keep nothing from one game to the next. So --jobs only changes the time. With --results the games are kept: after an
interruption the same command resumes, more --cycles add games, and a new policy plays only its own games.

examples:
  pz-policymap tournament classic/tictactoe-v3 --policies random my_bots:first_free my_bots:blocks
  pz-policymap tournament classic/connect_four-v3 --policies bots:a bots:b --cycles 500 --jobs 2 --results games.npz
  pz-policymap tournament mpe2.simple_tag_v3 --policies 3 --teams --games 100 --json
"""


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
    parser.add_argument("--results", metavar="FILE", help="keep the games in this file, and resume from it")
    parser.add_argument(
        "--on-error",
        choices=["raise", "forfeit"],
        default="raise",
        help="a policy that fails ends it, or loses the game",
    )
    add_outputs(parser, "win rates and ratings")
    add_traceback(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    picture = picture_at(options.plot)
    check_folder("--results", options.results)
    names = policy_names(options.policies)
    if len(names) < 2:
        raise UsageError("--policies must be at least 2, for a tournament")
    make_env = EnvName(options.env, options.api, settings_from(options.set))
    policies_named(names)  # a policy that cannot be made is reported before anything is played
    env = make_env()
    agents = getattr(env, "possible_agents", None)
    if agents is None:
        raise CommandError(f"environment {options.env!r} has no possible_agents, which a tournament needs beforehand")
    make_env.close(env)
    result = _play(options, make_env, names, len(agents))
    _show(options, [str(agent) for agent in agents], result)
    if picture:
        from pz_policymap import plots

        labels = labels_of(result.names)
        tall = max(3.5, 0.4 * len(labels))
        picture.draw(
            lambda axes: plots.payoff(axes, result.payoff, labels),
            lambda axes: plots.ratings(axes, result.payoff, labels),
            sizes=[(tall + 1.5, tall), (5.0, tall)],
        )
    return 0


def _play(options: argparse.Namespace, make_env: EnvName, names: list[str], seats: int) -> TournamentResult:
    """Plays the games that are missing."""
    state = [0, 0]
    try:
        with ExitStack() as stack:
            bar: list[Any] = []

            def show(done: int, count: int) -> None:
                if not bar:
                    if 0 < done < count:
                        print(f"resuming after {done} of {count} games in {options.results}", file=sys.stderr)
                    bar.append(stack.enter_context(progress("games", count, done)))
                else:
                    bar[0]()
                state[:] = done, count

            return pm.tournament(
                make_env,
                entrants_named(names),
                cycles=options.cycles or 10,
                games=options.games,
                seed=options.seed,
                team_of="prefix" if options.teams else None,
                self_matches=options.self_matches or len(names) < seats,
                n_jobs=options.jobs,
                results=options.results,
                on_error=options.on_error,
                progress=show,
            )
    except KeyboardInterrupt:
        kept = "the same command resumes" if options.results else "without --results nothing is kept"
        print(f"{state[0]} of {state[1]} games were played; {kept}", file=sys.stderr)
        raise
    except (PlayError, ImportError) as error:
        raise CommandError(told(error)) from error
    except OSError as error:
        raise CommandError(f"--results: {told(error)}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(told(error)) from error


def _show(options: argparse.Namespace, agents: list[str], result: TournamentResult) -> None:
    payoff, played, ratings, fared = result.payoff, len(result.episodes), result.ratings(), result.standings
    order = result.order
    met = payoff.games
    rates = np.where(met > 0, (payoff.wins + payoff.draws / 2.0) / np.maximum(met, 1), np.nan)  # without the prior
    if options.json:
        policies: list[dict[str, Any]] = [
            {
                "policy": policy,
                "name": result.names[policy],
                "rating": ratings.values[policy],
                "rating_error": ratings.errors[policy],
                "mean_return": result.mean_returns.values[policy],
                "mean_return_error": result.mean_returns.errors[policy],
                "forfeits": result.forfeits.get(result.names[policy], 0),
                **fared[policy]._asdict(),
                "interval": result.intervals[policy],
            }
            for policy in order
        ]
        matrices = {name: getattr(payoff, name) for name in ("wins", "draws", "games", "mean_returns")}
        settings = {"env": options.env, "agents": agents, "seed": options.seed, "games_played": played}
        show_json({**settings, "policies": policies, "win_rates": rates, **matrices})
        return
    names, rows = (
        ["policy", "name", "rating", "error", "games", "wins", "draws", "losses", "win rate", "95% interval"],
        [],
    )
    for policy in order:
        standing, rating, error = fared[policy], ratings.values[policy], ratings.errors[policy]
        counts = [standing.games, standing.wins, standing.draws, standing.losses]
        front = [policy, result.names[policy], f"{rating:+.0f}", f"{error:.0f}"]
        rows.append([*front, *counts, standing.win_rate, interval_text(result.intervals[policy])])
    styles = [[policy_style(policy), policy_style(policy), *[""] * 8] for policy in order]
    show_table(f"{options.env}: {played} games", names, rows, styles, words=2)
    show()
    _show_matrix("Win rate of the row's policy against the column's", rates, order)
    if not payoff.wins.any():
        show()
        _show_matrix("No game was won. Mean return of the row's policy with the column's", payoff.mean_returns, order)


def _show_matrix(title: str, matrix: Any, order: list[int]) -> None:
    rows = [[policy, *(float(matrix[policy, other]) for other in order)] for policy in order]
    styles = [[policy_style(policy), *[""] * len(order)] for policy in order]
    show_table(title, ["policy", *map(str, order)], rows, styles)
