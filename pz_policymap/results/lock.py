"""One lock for all ledgers: environments in several threads may share one, and none of their episodes is lost."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

# One for all, so that ledgers can be copied and sent. A signal handler may read what its own thread is writing.
LOCK = threading.RLock()

with suppress(AttributeError):  # Windows does not fork
    # A process that is forked must not find it closed by a thread that it does not have.
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
