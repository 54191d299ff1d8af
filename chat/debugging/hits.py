"""Explain for each search hit of an answer that quotes documents why the page shows or hides the hit."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from operator import itemgetter

from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.debugging.candidates import highlight_snippet
from chat.models import Answer
from chat.pages.cards import describe_place
from chat.pages.plain_text import convert_to_plain_text
from chat.types import AnswerTrace
from retrieval.passage_address import build_passage_url
from retrieval.search.ranking.lexical_ranker import find_matched_spans

QUOTE_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class HitRow:
    """A passage that the search returned. ``shown`` is "answer", "card", or "" if the page does not show it."""

    rank: int
    score: float
    title: str
    where: str
    href: str
    shown: str = ""
    card: int = 0
    quote: SafeString | str = ""
    why: str = ""
    block: int | None = None


def build_hit_rows(answer: Answer, trace: AnswerTrace, readable: Container[int] | None = None) -> tuple[HitRow, ...]:
    """Return the hits of an answer or refusal, best first.

    If a language model wrote the answer, or it was computed from a table, the result is empty. Only hits with a chunk
    id in ``readable`` are returned; None means all.
    """
    if answer.generator != EXTRACTIVE or answer.computed:
        return ()
    cited = {citation.marker: citation.quote for citation in answer.citations.all()}
    cards = {each.get("chunk_id"): (number, each["quote"]) for number, each in enumerate(answer.alternatives, start=1)}
    terms = {each.chunk_id: each.matched_terms for each in trace.candidates}
    ranked = list(enumerate(sorted(answer.sources, key=itemgetter("score"), reverse=True), start=1))
    hits = [(rank, hit["chunk_id"], hit) for rank, hit in ranked if readable is None or hit["chunk_id"] in readable]
    quotes = {
        pk: Truncator(convert_to_plain_text(cited.get(source["marker"], cards.get(pk, (0, ""))[1]))).chars(
            QUOTE_CHARACTERS
        )
        for _rank, pk, source in hits
    }
    spans = find_matched_spans(quotes, terms)
    rows = []
    for rank, pk, source in hits:
        number, _quote = cards.get(pk, (0, ""))
        shown = "answer" if source["marker"] in cited else "card" if number else ""
        rows.append(
            HitRow(
                rank=rank,
                score=source["score"],
                title=source["document"]["title"],
                where=describe_place(
                    source.get("collection", ""), source["section"], source["page"], source["page_unit"]
                ),
                href=build_passage_url(source["document"]["id"], source["start"], source["end"]),
                shown=shown,
                card=number,
                quote=highlight_snippet(quotes[pk], spans.get(pk, ())),
                why=_explain_why_shown(shown, rank, is_refused=answer.refused),
                block=trace.blocks.get(str(pk)),
            )
        )
    return tuple(rows)


def _explain_why_shown(shown: str, rank: int, *, is_refused: bool) -> str:
    match shown:
        case "answer" if rank == 1:
            return _("the first hit")
        case "answer":
            return _("its heading is the question, or the hits above it would be refused alone")
        case "card" if is_refused:
            return _("one of the closest passages: none answers the question")
        case "card":
            return _("the next hit, as the lead is small")
    return _("enough is shown, or its closest place is shown already")
