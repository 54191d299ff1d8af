"""Measure the free space of disks, and recognise errors of a full disk.

PostgreSQL stops when it cannot write its log, so writing is refused before the disk is full.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from core.database import iterate_causes
from core.exceptions import DiskFull
from core.metrics import get_counter

logger = logging.getLogger(__name__)

DISK_FULL = get_counter(
    "ragsite_disk_full", "What was not saved because the disk was full, or nearly so.", reason=("reserve", "error")
)

_PGCODE = "53100"


@dataclass(frozen=True, slots=True)
class FreeSpace:
    path: Path
    free_bytes: int


def list_free_space() -> list[FreeSpace]:
    paths = [Path(settings.DATA_DIR), Path(settings.MEDIA_ROOT)]
    if settings.EMBEDDED_POSTGRES is not None:
        paths.append(settings.EMBEDDED_POSTGRES.cluster)
    found: dict[int, FreeSpace] = {}
    for path in paths:
        try:
            device = path.stat().st_dev
        except FileNotFoundError:
            continue  # The folder will be created on the disk of DATA_DIR, which is in the list already.
        if device not in found:
            free = os.statvfs(path)
            found[device] = FreeSpace(path, free.f_bavail * free.f_frsize)
    return list(found.values())


def is_space_low() -> bool:
    return any(room.free_bytes < settings.DISK_RESERVE_BYTES for room in list_free_space())


def is_disk_full(error: BaseException | None) -> bool:
    return any(
        isinstance(each, DiskFull)
        or getattr(each, "sqlstate", None) == _PGCODE
        or (isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT))
        for each in iterate_causes(error)
    )


@contextmanager
def guard_against_full_disk() -> Iterator[None]:
    """Run a block that writes. Raises: DiskFull if too little space is free or writing fails."""
    if is_space_low():
        DISK_FULL.labels(reason="reserve").inc()
        raise DiskFull(get_disk_full_message())
    try:
        yield
    except Exception as error:
        is_lost = isinstance(error, OperationalError | InterfaceError) and is_space_low()
        if not is_lost and not is_disk_full(error):
            raise
        DISK_FULL.labels(reason="error").inc()
        logger.error("Something could not be saved, because the disk is full: %s", error)
        raise DiskFull(get_disk_full_message()) from error


def get_disk_full_message() -> str:
    return _("The disk of this site is full: nothing new can be saved until there is room. Please try again later.")
