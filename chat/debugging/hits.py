"""The hits of an extractive answer."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from operator import itemgetter

from django.utils.text import Truncator

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.models import Answer
from chat.pages.cards import place
from chat.pages.plain_text import plain
from retrieval.passage_address import passage_url

QUOTE_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit, shown in the "answer", on a "card" or not ("")."""

    rank: int
    score: float
    title: str
    where: str
    href: str
    shown: str = ""
    card: int = 0
    quote: str = ""


def result_rows(answer: Answer, readable: Container[int] | None = None) -> tuple[HitRow, ...]:
    """Return the hits of an extractive answer or refusal, best first.

    Other answers have none. ``readable`` limits the hits by chunk id.
    """
    if answer.generator != EXTRACTIVE or answer.computed:
        return ()
    cited = {citation.marker: citation.quote for citation in answer.citations.all()}
    cards = {each.get("chunk_id"): (number, each["quote"]) for number, each in enumerate(answer.alternatives, start=1)}
    rows = []
    for rank, source in enumerate(sorted(answer.sources, key=itemgetter("score"), reverse=True), start=1):
        if readable is not None and source["chunk_id"] not in readable:
            continue
        number, card_quote = cards.get(source["chunk_id"], (0, ""))
        quote = cited.get(source["marker"], card_quote)
        rows.append(
            HitRow(
                rank=rank,
                score=source["score"],
                title=source["document"]["title"],
                where=place(source.get("collection", ""), source["section"], source["page"], source["page_unit"]),
                href=passage_url(source["document"]["id"], source["start"], source["end"]),
                shown="answer" if source["marker"] in cited else "card" if number else "",
                card=number,
                quote=Truncator(plain(quote)).chars(QUOTE_CHARACTERS),
            )
        )
    return tuple(rows)
