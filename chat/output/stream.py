"""What a model writes, as it may be stored and shown. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chat.grounding.citations import MarkerStream
from chat.output.addresses import known_addresses
from chat.output.disclosure import DisclosureStream
from chat.output.links import LinkStream
from chat.output.marks import MarkStream

if TYPE_CHECKING:
    from chat.generators.prompts import Prompt
    from chat.types import Source
    from retrieval.types import Turn


class OutputStream:
    """Passes a model's text on: without the prompt's marks, with markers of known sources alone, and with links alone
    whose addresses stand in the sources that the model was given."""

    def __init__(self, prompt: Prompt, question: str, sources: Sequence[Source], history: Sequence[Turn]) -> None:
        given = [source for source in sources if source.marker in prompt.markers]
        texts = [source.block.content for source in given]
        said = [question, *(text for turn in history for text in (turn.question, turn.answer))]
        self._steps = (
            MarkStream(prompt.mark),
            DisclosureStream(prompt.secrets, [prompt.nonce], [*texts, *said]),
            MarkerStream(prompt.markers),
            LinkStream(known_addresses(given), texts),
        )

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty. Raises: AnswerWithheld."""
        for step in self._steps:
            piece = step.feed(piece)
        return piece

    def close(self) -> str:
        """What was held back, at the end of the stream. Raises: AnswerWithheld."""
        rest = ""
        for step in self._steps:
            rest = step.feed(rest) + step.close()
        return rest
