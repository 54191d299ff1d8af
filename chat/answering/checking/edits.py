"""The edit that changes a model's text for display. PURE."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """A replacement of one range of a model's text, from ``start`` to ``end``, by ``text``.

    If ``cites`` is true, it changes only markers such as ``[1]``: ``text`` has only markers, or is empty.
    """

    start: int
    end: int
    text: str
    cites: bool = False
