"""Waits until the embedded PostgreSQL has no user left, however the last one ended, and has it stopped.

Run as a script, by a process that may be killed at any time. Imports next to nothing, so that it is small: where memory
runs out, it is not what the kernel ends. ``python guardian.py DATA_DIR CHECKOUT``
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

USERS_FILE = ".postgres-users"
GUARDIAN_FILE = ".postgres-guardian"
PAUSE_SECONDS = 1
_STOP = (
    "import sys; from pathlib import Path; from ragsite.postgres.embedded import EmbeddedPostgres; "
    "EmbeddedPostgres(Path(sys.argv[1])).stop_if_unused()"
)


def guard(data_dir: str, checkout: str) -> None:
    """Return when the server is stopped, or another guardian is there. Raises: FileNotFoundError without the folder."""
    guardian = os.open(os.path.join(data_dir, GUARDIAN_FILE), os.O_RDWR)
    users = os.open(os.path.join(data_dir, USERS_FILE), os.O_RDWR)
    if not _lock(guardian):
        return
    # Whoever started this goes on; the lock stays with the child.
    if os.fork():
        os._exit(0)
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        subprocess.run([sys.executable, "-c", _STOP, data_dir], cwd=checkout, check=False)
        # Who comes now either finds no guardian and starts one, or is found here.
        fcntl.flock(guardian, fcntl.LOCK_UN)
        if _lock(users) or not _lock(guardian):
            return
        time.sleep(PAUSE_SECONDS)


def _lock(file: int) -> bool:
    """Whether this process got the lock, for as long as it keeps the file open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    # It has to outlive what ends the site's processes politely, too: they stop the server themselves, if they can.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.argv[1], sys.argv[2])
