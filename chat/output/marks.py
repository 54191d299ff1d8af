"""Marks by which a model tells a document's text from all else. PURE.

Every sentence and every line of a quoted text begins with a mark that is made for the one request ("spotlighting",
Hines et al. 2024): words that pretend to be the site's own lack it, and no document can know it. A model that copies
the mark is corrected on the way out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from retrieval.ingest.sentences import spans


def marked(text: str, mark: str) -> str:
    """The text with the mark and a space in front of every sentence and every line that holds something."""
    begins = [start for start, _end, _break in spans(text, 0, len(text))]
    marked_lines = []
    at = 0
    for line in text.split("\n"):
        end = at + len(line)
        first = bisect_left(begins, at)
        # The first sentence of a line begins with the line: what indents it may mean something.
        own = [at, *begins[bisect_right(begins, end - len(line.lstrip())) : bisect_left(begins, end, first)]]
        cuts = [*own, end]
        marked_lines.append("".join(f"{mark} {text[a:b]}" for a, b in pairwise(cuts)) if line.strip() else line)
        at = end + 1
    return "\n".join(marked_lines)


class MarkStream:
    """Passes streamed text on without a mark and the space behind it."""

    def __init__(self, mark: str) -> None:
        self._forms = (f"{mark} ", mark)
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = _without(self._held + piece, self._forms[:1])
        longest = self._forms[0]
        cut = next(
            (size for size in range(min(len(longest) - 1, len(text)), 0, -1) if longest.startswith(text[-size:])), 0
        )
        self._held = text[len(text) - cut :]
        return _without(text[: len(text) - cut], self._forms)

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, ""
        return _without(held, self._forms)


def _without(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        text = text.replace(form, "")
    return text
