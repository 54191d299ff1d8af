"""Group consecutive items, such as lines of a row or rows of a table. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def group_consecutive(items: Iterable[T], belongs: Callable[[list[T], T], bool]) -> list[list[T]]:
    """Return consecutive items in groups. An item for which ``belongs(group, item)`` is False begins a new group."""
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
