from __future__ import annotations

from collections.abc import Mapping

from django.utils.text import Truncator

from chat.models import Answer
from chat.pages.doubts import describe_reason
from chat.pages.plain_text import convert_to_plain_text
from chat.payload_types import SourcePayload, StatementPayload
from retrieval.passage_address import build_passage_url

PASSAGE_CHARACTERS = 220


class ShownSentence(StatementPayload):
    """A checked sentence of an answer, with explanations of the result.

    ``passage`` is the text that supports it best, and ``href`` the link to it.
    """

    text: str
    passage: str
    href: str


def describe_sentences(answer: Answer) -> tuple[ShownSentence, ...]:
    sources = {source["marker"]: source for source in answer.sources}
    return tuple(_describe_sentence(answer.text, statement, sources) for statement in answer.statements)


def _describe_sentence(text: str, statement: StatementPayload, sources: Mapping[int, SourcePayload]) -> ShownSentence:
    best = statement.get("best")
    source = sources.get(best["marker"]) if best else None
    passage = href = ""
    if best and source is not None:
        start, end = best["start"], best["end"]
        words = source["content"][max(0, start - source["start"]) : max(0, end - source["start"])]
        passage = Truncator(convert_to_plain_text(words)).chars(PASSAGE_CHARACTERS)
        href = build_passage_url(source["document"]["id"], start, end)
    return {
        **statement,
        "text": convert_to_plain_text(text[statement["start"] : statement["end"]]),
        "reasons": [describe_reason(reason) for reason in statement.get("reasons", ())],
        "passage": passage,
        "href": href,
    }
