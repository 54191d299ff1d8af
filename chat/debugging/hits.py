"""Lists the hits of a search with their use in an extractive answer."""

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
    """A hit of a search, and the place where the reader sees it.

    ``shown`` is "answer" if the answer quotes the hit, "card" if a card beside the answer shows it, else empty.
    ``card`` is the number of the card from 1, or 0. ``quote`` is the text that the answer or the card quotes.
    """

    rank: int
    score: float
    title: str
    where: str
    href: str
    shown: str = ""
    card: int = 0
    quote: str = ""


def result_rows(answer: Answer, readable: Container[int] | None = None) -> tuple[HitRow, ...]:
    """Return the hits of an extractive answer or of a refusal, best first.

    Empty if a language model wrote the answer, or if it was computed. ``readable`` limits the hits to passages with
    these ids; None returns all.
    """
    if answer.generator != EXTRACTIVE or answer.computed:
        return ()
    cited = {citation.marker: citation.quote for citation in answer.citations.all()}
    cards = {found.get("chunk_id"): (number, found) for number, found in enumerate(answer.alternatives, start=1)}
    rows = []
    for rank, source in enumerate(sorted(answer.sources, key=itemgetter("score"), reverse=True), start=1):
        if readable is not None and source["chunk_id"] not in readable:
            continue
        number, card = cards.get(source["chunk_id"], (0, {}))
        quote = cited.get(source["marker"], card.get("quote", ""))
        rows.append(
            HitRow(
                rank=rank,
                score=source["score"],
                title=source["document"]["title"],
                where=place(source.get("collection", ""), source["section"], source["page"], source["page_unit"]),
                href=passage_url(source["document"]["id"], source["start"], source["end"]),
                shown="answer" if source["marker"] in cited else "card" if card else "",
                card=number,
                quote=Truncator(plain(quote)).chars(QUOTE_CHARACTERS),
            )
        )
    return tuple(rows)
