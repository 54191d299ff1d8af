"""Changes of a model's text where it is shown. PURE."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """``written[start:end]`` is shown as ``text``. An edit that ``cites`` shows the site's markers, or nothing."""

    start: int
    end: int
    text: str
    cites: bool = False
