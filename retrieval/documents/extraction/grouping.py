"""Group consecutive items, such as the lines of a row or the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def group_consecutive(items: Iterable[T], belongs: Callable[[list[T], T], bool]) -> list[list[T]]:
    """Return the items in groups.

    An item begins a new group if ``belongs(group, item)`` is False for the last group.
    """
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
