"""Pictures into files, through `pz_policymap.plots`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pz_policymap.cli.errors import CommandError, UsageError, check_folder, error_message
from pz_policymap.cli.options import PLOT


class Picture:
    """A file for a picture that is drawn later.

    Missing packages and folders are noticed by the constructor, before anything is played.

    Args:
        path: The file; its ending selects the format.

    Raises:
        CommandError: If matplotlib is not installed.
        UsageError: If the folder does not exist, or the format is unknown.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise CommandError(f"--plot needs matplotlib: {PLOT}") from error
        known = Figure().canvas.get_supported_filetypes()
        ending = Path(path).suffix.lstrip(".").lower()
        if ending not in known:
            raise UsageError(f"--plot must end in one of {', '.join('.' + name for name in known)}, got {path!r}")
        check_folder("--plot", path)

    def save(self, figure: Any) -> None:
        """Writes a figure of matplotlib.

        Raises:
            CommandError: If the file cannot be written.
        """
        try:
            figure.savefig(self._path, dpi=150)
        except OSError as error:
            raise CommandError(f"--plot: {error_message(error)}") from error


def picture_at(path: str | None) -> Picture | None:
    """Returns the picture of `--plot`, or None without `--plot`.

    Raises:
        UsageError, CommandError: As `Picture` does.
    """
    return None if path is None else Picture(path)
