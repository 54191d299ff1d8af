"""Data that the processes of a parallel run share: the first process makes them, the others copy them."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

_FOLDER = "RAGSITE_TESTS_SHARED"


def share(folder):
    """Make ``folder`` the run's folder, unless a parent process has."""
    os.environ.setdefault(_FOLDER, str(folder))


def folder():
    return Path(os.environ[_FOLDER])


def made_once(name, make):
    """Return the file or folder ``name``, and whether this call made it; other processes wait meanwhile."""
    path = folder() / name
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, False
        unfinished = path.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        make(unfinished)
        unfinished.rename(path)
        return path, True


def copy_files(source, target):
    """Copy a folder with the owners of its files, into ``target`` if there is one."""
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", target], check=True)
