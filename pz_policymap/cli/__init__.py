"""The command line: `pz-policymap preview`, `run`, `tournament`, `merge` and `check`."""

from __future__ import annotations

import argparse
import io
import sys
import traceback
from collections.abc import Sequence
from importlib.util import find_spec

_TEXT = """
Shows which policy controls which agent, plays episodes and tournaments, and checks environments.
"""
_EXAMPLES = """
examples:
  pz-policymap preview 'Focal(Fixed(0), Uniform(4))'    assignments, and each policy's share
  pz-policymap run mpe2.simple_tag_v3 --policies 4      play episodes, with random policies
  pz-policymap tournament classic/tictactoe-v3 --policies random my_bots:first_free
  pz-policymap merge shard*.jsonl --into games.jsonl    join the shards of a tournament
  pz-policymap check my.module:make_env                 is my environment compatible?

pz-policymap COMMAND --help shows more. Exit codes: 0 success, 1 failure or problems found, 2 invalid command,
130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0 success, 1 failure, 2 invalid command, 130 interrupted.

    Args:
        arguments: The words of the command line; None: the process's own.
    """
    from pz_policymap.cli.errors import CommandError, error_message
    from pz_policymap.cli.options import DEMO
    from pz_policymap.cli.stdout import only_results_on_stdout

    traced = False
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an ASCII terminal shows names that are not ASCII
    try:
        try:
            options = _parsed(arguments)
        except SystemExit as stop:  # argparse has printed the reason
            return int(stop.code or 0)
        traced = getattr(options, "traceback", False)
        if options.command and find_spec("rich") is None:
            raise CommandError(f"the commands need rich, for their tables: {DEMO}")
        with only_results_on_stdout():
            code = int(options.run(options))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except SystemExit as stop:  # of a module, an environment or a policy
        print(f"pz-policymap: sys.exit({stop.code!r}) was called by the code that it runs", file=sys.stderr)
        return 1
    except OSError as error:  # stdout, on a full disk
        print(f"pz-policymap: the output cannot be written: {error_message(error)}", file=sys.stderr)
        return 1
    except CommandError as error:
        if traced:
            traceback.print_exc()
            print(getattr(error.__cause__, "details", ""), file=sys.stderr)
        print(f"pz-policymap: {error_message(error)}", file=sys.stderr)
        return error.code
    return code


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    from pz_policymap import __version__
    from pz_policymap.cli import check, merge, preview, run, tournament

    parser = argparse.ArgumentParser(
        prog="pz-policymap",
        description=_TEXT.strip(),
        epilog=_EXAMPLES.strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pz-policymap {__version__}")
    parser.set_defaults(run=lambda _: _helped(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in (preview, run, tournament, merge, check):
        command.add(commands)
    return parser.parse_args(arguments)


def _helped(parser: argparse.ArgumentParser) -> int:
    """Prints the help for a command line without a command, as pip does."""
    from pz_policymap.cli.stdout import results

    parser.print_help(results())
    return 0
