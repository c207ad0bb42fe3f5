"""`pz-policymap tournament` and `merge`: every policy against every other, on a real environment."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from typing import Any

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.errors import CommandError, UsageError, check_folder, error_message
from pz_policymap.cli.options import (
    add_command,
    add_environment,
    add_number,
    add_outputs,
    add_teams,
    add_traceback,
    at_least,
)
from pz_policymap.cli.pictures import picture_at
from pz_policymap.cli.policies import entrants_named, policy_names
from pz_policymap.cli.progress import progress
from pz_policymap.cli.tables import show, show_json
from pz_policymap.evaluation.episode_loop import PlayError
from pz_policymap.policies.entrant import Entrant

_TEXT = """
Plays a tournament: in each cycle every matchup once, in every seating, in random order. Then ratings (Bradley-Terry,
in points of the Elo scale, with mean 0) and the win rates between all pairs. In cooperative games, mean returns in
self-play and in cross-play take their place.

A policy is "random", module:function, module:factory('v2.zip') with literal arguments, or each file of a folder.

Each game is a function of the seed, the names of its policies in seat order and its repetition, provided that policies
keep nothing from one game to the next. So --jobs only changes the time. With --results the games are kept: after an
interruption the same command resumes, more --cycles add games, and a new policy plays only its own games. With --shard
several machines share the work; `pz-policymap merge` joins their files.

examples:
  pz-policymap tournament classic/tictactoe-v3 --policies random my_bots:first_free my_bots:blocks
  pz-policymap tournament classic/connect_four-v3 --checkpoints runs/7 --loader my_bots:load --cycles 500 --jobs 2
  pz-policymap tournament classic/chess-v6 --policies bots:a bots:b --shard 0/8 --results shard0.jsonl
  pz-policymap tournament mpe2.simple_tag_v3 --policies 3 --teams --games 100 --json
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "tournament", "every policy against every other, with ratings", _TEXT)
    add_environment(parser)
    parser.add_argument(
        "--policies", nargs="+", default=[], metavar="POLICY", help="names of policies, or a number of random policies"
    )
    parser.add_argument("--checkpoints", metavar="FOLDER", help="a folder; each file is a policy; needs --loader")
    parser.add_argument("--loader", metavar="MODULE:FUNCTION", help="returns the policy of the path of a checkpoint")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--cycles", type=at_least(1), metavar="N", help="games per matchup and seating (default 10)")
    length.add_argument("--games", type=at_least(1), metavar="N", help="total number of games")
    add_number(parser, "--jobs", 1, 1, "processes that play")
    add_number(parser, "--seed", 0, 0, "seed of the order, of environments and of random policies")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="play part I of N, from 0; for several machines")
    add_teams(parser)
    parser.add_argument(
        "--self-matches",
        action="store_true",
        help="a policy may control several seats; the default where there are fewer policies than seats",
    )
    parser.add_argument("--results", metavar="FILE", help="append each finished game to this file, and resume from it")
    parser.add_argument(
        "--on-error",
        choices=["raise", "forfeit"],
        default="raise",
        help="a policy that fails ends the tournament, or loses the game",
    )
    add_outputs(parser, "win rates and ratings")
    add_traceback(parser)
    parser.set_defaults(run=run)


def _shard(word: str) -> tuple[int, int]:
    """Returns the two integers of "0/8"."""
    index, _, shards = word.partition("/")
    if not (index.isdecimal() and shards.isdecimal() and int(index) < int(shards)):
        raise argparse.ArgumentTypeError(f"must be I/N with 0 <= I < N, such as 0/8, got {word!r}")
    return int(index), int(shards)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    picture = picture_at(options.plot)
    check_folder("--results", options.results)
    names = policy_names(options.policies)
    make_env = EnvName(options.env, options.api, settings_from(options.set))
    entrants = entrants_named(names, options.checkpoints, options.loader)
    if len(entrants) < 2:
        raise UsageError(f"--policies and --checkpoints must name at least 2 policies, got {len(entrants)}")
    for entrant in entrants.values():  # a policy that cannot be made is reported before anything is played
        if isinstance(entrant, Entrant):
            entrant.load()
    env = make_env()
    agents = getattr(env, "possible_agents", None)
    if agents is None:
        raise CommandError(f"environment {options.env!r} has no possible_agents, which a tournament needs beforehand")
    make_env.close(env)
    result = _play(options, make_env, entrants, len(agents))
    show_result(result, options.json, {"env": options.env, "agents": list(map(str, agents)), "seed": options.seed})
    if picture:
        picture.save(result.plot())
    return 0


def show_result(result: pm.TournamentResult, as_json: bool, settings: dict[str, Any]) -> None:
    """Writes a result on stdout, as `print` does, with the table of all pairs below."""
    if as_json:
        show_json({**settings, **result.as_dict()})
    else:
        show(f"{result}\n\n{result.pairs()}")


def _play(options: argparse.Namespace, make_env: EnvName, entrants: dict[str, Any], seats: int) -> pm.TournamentResult:
    """Plays the games that are missing."""
    state = [0, 0]
    try:
        with ExitStack() as stack:
            bar: list[Any] = []

            def report(done: int, count: int) -> None:
                if not bar:
                    if 0 < done < count:
                        print(f"resuming after {done} of {count} games in {options.results}", file=sys.stderr)
                    bar.append(stack.enter_context(progress("games", count, done)))
                else:
                    bar[0]()
                state[:] = done, count

            return pm.tournament(
                make_env,
                entrants,
                cycles=options.cycles or 10,
                games=options.games,
                seed=options.seed,
                team_of="prefix" if options.teams else None,
                self_matches=options.self_matches or len(entrants) < seats,
                n_jobs=options.jobs,
                shard=options.shard,
                results=options.results,
                on_error=options.on_error,
                progress=report,
            )
    except KeyboardInterrupt:
        kept = "the same command resumes" if options.results else "without --results nothing is kept"
        print(f"{state[0]} of {state[1]} games were played; {kept}", file=sys.stderr)
        raise
    except (PlayError, ImportError) as error:
        raise CommandError(error_message(error)) from error
    except OSError as error:
        raise CommandError(f"--results: {error_message(error)}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(error_message(error)) from error
