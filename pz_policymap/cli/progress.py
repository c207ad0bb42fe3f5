"""A line on stderr that says how far a command is; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_EVERY = 0.1  # seconds between two looks


class Progress:
    """Shows a bar, the rate, and the time that is left.

    Args:
        what: What is counted: "episodes".
        total: How many there are.
        done: How many were done before, by an earlier command.

    Example:
        >>> with Progress("games", total=3) as progress:
        ...     progress.advance()
        >>> progress.line(seconds=2.0)
        'games [########................] 1/3, 0.5 a second, 4 s left'
    """

    def __init__(self, what: str, total: int, done: int = 0) -> None:
        self._what, self._total, self._before, self._done = what, total, done, done
        self._shown = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._last = -_EVERY

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self) -> None:
        """Counts one more."""
        self._done += 1
        if not self._shown:
            return
        now = time.monotonic() - self._begun
        if now - self._last >= _EVERY:
            self._last = now
            sys.stderr.write(f"\r{self.line(now)}\x1b[K")
            sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """Returns what is shown after so many seconds."""
        filled = 24 * self._done // self._total
        rate = (self._done - self._before) / max(seconds, 1e-9)
        left = _duration((self._total - self._done) / rate) if rate else "?"
        bar = "#" * filled + "." * (24 - filled)
        return f"{self._what} [{bar}] {self._done}/{self._total}, {rate:.3g} a second, {left} left"


def _duration(seconds: float) -> str:
    """Returns a time that one can read.

    Example:
        >>> _duration(59.4), _duration(3661)
        ('59 s', '1 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
