"""Edits of a model's text for display. PURE."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """A replacement of ``written[start:end]``. If it ``cites``, ``text`` is markers or empty."""

    start: int
    end: int
    text: str
    cites: bool = False
