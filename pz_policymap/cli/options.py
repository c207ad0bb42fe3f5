"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress

PLOT = "pip install matplotlib"
DEMO = "pip install rich"


def at_least(minimum: int) -> Callable[[str], int]:
    """Returns a converter from a word of the command line to an integer >= `minimum`."""

    def number(word: str) -> int:
        with suppress(ValueError):
            if (value := int(word)) >= minimum:
                return value
        raise argparse.ArgumentTypeError(f"must be an integer >= {minimum}, got {word!r}")

    return number


def add_number(parser: argparse._ActionsContainer, name: str, default: int, minimum: int, text: str) -> None:
    """Adds an integer argument."""
    parser.add_argument(name, type=at_least(minimum), default=default, metavar="N", help=f"{text} (default {default})")


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, text: str
) -> argparse.ArgumentParser:
    """Adds a command; `text` says what it does and ends with examples."""
    description, _, examples = text.strip().partition("\nexamples:\n")
    return commands.add_parser(
        name,
        help=summary,
        description=description.strip(),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_environment(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name an environment."""
    parser.add_argument(
        "env",
        metavar="ENV",
        help="a module such as mpe2.simple_tag_v3, a function that makes an environment as my.module:make_env, "
        "or an id of PettingZoo's registry such as classic/tictactoe-v3",
    )
    parser.add_argument("--api", choices=["parallel", "aec"], help="the API to use if ENV offers both")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument to make the environment with; may be repeated",
    )


def add_cadence(parser: argparse.ArgumentParser) -> None:
    """Adds the resampling schedule."""
    parser.add_argument(
        "--resample-every",
        type=at_least(1),
        metavar="N",
        help="episodes between resamples (default 10, or 1 for mappings that are schedules)",
    )
    add_number(parser, "--warmup-episodes", 0, 0, "first episodes that each resample")


def add_teams(parser: argparse.ArgumentParser) -> None:
    """Adds the switch for teams."""
    parser.add_argument(
        "--teams",
        action="store_true",
        help="agents whose names differ only in the number at the end are a team: red_0 and red_1 win and lose "
        "together, by their mean return",
    )


def add_outputs(parser: argparse.ArgumentParser, picture: str) -> None:
    """Adds the outputs besides tables."""
    parser.add_argument("--json", action="store_true", help="write JSON on stdout in place of the tables")
    parser.add_argument("--plot", metavar="FILE", help=f"draw {picture} (png, pdf, svg ...); needs matplotlib")


def add_traceback(parser: argparse.ArgumentParser) -> None:
    """Adds the switch that shows full tracebacks."""
    parser.add_argument("--traceback", action="store_true", help="show the full traceback of an error")
