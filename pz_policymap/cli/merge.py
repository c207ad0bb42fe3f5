"""`pz-policymap merge`: the results files of one tournament as one, without playing."""

from __future__ import annotations

import argparse

import pz_policymap as pm
from pz_policymap.cli.errors import CommandError, UsageError, error_message
from pz_policymap.cli.options import add_command, add_outputs, add_teams, add_traceback
from pz_policymap.cli.pictures import picture_at
from pz_policymap.cli.tournament import show_result

_TEXT = """
Reads the results files of one tournament, such as those of its shards, and shows its result without playing. With
--into it also writes one file, from which `tournament --results` resumes.

examples:
  pz-policymap merge shard*.jsonl --into games.jsonl
  pz-policymap merge games.jsonl --json
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "merge", "join the results files of a tournament and show its result", _TEXT)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file written by `tournament --results`")
    parser.add_argument("--into", metavar="FILE", help="write all games to this file")
    add_teams(parser)
    add_outputs(parser, "win rates and ratings")
    add_traceback(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    picture = picture_at(options.plot)
    try:
        result = pm.read_tournament(*options.files, into=options.into, team_of="prefix" if options.teams else None)
    except OSError as error:
        raise CommandError(error_message(error)) from error
    except (TypeError, ValueError) as error:
        raise UsageError(error_message(error)) from error
    show_result(result, options.json, {})
    if picture:
        picture.save(result.plot())
    return 0
