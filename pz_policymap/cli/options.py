"""Arguments that several commands share, and what their words are turned into."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress

PLOT = "pip install 'pz-policymap[plot]'"
DEMO = "pip install 'pz-policymap[demo]'"


def at_least(minimum: int) -> Callable[[str], int]:
    """Returns what turns a word of the command line into an int, or refuses it."""

    def number(word: str) -> int:
        with suppress(ValueError):
            if (value := int(word)) >= minimum:
                return value
        raise argparse.ArgumentTypeError(f"must be a whole number from {minimum}, got {word!r}")

    return number


def add_number(parser: argparse._ActionsContainer, name: str, default: int, minimum: int, text: str) -> None:
    """Adds an argument that is a whole number."""
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
    """Adds what an environment is named by."""
    parser.add_argument(
        "env",
        metavar="ENV",
        help="a module such as mpe2.simple_tag_v3, a function that makes an environment as my.module:make_env, "
        "or an id of PettingZoo's registry such as classic/tictactoe-v3",
    )
    parser.add_argument("--api", choices=["parallel", "aec"], help="which of the two, where ENV offers both")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument to make the environment with; may be repeated",
    )


def add_cadence(parser: argparse.ArgumentParser, resample_every: int = 10) -> None:
    """Adds when draws are made."""
    add_number(parser, "--resample-every", resample_every, 1, "episodes a draw is held for")
    add_number(parser, "--warmup-episodes", 0, 0, "episodes at the start that draw each for itself")


def add_teams(parser: argparse.ArgumentParser) -> None:
    """Adds who wins and loses together."""
    parser.add_argument(
        "--teams",
        action="store_true",
        help="agents whose names differ only in the number at the end are a team: red_0 and red_1 win and lose "
        "together, by their mean return",
    )


def add_outputs(parser: argparse.ArgumentParser, picture: str) -> None:
    """Adds where results go besides the tables."""
    parser.add_argument("--json", action="store_true", help="write JSON on stdout in place of the tables")
    parser.add_argument("--plot", metavar="FILE", help=f"draw {picture} (png, pdf, svg ...); needs matplotlib")


def add_traceback(parser: argparse.ArgumentParser) -> None:
    """Adds the switch for those who look for a mistake in code of their own."""
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from, in full")
