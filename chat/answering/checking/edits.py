from __future__ import annotations

from typing import NamedTuple


class TextEdit(NamedTuple):
    """A change of a model's text: ``text`` replaces the range from ``start`` to ``end``.

    If ``cites`` is true, ``text`` consists only of markers such as ``[1]``, or is empty.
    """

    start: int
    end: int
    text: str
    cites: bool = False
