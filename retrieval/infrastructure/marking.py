"""Marks by which a model tells a document's text from all else. PURE.

Every sentence and every line of a quoted text begins with a mark that is made for the one request ("spotlighting",
Hines et al. 2024): words that pretend to be the site's own lack it, and no document can know it.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from retrieval.text.sentences import split_sentences


def new_mark(texts: Iterable[str]) -> str:
    """A mark that stands in none of the texts."""
    written = "\n".join(texts)
    while (mark := f"^{secrets.token_hex(2)}^") in written:
        pass
    return mark


def mark_sentences(text: str, mark: str) -> str:
    """The text with the mark and a space in front of every sentence and every line that holds something."""
    begins = [start for start, _end, _break in split_sentences(text, 0, len(text))]
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
