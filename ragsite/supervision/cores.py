"""How many processors this process may use. PURE."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def available_cores(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int:
    """At least 1: the processors that this process may run on, or what its control groups (a container's) let it have
    of them, whichever is less.
    """
    # Not on macOS.
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _quotas(root, own))]))


def _quotas(root: Path, own: Path) -> list[float]:
    """Processors by the quota of each control group around this process."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        inside = [part for part in path.split("/") if part]
        if number == "0":
            folders = [root.joinpath(*inside[:depth]) for depth in range(len(inside) + 1)]
            found += [_quota(folder / "cpu.max") for folder in folders]
        elif "cpu" in controllers.split(","):
            # Within a container the path is the host's, and the group itself is mounted at the root.
            folders = [root / "cpu", (root / "cpu").joinpath(*inside)]
            found += [_quota(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us") for folder in folders]
    return [quota for quota in found if quota is not None]


def _quota(*files: Path) -> float | None:
    """The first number of the files over the second one; None without a limit."""
    try:
        quota, period = " ".join(file.read_text() for file in files).split()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):
        return None
