"""Hides what a reasoning model thinks aloud before its answer. Pure."""

from __future__ import annotations

import re

_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>", "<reasoning>": "</reasoning>"}


class ThoughtFilter:
    """Passes streamed text on without the thoughts that it begins with: ``<think>…</think>`` and its like.

    Such a tag further on is the answer's own text, and stays.
    """

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._passing = False

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        if self._passing:
            return piece
        self._held += piece
        if not self._closing:
            head = self._held.lstrip().lower()
            opened = next((tag for tag in _TAGS if head.startswith(tag)), "")
            if not opened:
                return "" if any(tag.startswith(head) for tag in _TAGS) else self._pass(self._held)
            self._closing = _TAGS[opened]
        if closed := re.search(self._closing, self._held, re.IGNORECASE):
            # Another thought may follow right behind the first.
            after, self._held, self._closing = self._held[closed.end() :], "", ""
            return self.feed(after) if after else ""
        # Only what may be the beginning of the closing tag is still needed.
        self._held = self._held[-len(self._closing) :]
        return ""

    def close(self) -> str:
        """What was held back, at the end of the stream; a thought without an end is none of the answer."""
        held, self._held = self._held, ""
        return "" if self._closing else held

    def _pass(self, text: str) -> str:
        self._passing, self._held = True, ""
        return text
