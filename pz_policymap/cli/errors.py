"""Errors that end a command: one line on stderr and an exit code."""

from __future__ import annotations

from pathlib import Path

from pz_policymap.evaluation.episode_loop import PlayError


class CommandError(Exception):
    """A valid command failed: exit code 1."""

    code = 1


class UsageError(CommandError):
    """The command is invalid: exit code 2, as in `argparse`."""

    code = 2


def check_folder(option: str, path: str | None) -> None:
    """Refuses a file in a missing folder, before anything is played.

    Raises:
        UsageError: If the folder is missing.
    """
    if path is not None and not Path(path).parent.is_dir():
        raise UsageError(f"{option}: there is no folder {str(Path(path).parent)!r}")


def error_message(error: BaseException) -> str:
    """Returns the message of an error on one line, with its class if the message alone is unclear.

    Example:
        >>> error_message(ValueError("policies must be at least 1, got 0")), error_message(KeyError("a"))
        ('policies must be at least 1, got 0', "KeyError: 'a'")
    """
    message = " ".join(str(error).split())
    if message and isinstance(error, (CommandError, PlayError, ValueError, TypeError, OSError, ImportError)):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
