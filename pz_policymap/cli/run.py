"""`pz-policymap run`: episodes of an environment, and the results of each policy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import pz_policymap as pm
from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.errors import CommandError, UsageError, check_folder, error_message
from pz_policymap.cli.mappings import mapping_from
from pz_policymap.cli.options import (
    add_cadence,
    add_command,
    add_environment,
    add_number,
    add_outputs,
    add_teams,
    add_traceback,
)
from pz_policymap.cli.pictures import picture_at
from pz_policymap.cli.policies import policies_named, policy_names
from pz_policymap.cli.progress import progress
from pz_policymap.cli.tables import show, show_json
from pz_policymap.evaluation.episode_loop import PlayError
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.policies.seat_policies import RANDOM

_TEXT = """
Plays episodes of an environment and shows the results of each policy.

A policy is "random", which respects action masks, or module:name: a function of (observation, agent, info) that
returns an action, a class of such objects, or an object with predict. The same seed plays the same episodes.

A pair of different policies in an episode is a game, and the higher return wins it. A draw is half a win. The table
shows no confidence intervals: roles may be unequal, and episodes that share an assignment are not independent. To
compare policies, use tournament.

examples:
  pz-policymap run mpe2.simple_tag_v3 --policies 4 --episodes 25
  pz-policymap run classic/tictactoe-v3 --policies random my_bots:first_free --episodes 100
  pz-policymap run mpe2.simple_tag_v3 --mapping 'Teams(Uniform(4))' --teams --set max_cycles=50
  pz-policymap run my.module:make_env --policies 2 --payoff payoff.npz --plot payoff.png
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "run", "play episodes and show the results of each policy", _TEXT)
    add_environment(parser)
    parser.add_argument(
        "--policies", nargs="+", metavar="POLICY", help="names, or a number of random policies (default: by mapping)"
    )
    parser.add_argument("--mapping", metavar="MAPPING", help="as in preview (default: Uniform)")
    add_number(parser, "--episodes", 100, 1, "episodes to play")
    add_cadence(parser)
    add_number(parser, "--seed", 0, 0, "seed of assignments, environment and random policies")
    add_teams(parser)
    parser.add_argument(
        "--payoff",
        metavar="FILE",
        help="save the ledger and the statistics, of a run that is cut short too, for pz_policymap.load",
    )
    add_outputs(parser, "win rates and shares of steps")
    add_traceback(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    mapping, names = _mapping_and_names(options)
    picture = picture_at(options.plot)
    check_folder("--payoff", options.payoff)
    name = EnvName(options.env, options.api, settings_from(options.set))
    bare = name()
    result = pm.PlayResult(names)
    try:
        env = pm.wrap(
            bare,
            mapping,
            resample_every=options.resample_every,
            warmup_episodes=options.warmup_episodes,
            seed=options.seed,
            env_index=0,
        )
        episodes = pm.play(
            env,
            policies_named(names),
            options.episodes,
            seed=options.seed,
            team_of="prefix" if options.teams else None,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(error_message(error)) from error
    _play(options, episodes, result)
    if options.json:
        show_json({"env": options.env, "mapping": repr(mapping), "seed": options.seed, **result.as_dict()})
    else:
        show(f"{result}")
    if picture:
        picture.save(result.plot())
    name.close(env)  # last: its errors lose nothing
    return 0


def _play(options: argparse.Namespace, episodes: Iterator[pm.Episode], result: pm.PlayResult) -> None:
    """Plays the episodes, and saves the ledgers of the finished ones even if it is interrupted."""
    played = 0
    try:
        with progress("episodes", options.episodes) as advance:
            for episode in episodes:
                result.record(episode)
                played += 1
                advance()
    except BaseException as error:
        if played:  # else a file that exists already holds more
            _keep(options, result)
        if isinstance(error, KeyboardInterrupt):
            kept = f"they are in {options.payoff}" if options.payoff and played else "nothing is kept"
            print(f"{played} of {options.episodes} episodes were played; {kept}", file=sys.stderr)
        if isinstance(error, PlayError):
            raise CommandError(str(error)) from error
        raise
    _keep(options, result)


def _keep(options: argparse.Namespace, result: pm.PlayResult) -> None:
    if options.payoff:
        try:
            pm.save(options.payoff, payoff=result.payoff, statistics=result.statistics)
        except OSError as error:
            raise CommandError(f"--payoff: {error_message(error)}") from error


def _mapping_and_names(options: argparse.Namespace) -> tuple[PolicyMapping, list[str]]:
    """Returns the mapping, and a name for each policy."""
    if options.mapping is None:
        names = policy_names(options.policies or ["2"])
        return pm.Uniform(len(names)), names
    mapping = mapping_from(options.mapping)
    size = mapping.num_policies
    if options.policies:
        names = policy_names(options.policies)
        if size is not None and size > len(names):
            raise UsageError(f"--mapping {options.mapping} has {size} policies, --policies {len(names)}")
        return mapping, names
    if size is None:
        raise UsageError(f"--mapping {options.mapping} does not declare its number of policies: pass --policies")
    return mapping, [RANDOM] * size
