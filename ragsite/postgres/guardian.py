"""Wait until the embedded PostgreSQL has no user left, and stop it.

A process that may be killed starts it as a script, ``python guardian.py DATA_DIR CHECKOUT``. It imports little: the
kernel does not end a small process when memory runs out.
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
    """Return once the server is stopped, or another guardian runs. Raises: FileNotFoundError without the folder."""
    guardian = os.open(os.path.join(data_dir, GUARDIAN_FILE), os.O_RDWR)
    users = os.open(os.path.join(data_dir, USERS_FILE), os.O_RDWR)
    if not _lock(guardian):
        return
    # The starting process returns; the child keeps the lock.
    if os.fork():
        os._exit(0)
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        subprocess.run([sys.executable, "-c", _STOP, data_dir], cwd=checkout, check=False)
        # A new user now either finds no guardian and starts one, or is found here.
        fcntl.flock(guardian, fcntl.LOCK_UN)
        if _lock(users) or not _lock(guardian):
            return
        time.sleep(PAUSE_SECONDS)


def _lock(file: int) -> bool:
    """Return whether this process got the lock, which lasts while the file is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    # The guardian must outlive signals that end the site's processes.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    guard(sys.argv[1], sys.argv[2])
