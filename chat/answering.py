"""From a question to its answer: search, assemble, stream, cite. Knows no request and no saved row."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from itertools import takewhile

from asgiref.sync import sync_to_async
from django.db import connection
from django.utils.translation import gettext as _

from chat import conf
from chat.citations import MARKER, cited_statements
from chat.evidence import score_parts
from chat.exceptions import GenerationFailed, NoAnswer
from chat.parts import parts_of
from chat.types import AnswerEvent, Completed, Failed, Searched, Source, Token, VerifiedCitation
from chat.vectors import vectors_or_none
from retrieval.assembly import assemble
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.passages import load_neighbours
from retrieval.profiles import active_profile
from retrieval.search import search
from retrieval.types import SearchFilters, SearchMethod, Turn

logger = logging.getLogger(__name__)


async def answer(
    question: str, filters: SearchFilters, *, method: SearchMethod | None = None, history: Sequence[Turn] = ()
) -> AsyncIterator[AnswerEvent]:
    """The events of one answer: Searched, Tokens, then Completed; or Failed, at any point, as the last one.

    A follow-up question is completed from ``history``, the conversation's earlier turns, oldest first: what is searched
    and answered is in the trace.

    The texts of the tokens, joined, are the completed text, unless the model failed on the way: then `Completed` holds
    the whole replacement and says so in its notice.
    """
    try:
        searched = await sync_to_async(_search, thread_sensitive=False)(question, filters, method, history)
    except InvalidQuery as error:
        yield Failed(str(error))
        return
    except SearchUnavailable as error:
        logger.error("A question could not be searched: %s", error)
        yield Failed(str(error))
        return
    yield searched
    if not searched.sources:
        yield _refusal(conf.generator().name)
        return

    if history and searched.trace.reformulation is not None:
        # "And in winter?" says nothing to whoever answers from the sources alone.
        question = searched.trace.query
    generator = conf.generator()
    notice = ""
    pieces: list[str] = []
    try:
        async for piece in generator.stream(question, searched.sources):
            pieces.append(piece)
            yield Token(piece)
    except NoAnswer:
        yield _refusal(generator.name)
        return
    except GenerationFailed as error:
        logger.warning("%s failed, the extractive answerer takes over: %s", generator.name, error)
        generator = conf.fallback()
        notice = _("The language model did not answer. This answer is quoted from the documents instead.")
        pieces = []
        try:
            pieces = [piece async for piece in generator.stream(question, searched.sources)]
        except NoAnswer:
            yield _refusal(generator.name, notice)
            return
    text = "".join(pieces).strip()
    citations = await sync_to_async(verify, thread_sensitive=False)(text, searched.sources)
    yield Completed(text=text, citations=citations, refused=False, generator=generator.name, notice=notice)


def verify(text: str, sources: Sequence[Source]) -> tuple[VerifiedCitation, ...]:
    """For each marker of each statement, in order, the words of its source that come closest, with their exact place.

    Words that stand in the source as they stand in the answer are found as they are (support 1); else the part of the
    source that scores best against the statement is quoted, its score the support.
    """
    by_marker = {source.marker: source for source in sources}
    statements = cited_statements(text)
    citations: list[VerifiedCitation] = []
    for number, (statement, markers) in enumerate(statements):
        before = list(takewhile(lambda row: not row[1], reversed(statements[:number])))
        for marker in dict.fromkeys(markers):
            if marker not in by_marker:
                continue
            source = by_marker[marker]
            start, end, support = _closest(statement, [uncited for uncited, _ in before], source)
            quote = source.block.content[start - source.block.start : end - source.block.start]
            citations.append(VerifiedCitation(marker, source.block.passage_at(start), quote, start, end, support))
    return tuple(citations)


def _closest(statement: str, before: Sequence[str], source: Source) -> tuple[int, int, float]:
    """Start, end and support of the words that come closest to a statement.

    ``before`` holds the statements without a marker in front of it, nearest first: those that stand right before it in
    the source too (the items of a list, the paragraph above a piece of code) are part of the quotation.
    """
    block = source.block
    at = block.content.find(statement)
    if at >= 0:
        end = at + len(statement)
        for uncited in before:
            earlier = block.content.rfind(uncited, 0, at)
            if earlier < 0 or block.content[earlier + len(uncited) : at].strip():
                break
            at = earlier
        return block.start + at, block.start + end, 1.0
    parts = parts_of([source])
    if not parts:
        return block.best.start, block.best.end, 0.0
    best = score_parts(MARKER.sub("", statement), parts, vectors_or_none)[0]
    return best.part.start, best.part.end, round(min(1.0, best.score), 4)


def _search(question: str, filters: SearchFilters, method: SearchMethod | None, history: Sequence[Turn]) -> Searched:
    try:
        profile = active_profile()
        result = search(question, filters, method=method, profile=profile, history=history)
        context = assemble(
            result.hits,
            load_neighbours,
            budget_tokens=profile.settings.context_budget_tokens,
            expand=profile.settings.context_neighbours,
            blocks=profile.settings.context_blocks,
        )
    finally:
        # This thread belongs to a pool: what it leaves open stays open.
        connection.close_if_unusable_or_obsolete()
    sources = tuple(Source(marker, block) for marker, block in enumerate(context.blocks, start=1))
    return Searched(sources=sources, context=context, trace=result.trace)


def _refusal(generator: str, notice: str = "") -> Completed:
    text = _("The documents do not answer this question.")
    return Completed(text=text, citations=(), refused=True, generator=generator, notice=notice)
