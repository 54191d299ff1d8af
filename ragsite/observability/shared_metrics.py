"""Counters that several processes of one site add to, in files that outlive the process that is killed.

The files lie where memory is a file system, if anywhere: a disk that is full would end whoever counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, values
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it is for this user alone
_PREFIX = "ragsite-"
_LOCK = "in-use"

_folder: Path | None = None
_process = ""


@contextlib.contextmanager
def shared_folder(beside: Path) -> Iterator[Path]:
    """A folder for files and sockets of processes that run together, in memory or else in ``beside``; gone afterwards.

    What killed processes have left behind is removed.
    """
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else beside
    for left in parent.glob(f"{_PREFIX}{os.getuid()}-*"):
        _remove_if_unused(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-", dir=parent))
    try:
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_unused(folder: Path) -> None:
    with contextlib.suppress(OSError), (folder / _LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def share(folder: Path) -> None:
    """Count in files of ``folder`` from now on, from zero, in this process and in its forks."""
    global _folder
    _folder = folder
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: _process)  # type: ignore[no-untyped-call]
    for metric in set(REGISTRY._names_to_collectors.values()):
        if isinstance(metric, MetricWrapperBase):
            metric._metrics = {}
            if metric._is_observable():  # type: ignore[no-untyped-call]
                metric._metric_init()  # type: ignore[no-untyped-call]


def count_as(process: str) -> None:
    """The name of this process, whose counts go on when it is started again; one process at a time has it."""
    global _process
    _process = process


def forget_states_of(process: str) -> None:
    """What the process said of itself, as against what it has counted, holds no more: it has ended."""
    mark_process_dead(process, str(_folder))  # type: ignore[no-untyped-call]


def registry() -> CollectorRegistry:
    """The metrics of all processes together; of this one where there are no others."""
    if _folder is None:
        return REGISTRY
    together = CollectorRegistry()
    MultiProcessCollector(together, str(_folder))  # type: ignore[no-untyped-call]
    return together
