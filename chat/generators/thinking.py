"""Hides what a reasoning model thinks aloud before its answer. Pure."""

from __future__ import annotations

import re

_CLOSINGS = {tag: re.compile(tag.replace("<", "</"), re.IGNORECASE) for tag in ("<think>", "<thinking>", "<reasoning>")}
_LONGEST_TAG = max(map(len, _CLOSINGS)) + 1


class ThoughtFilter:
    """Passes streamed text on without the thoughts that it begins with: ``<think>…</think>`` and its like.

    Such a tag further on is the answer's own text, and stays. White space before the answer is left out.
    """

    def __init__(self) -> None:
        self._held = ""
        self._closing: re.Pattern[str] | None = None
        self._passing = False

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        if self._passing:
            return piece
        text = self._held + piece
        at = 0
        # Another thought may follow right behind the first.
        while at < len(text):
            if self._closing is None:
                while at < len(text) and text[at].isspace():
                    at += 1
                head = text[at : at + _LONGEST_TAG].lower()
                opened = next((tag for tag in _CLOSINGS if head.startswith(tag)), "")
                if not opened:
                    self._passing = not any(tag.startswith(head) for tag in _CLOSINGS)
                    self._held = "" if self._passing else text[at:]
                    return text[at:] if self._passing else ""
                self._closing = _CLOSINGS[opened]
            closed = self._closing.search(text, at)
            if closed is None:
                # Only what may be the beginning of the closing tag is still needed.
                at = max(at, len(text) - _LONGEST_TAG)
                break
            at, self._closing = closed.end(), None
        self._held = text[at:]
        return ""

    def close(self) -> str:
        """What was held back, at the end of the stream; a thought without an end is none of the answer."""
        held, self._held = self._held, ""
        return "" if self._closing else held
