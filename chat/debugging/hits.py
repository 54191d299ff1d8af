"""What became of the hits of a search, for answers that quote them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from operator import itemgetter

from django.utils.text import Truncator

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.models import Answer
from chat.pages.cards import place, plain
from retrieval.passage_address import passage_url

QUOTE_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as a result. ``shown`` is "answer", "card" or empty; ``card`` is its number from 1, ``quote`` the place
    that is marked or stands on the card.
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
    """Return the hits of a quoted answer or a refusal, best first; empty if a language model wrote the answer.

    With ``readable``, only hits with these ids of passages are returned.
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
