"""Mark each sentence of a quoted text, so that a model does not take the text as instructions ("spotlighting").

Each request has a new random mark, which no document can contain. Source: Hines et al., "Defending Against Indirect
Prompt Injection Attacks With Spotlighting", 2024.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from retrieval.text.sentences import split_sentences


def make_spotlight_mark(texts: Iterable[str]) -> str:
    written = "\n".join(texts)
    while (mark := f"^{secrets.token_hex(2)}^") in written:
        pass
    return mark


def mark_sentences(text: str, mark: str) -> str:
    """Return the text with the mark before each sentence, and before each line that is not blank."""
    begins = [start for start, _end, _break in split_sentences(text, 0, len(text))]
    marked_lines = []
    at = 0
    for line in text.split("\n"):
        end = at + len(line)
        first = bisect_left(begins, at)
        # The first mark of a line is inserted before its indentation, so that the indentation of code is kept.
        own = [at, *begins[bisect_right(begins, end - len(line.lstrip())) : bisect_left(begins, end, first)]]
        cuts = [*own, end]
        marked_lines.append("".join(f"{mark} {text[a:b]}" for a, b in pairwise(cuts)) if line.strip() else line)
        at = end + 1
    return "\n".join(marked_lines)
