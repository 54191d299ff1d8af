"""Removes the marks of the prompt (retrieval.language_models.marking) that a model copied. PURE."""

from __future__ import annotations

from collections.abc import Iterable


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
