"""What is computed once of a model and kept in a folder: its graph, and the hash of its files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ABANDONED_AFTER_SECONDS = 3600
"""Age at which a half-written file must be the remains of a killed process."""


def write_whole(path: Path, content: bytes) -> None:
    """Puts the complete file at its path in one step.

    Processes that start together each write their own and the last rename wins: all are equal. What a killed process
    leaves has another name, and is swept away by a later call. Raises: OSError.
    """
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    descriptor, partial = tempfile.mkstemp(prefix=".building-", suffix=path.suffix, dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp lets only the owner read, but web and worker may run as different users.
        Path(partial).chmod(0o644)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def remembered_digest(files: Iterable[Path], settings: object, compute: Callable[[], str], cache_dir: Path) -> str:
    """What ``compute`` returns, from the cache while none of the files, nor the settings, has changed. Raises: OSError.

    A large model takes a while to hash, and every process of the site needs the result.
    """
    states = [(str(file.resolve()), (state := file.stat()).st_size, state.st_mtime_ns) for file in files]
    path = cache_dir / f"{hashlib.sha256(repr((states, settings)).encode()).hexdigest()[:32]}.digest"
    with contextlib.suppress(OSError):
        if re.fullmatch(r"[0-9a-f]{64}", remembered := path.read_text(encoding="ascii", errors="replace")):
            return remembered
    digest = compute()
    # Where nothing can be written, the graph will say so.
    with contextlib.suppress(OSError):
        write_whole(path, digest.encode())
    return digest


def _sweep(folder: Path) -> None:
    oldest = time.time() - ABANDONED_AFTER_SECONDS
    for partial in folder.glob(".building-*"):
        try:
            if partial.stat().st_mtime < oldest:
                partial.unlink()
        except FileNotFoundError:
            continue  # another process swept it first
