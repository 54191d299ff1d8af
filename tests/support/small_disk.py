"""A real file system of a few MiB, to be filled. Who may not mount one skips the tests, which say so."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._filling = path / "filling"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filling.open("ab", buffering=0) as file:
            for size in (2**16, 2**12, 1):
                while _fits(file, size):
                    pass

    def make_room(self) -> None:
        self._filling.unlink()


def _fits(file: IO[bytes], size: int) -> bool:
    try:
        file.write(b"x" * size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


@contextmanager
def small_disk(path: Path, size: str = "8m") -> Iterator[SmallDisk]:
    path.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
