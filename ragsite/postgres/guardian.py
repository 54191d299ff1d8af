"""Stop the site's own PostgreSQL when no process uses it any more, also if the last process was killed.

It runs as a script, ``python guardian.py DATA_DIR CHECKOUT``, and imports little, because the kernel ends large
processes first.
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


def stop_server_when_unused(data_dir: str, checkout: str) -> None:
    """Wait until no process uses the PostgreSQL server, and stop it. Return at once if another guardian waits.

    Raises: FileNotFoundError if the data directory was deleted.
    """
    guardian = os.open(os.path.join(data_dir, GUARDIAN_FILE), os.O_RDWR)
    users = os.open(os.path.join(data_dir, USERS_FILE), os.O_RDWR)
    if not _try_lock_file(guardian):
        return
    if os.fork():
        os._exit(0)
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        subprocess.run([sys.executable, "-c", _STOP, data_dir], cwd=checkout, check=False)
        # A process that registers after this unlock starts a new guardian. If one registered earlier, it has locked
        # `users`, and this guardian continues.
        fcntl.flock(guardian, fcntl.LOCK_UN)
        if _try_lock_file(users) or not _try_lock_file(guardian):
            return
        time.sleep(PAUSE_SECONDS)


def _try_lock_file(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    stop_server_when_unused(sys.argv[1], sys.argv[2])
