"""What a server says of a request, as it may be logged and shown: not what it was sent. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# So many words in a row are a quotation; fewer are the language's own.
QUOTED_WORDS = 4
LEFT_OUT = "(it quotes the request, which is left out here)"


def without_request(said: str, body: Any) -> str:
    """``said``, or LEFT_OUT when it repeats words of ``body``, the JSON that was sent: a document's, a question's."""
    sent = " ".join(_words(" ".join(_texts(body))))
    words = _words(said)
    runs = (" ".join(words[at : at + QUOTED_WORDS]) for at in range(len(words) - QUOTED_WORDS + 1))
    return LEFT_OUT if any(run in sent for run in runs) else said


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _texts(body: Any) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list | tuple):
        for each in body.values() if isinstance(body, dict) else body:
            yield from _texts(each)
