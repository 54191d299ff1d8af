"""Edits of a model's text for display. PURE."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """A replacement of ``written[start:end]`` by ``text``. If it ``cites``, the text is the site's markers or empty."""

    start: int
    end: int
    text: str
    cites: bool = False
