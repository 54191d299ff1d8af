"""Resources of this machine or container: processors, memory, ports, disk space, and OOM scores. Imports no Django."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import math
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import psutil

_CGROUPS = Path("/sys/fs/cgroup")

# If memory runs out, Linux ends the processes with the highest score first: workers, and the database last.
SITE_SCORE = 200
WORK_SCORE = 500
_SCORE_FILE = Path("/proc/self/oom_score_adj")

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15

BALLAST_FILE = "ballast"
BALLAST_BYTES = 64 * 2**20
# The file that reserves disk space is deleted below this free space.
GIVEN_UP_BELOW_BYTES = 16 * 2**20


def lock_file(path: Path) -> IO[bytes] | None:
    """Lock a file and return it; None if another process has locked it.

    The lock ends when the file is closed or this process exits. Child processes do not inherit it.
    """
    file = path.open("ab")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def count_available_cores(root: Path = _CGROUPS) -> int:
    """Return how many processors this process may use in its machine or container; at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores: int = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # If there is no limit, cpu.max is missing or contains "max".
        quota, period = (root / "cpu.max").read_text().split()
        cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)


def available_memory_mib(root: Path = _CGROUPS) -> int:
    total: int = psutil.virtual_memory().total
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int((root / "memory.max").read_text()))
    return total // 2**20


def find_port_problem(host: str, port: int) -> str:
    """Return the system's error message if no server can listen on the port; "" if one can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def is_answering(host: str, port: int, path: str, headers: Mapping[str, str] | None = None) -> bool:
    line = http.client.HTTPConnection(host, port, timeout=2)
    try:
        line.request("GET", path, headers=dict(headers or {}))
        return line.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()


def raise_oom_score(score: int) -> None:
    """Make Linux end this process and its children before others when memory runs out.

    If the process already has a higher score, it is kept.
    """
    if sys.platform == "linux" and int(_SCORE_FILE.read_text()) < score:
        _SCORE_FILE.write_text(str(score))


def end_with_parent(parent: int, name: str) -> None:
    """Make Linux kill this process when its ``parent`` ends, and rename this process."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_NAME, name.encode()[:15])
        # After SIGTERM a worker would wait for its tasks.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def reserve_disk_space(
    data_dir: Path, reserve_bytes: int, say: Callable[[str], None], size_bytes: int = BALLAST_BYTES
) -> None:
    """Create a file that reserves disk space, or delete it if the disk is full. Call this repeatedly.

    On a full disk, PostgreSQL would stop at its next checkpoint.
    """
    path = data_dir / BALLAST_FILE
    free = shutil.disk_usage(data_dir).free
    if path.exists():
        if free < GIVEN_UP_BELOW_BYTES:
            path.unlink()
            say(f"The disk is full: {size_bytes // 2**20} MiB were kept for this. Make room.")
        return
    if free <= reserve_bytes + 2 * size_bytes:
        return
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.posix_fallocate(file, 0, size_bytes)
    except OSError:
        path.unlink()
    finally:
        os.close(file)
