"""Group consecutive items: lines of a row, rows of a table, columns side by side. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def gather(items: Iterable[T], belongs: Callable[[list[T], T], bool]) -> list[list[T]]:
    """Return the items in groups; an item opens a group unless it ``belongs`` to the previous one."""
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
