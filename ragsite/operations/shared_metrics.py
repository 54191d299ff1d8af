"""Share metrics between the processes of a site, in files that stay when a process is killed.

The files are in MEMORY if possible, because a process that writes them to a full disk would be killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from prometheus_client import REGISTRY, CollectorRegistry, Counter, values
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - what is made in it is for one user
_PREFIX = "ragsite-"
_LOCK = "in-use"

_folder: Path | None = None
_lock: IO[bytes]


def share_metrics_between_processes(fallback_folder: Path) -> None:
    """Let this process and its forks count metrics in shared files, from zero.

    The files are in a folder below ``fallback_folder`` if MEMORY is None.
    """
    global _folder, _lock
    parent = MEMORY or fallback_folder
    for left in parent.glob(f"{_PREFIX}{os.getuid()}-*"):
        with contextlib.suppress(OSError), (left / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    _folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-", dir=parent))
    _lock = (_folder / _LOCK).open("wb")
    fcntl.flock(_lock, fcntl.LOCK_SH)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(_folder)
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    for metric in set(REGISTRY._names_to_collectors.values()):
        if isinstance(metric, MetricWrapperBase):
            known, metric._metrics = getattr(metric, "_metrics", {}), {}
            for labels in known if isinstance(metric, Counter) else ():
                metric.labels(*labels)
            if metric._is_observable():  # type: ignore[no-untyped-call]
                metric._metric_init()  # type: ignore[no-untyped-call]


def remove_shared_metrics() -> None:
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def forget_states_of(pid: int) -> None:
    mark_process_dead(pid, str(_folder))  # type: ignore[no-untyped-call]


def build_registry() -> CollectorRegistry:
    if _folder is None:
        return REGISTRY
    together = CollectorRegistry()
    MultiProcessCollector(together, str(_folder))  # type: ignore[no-untyped-call]
    return together
