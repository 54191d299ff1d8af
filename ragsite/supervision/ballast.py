"""Room that is kept for the database, and given up when the disk is full.

Without any room PostgreSQL stops at its next checkpoint, and then nothing can be read either. What it writes while the
site refuses to save anything is little: this lasts for days.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

FILE = "ballast"
BALLAST_BYTES = 64 * 2**20
# With less than this left, the ballast goes.
GIVEN_UP_BELOW_BYTES = 16 * 2**20


class Ballast:
    def __init__(
        self, data_dir: Path, reserve_bytes: int, say: Callable[[str], None], size_bytes: int = BALLAST_BYTES
    ) -> None:
        self._path = data_dir / FILE
        self._reserve_bytes = reserve_bytes
        self._size_bytes = size_bytes
        self._say = say

    def keep_up(self) -> None:
        """Give the ballast up on a full disk; take it again when there is more room than the site's reserve."""
        free = shutil.disk_usage(self._path.parent).free
        if self._path.exists():
            if free < GIVEN_UP_BELOW_BYTES:
                self._path.unlink()
                self._say(f"The disk is full: {self._size_bytes // 2**20} MiB were kept for this. Make room.")
        elif free > self._reserve_bytes + 2 * self._size_bytes:
            self._take()

    def _take(self) -> None:
        file = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.posix_fallocate(file, 0, self._size_bytes)
        except OSError:
            # Filled in this very moment. Half a ballast is none.
            self._path.unlink()
        finally:
            os.close(file)
