"""What a generator of answers must do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chat.types import Source


class AnswerGenerator(Protocol):
    """Writes an answer from numbered sources."""

    name: str

    def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """Pieces of the answer, with ``[n]`` behind what source n says.

        Raises: NoAnswer when the sources do not answer the question, GenerationFailed when there will be no (more)
        text. Closing the iterator stops the work.
        """
