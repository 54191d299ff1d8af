from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def pop(self, key: K) -> V | None:
        with self._lock:
            return self._kept.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


# An older partial file was left by a killed process.
ABANDONED_AFTER_SECONDS = 3600.0


def write_file_atomically(path: Path, content: bytes) -> None:
    """Write the file in one step, so that no reader sees a part of the content. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED_AFTER_SECONDS:
                left.unlink()
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
