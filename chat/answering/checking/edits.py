"""The edit that changes a model's text for display. PURE."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """Replaces ``written[start:end]`` by ``text``. If ``cites``, the new text is markers or empty."""

    start: int
    end: int
    text: str
    cites: bool = False
