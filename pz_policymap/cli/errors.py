"""What ends a command: each is one line on stderr and an exit code."""

from __future__ import annotations

from pathlib import Path

from pz_policymap.evaluation.episode_loop import PlayError


class CommandError(Exception):
    """What was asked for is clear, but it cannot be done or went wrong: exit code 1."""

    code = 1


class UsageError(CommandError):
    """What was asked for makes no sense: exit code 2, as `argparse` has it."""

    code = 2


def check_folder(option: str, path: str | None) -> None:
    """Refuses a file in a folder that is not there, before anything is played.

    Raises:
        UsageError: If there is no such folder.
    """
    if path is not None and not Path(path).parent.is_dir():
        raise UsageError(f"{option}: there is no folder {str(Path(path).parent)!r}")


def told(error: BaseException) -> str:
    """Returns what an error says, in one line: its class where the message alone would puzzle.

    Example:
        >>> told(ValueError("policies must be at least 1, got 0")), told(KeyError("a"))
        ('policies must be at least 1, got 0', "KeyError: 'a'")
    """
    message = " ".join(str(error).split())
    if message and isinstance(error, (CommandError, PlayError, ValueError, TypeError, OSError, ImportError)):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
