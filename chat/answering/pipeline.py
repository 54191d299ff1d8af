"""From a question to its answer: search, assemble, stream, cite. Knows no request and no saved row."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from django.db import DatabaseError
from django.utils.translation import gettext as _

from chat import conf
from chat.answering.approved_answers import find_given
from chat.answering.evidence import NEAR, Evidence, gather_evidence, nearest_unit
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.extractive import Quotation, quote
from chat.answering.injection import find_instruction
from chat.answering.model_trial import uses_functions
from chat.answering.sources import TablesOfQuestion, find_sources, find_tables, render_computed
from chat.answering.threads import in_thread
from chat.answering.verification import verify
from chat.exceptions import AnswerWithheld, GenerationFailed, NoAnswer
from chat.metrics import INSTRUCTIONS, MODEL_FAILURES, MODEL_WITHHELD
from chat.protocols import AnswerGenerator, PartialAnswer
from chat.types import (
    AnswerEvent,
    AnswerToken,
    CheckedStatement,
    Choice,
    Completed,
    ContextSource,
    Failed,
    NearPlace,
    Searched,
    Usage,
    Verified,
    VerifiedCitation,
)
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.infrastructure.database import fetch, give_connections_back
from retrieval.models import Collection
from retrieval.search.profiles import NamedProfile, profile_for
from retrieval.search.spelling import suggest
from retrieval.search.vocabulary import CollectionVocabulary
from retrieval.text.chunking import below_title, headings_at
from retrieval.text.language import detect_language
from retrieval.types import Passage, SearchFilters, SearchMethod, Turn

logger = logging.getLogger(__name__)

# What is answered to a greeting or thanks: what the site is for.

_COURTESIES = r"""
    hi | hey | hello | yo | good\s(?:morning|afternoon|evening|day) | greetings | howdy | there | all | everyone | team
    | thanks? | thank\syou | thx | many | so | very | much | a\slot | ok(?:ay)? | great | perfect | bye | goodbye
    | see\syou | cheers | hoi | hallo | hey | dag | goede(?:morgen|middag|n?avond|ndag) | bedankt
    | dank\s(?:je|u)(?:\swel)? | dankjewel | dankuwel | tot\sziens | doei | hartelijk | super | top | fijn
"""
_COURTESY = re.compile(rf"\W*(?:(?:{_COURTESIES})\b\W*){{1,5}}", re.IGNORECASE | re.VERBOSE)
MOST_NAMES = 4


def answer_greeting(message: str, filters: SearchFilters) -> Completed | None:
    """The answer to a message of greetings or thanks alone; None for others."""
    if not _COURTESY.fullmatch(message):
        return None
    names = Collection.objects.filter(pk__in=filters.collections).order_by("name").values_list("name", flat=True)
    shown = ", ".join(names[:MOST_NAMES])
    text = _("Hello! Ask a question: this site answers from its documents, and names the place.")
    if shown:
        text += " " + _("There are documents in: %(collections)s.") % {"collections": shown}
    return Completed(text, (), refused=False, generator="")


# What a reader must know of how an answer came about: the notices beside it.


def doubts_of(verified: Verified, draft: PartialAnswer) -> list[str]:
    """What a reader of a model's answer must know of it; empty for one that is whole and names its sources.

    Most sentences count as unsupported when more than half of those that could be measured are.
    """
    doubts = []
    if draft.looped:
        doubts.append(_("The language model repeated itself and was stopped."))
    if draft.cut_off:
        doubts.append(_("This answer was cut off: it reached the largest length or time."))
    measured = [statement.supported for statement in verified.statements if statement.supported is not None]
    if not verified.citations:
        doubts.append(_("No sentence of this answer was found in the documents."))
    elif measured.count(False) * 2 > len(measured):
        doubts.append(_("Most sentences of this answer are not supported by the sources they name."))
    return doubts


def by_words_notice() -> str:
    return _("The embedding model did not answer: what the passages say was judged by their words alone.")


def named_collections_notice(slugs: Sequence[str]) -> str:
    names = Collection.objects.filter(slug__in=slugs).order_by("name").values_list("name", flat=True)
    return _("The question names %(collections)s: passages from there come first.") % {"collections": ", ".join(names)}


def gave_up_notice() -> str:
    return _("The language model found no answer in these passages. This one comes nearest to the question.")


def fallback_notice(draft: PartialAnswer) -> str:
    if draft.filtered:
        return _(
            "The language model's content filter stopped its answer. This answer is quoted from the documents instead."
        )
    if draft.withheld:
        return _(
            "The language model's answer held text that it must not repeat, and was withheld. This answer is quoted "
            "from the documents instead."
        )
    return _("The language model did not answer. This answer is quoted from the documents instead.")


# Where quoted words stand: their own page and headings, not those at which their passage begins.

Quoted = TypeVar("Quoted", VerifiedCitation, NearPlace)


def put_in_place(quotations: Iterable[Quoted]) -> tuple[Quoted, ...]:
    """The quotations, each with the page and the headings of its first character. A passage may hold several short
    slides, sheets or sections, and go on over the end of a page."""
    found = tuple(quotations)
    if not found:
        return found
    try:
        rows = fetch(
            "SELECT document_id, pages, sections FROM retrieval_documenttext WHERE document_id = ANY(%s::bigint[])",
            [[each.passage.document_id for each in found]],
        )
    except DatabaseError as error:
        logger.warning("The pages of quotations were not looked up, those of their passages are shown: %s", error)
        return found
    outlines = {pk: (pages, sections) for pk, pages, sections in rows}
    return tuple(
        replace(each, passage=_at(each, *outlines[each.passage.document_id]))
        if each.passage.document_id in outlines
        else each
        for each in found
    )


def _at(quotation: Quoted, pages: list[list[int]], sections: list[tuple[int, int, str]]) -> Passage:
    passage, start = quotation.passage, quotation.start
    # Between two pages, the earlier.
    index = max(0, bisect_right(pages, start, key=lambda page: page[1]) - 1)
    return replace(
        passage,
        page=pages[index][0] if pages else None,
        heading_path=below_title(passage.document_title, headings_at(sections, start)),
    )


# Answers that say there is none: the nearest passages, and what may have been meant.

MOST_PLACES = 3


def refuse(
    generator: str,
    question: str,
    sources: Sequence[ContextSource],
    evidence: Evidence,
    filters: SearchFilters,
    notices: Sequence[str] = (),
    usage: Usage | None = None,
) -> Completed:
    """The documents do not answer: the passages that come near, and the question as it may have been meant."""
    try:
        meant = suggest(question, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        logger.warning("What a question may have meant was not looked up: %s", error)
        meant = ()
    near = put_in_place(_near_places(question, sources, evidence))
    return Completed(
        text=_("The documents do not say this. Nearest passages:")
        if near
        else _("The documents do not answer this question."),
        citations=(),
        refused=True,
        generator=generator,
        notice=" ".join(notices),
        usage=usage,
        near=near,
        choices=tuple(Choice(other, other) for other in meant),
    )


def _near_places(question: str, sources: Sequence[ContextSource], evidence: Evidence) -> Iterator[NearPlace]:
    """The nearest place of each source that is near, the nearest first; at most MOST_PLACES."""
    near = [source for source in sources if evidence.closeness.get(source.marker, 0.0) >= NEAR]
    near.sort(key=lambda source: -evidence.closeness[source.marker])
    for source in near[:MOST_PLACES]:
        if (unit := nearest_unit(question, source)) is not None:
            yield NearPlace(source.block.passage_at(unit.start), unit.text, unit.start, unit.end)


def instruction_refusal() -> str:
    return _("This reads like an instruction to the site rather than a question. Ask about the documents.")


async def answer(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    history: Sequence[Turn] = (),
    draft: PartialAnswer | None = None,
    subject: str = "",
    profile: NamedProfile | None = None,
    model: str = "",
    without_model: str = "",
) -> AsyncGenerator[AnswerEvent, None]:
    """The events of one answer: Searched, Tokens, then Completed; or Failed, at any point, as the last one. Searched
    comes again where a model has asked the tables: with their rows as further sources.

    A follow-up question is searched with the help of ``history``, the conversation's earlier turns, oldest first: the
    trace says how. What reads like an instruction to the site is neither searched nor shown to a model:
    Completed comes alone, and says so. ``draft`` is kept up to date, for whoever may stop in the middle. ``subject`` is
    the visitor, for whom a search profile may be chosen; empty: the one in force. ``profile`` is searched with in place
    of either, without approved answers. ``model`` names the language model that writes; empty: the site's default, and
    ``extractive`` quotes the documents. ``without_model`` is a sentence that says why no language model is asked;
    empty: one may be.

    The texts of the tokens, joined, are the completed text, unless the model failed on the way: then `Completed` holds
    the whole replacement and says so in its notice.
    """
    draft = draft if draft is not None else PartialAnswer()
    if ended := await _refuse_instruction(question) or await in_thread(answer_greeting)(question, filters):
        yield ended
        return
    # A run measures what the search finds.
    if profile is None and (given := await in_thread(find_given)(question, filters, history)) is not None:
        draft.generator = given.completed.generator
        yield given.searched
        for piece in given.split_text():
            yield AnswerToken(piece)
        yield given.completed
        return
    # Nor does one that was turned away before come back as something that was said.
    if history:
        history = await in_thread(_without_instructions)(history)
    searched = await _search_or_fail(question, filters, method, history, subject, profile)
    if isinstance(searched, Failed):
        yield searched
        return
    writing = await _weigh(question, filters, history, draft, searched, model, without_model)
    yield writing.searched
    if not writing.is_answerable:
        yield await _refuse(writing)
        return
    draft.generator = writing.writer
    tables = await _find_tables(writing)
    try:
        try:
            async for piece in _written(writing, tables):
                if tables is not None and tables.sources != writing.searched.sources:
                    writing.searched = replace(writing.searched, sources=tables.sources)
                    yield writing.searched
                writing.pieces.append(piece)
                yield AnswerToken(piece)
        except GenerationFailed as error:
            await _fall_back(writing, error)
        except NoAnswer as error:
            if writing.generator is None or not writing.evidence.is_answerable:
                raise
            await _fall_back(writing, error)
    except NoAnswer:
        yield await _refuse(writing)
        return
    yield await _complete(writing)


@dataclass(slots=True)
class _Writing:
    """One answer, from its search on. ``question`` is complete in itself. ``pieces`` is the text so far. Without a
    ``generator`` the documents are quoted; ``quotation`` is what was.
    """

    question: str
    filters: SearchFilters
    history: Sequence[Turn]
    draft: PartialAnswer
    searched: Searched
    evidence: Evidence
    generator: AnswerGenerator | None
    notices: list[str]
    pieces: list[str] = field(default_factory=list)
    quotation: Quotation | None = None

    @property
    def is_answerable(self) -> bool:
        """Whether anybody writes. A model that may refuse is asked unless there is nothing to answer from."""
        if self.searched.computed is not None or not self.searched.sources:
            return self.searched.computed is not None
        # Words alone say little of whether the sources answer: a model may find more in them.
        asks_model = self.generator is not None and (self.generator.may_refuse or self.evidence.by_words)
        return not self.evidence.is_hopeless if asks_model else self.evidence.is_answerable

    @property
    def writer(self) -> str:
        """The name of who writes."""
        return self.generator.name if self.generator is not None else EXTRACTIVE


async def _refuse_instruction(question: str) -> Completed | None:
    """The refusal of a question that reads like an instruction to the site; None for others."""
    rule = await in_thread(instruction)(question)
    if not rule:
        return None
    INSTRUCTIONS.labels(rule=rule).inc()
    logger.warning("A question that reads like an instruction to the site (%s) was not answered.", rule)
    return Completed(text=instruction_refusal(), citations=(), refused=True, generator="")


async def _search_or_fail(
    question: str,
    filters: SearchFilters,
    method: SearchMethod | None,
    history: Sequence[Turn],
    subject: str,
    profile: NamedProfile | None,
) -> Searched | Failed:
    try:
        return await in_thread(_search)(question, filters, method, history, subject, profile)
    except InvalidQuery as error:
        return Failed(str(error))
    except SearchUnavailable as error:
        logger.error("A question could not be searched: %s", error)
        return Failed(str(error))


async def _weigh(
    question: str,
    filters: SearchFilters,
    history: Sequence[Turn],
    draft: PartialAnswer,
    searched: Searched,
    model: str,
    without_model: str,
) -> _Writing:
    """What the sources hold on the question, how sure it is that they answer it, and who writes."""
    reformulation = searched.trace.reformulation
    if reformulation is not None and (history or reformulation.corrected):
        # A follow-up as a model rewrote it, and a question as its spelling was put right.
        question = searched.trace.best_query
    evidence = await in_thread(gather_evidence)(searched.trace, searched.sources)
    confidence = evidence.probability if searched.computed is None else searched.computed.confidence
    searched = replace(searched, confidence=round(confidence, 4), evidence=evidence.features)
    # A failed vector retriever is announced as such.
    by_words = bool(searched.sources) and evidence.by_words and "vector" not in searched.trace.degraded
    notices = [by_words_notice()] if by_words else []
    if searched.trace.named_collections:
        notices.append(await in_thread(named_collections_notice)(searched.trace.named_collections))
    # What was computed over a table is right as it stands: no model retells it.
    generator = None
    if searched.computed is None:
        try:
            generator = await in_thread(conf.generator)(model)
        except GenerationFailed as error:
            MODEL_FAILURES.inc()
            logger.warning("The documents are quoted: %s", error)
            notices.append(fallback_notice(draft))
    if without_model and generator is not None:
        generator = None
        notices.append(without_model)
    return _Writing(question, filters, history, draft, searched, evidence, generator, notices)


async def _refuse(writing: _Writing) -> Completed:
    return await in_thread(refuse)(
        writing.writer,
        writing.question,
        writing.searched.sources,
        writing.evidence,
        writing.filters,
        writing.notices,
        writing.draft.usage,
    )


async def _find_tables(writing: _Writing) -> TablesOfQuestion | None:
    """The tables that the model may ask; None where none of the passages' tables may answer, nobody asks, or the model
    was not seen to use functions rightly."""
    if writing.generator is None:
        return None
    tables = await in_thread(find_tables)(writing.question, writing.filters, writing.searched.sources)
    return tables if tables is not None and await in_thread(uses_functions)(writing.generator.name) else None


async def _fall_back(writing: _Writing, error: GenerationFailed | NoAnswer) -> None:
    """The whole answer by the extractive answerer, in place of what the model wrote. Raises: NoAnswer."""
    if isinstance(error, AnswerWithheld):
        MODEL_WITHHELD.labels(reason=error.reason).inc()
        writing.draft.withheld = error.reason
    MODEL_FAILURES.inc()
    gave_up = isinstance(error, NoAnswer)
    reason = "it found no answer in them" if gave_up else error
    logger.warning("%s failed, the documents are quoted instead: %s", writing.writer, reason)
    writing.generator = None
    writing.notices.insert(0, gave_up_notice() if gave_up else fallback_notice(writing.draft))
    writing.pieces = [piece async for piece in _written(writing)]


async def _complete(writing: _Writing) -> Completed:
    """The answer as it was written, its citations verified and its sentences checked."""
    searched = writing.searched
    text = "".join(writing.pieces).strip()
    statements: tuple[CheckedStatement, ...] = ()
    if writing.quotation is not None:
        # What is quoted stands in the documents word for word: there is nothing to verify.
        citations = writing.quotation.citations
    else:
        verified = await in_thread(verify)(text, searched.sources, by_sentence=writing.generator is not None)
        citations = verified.citations
        # Words cannot tell whether what was computed is right: it was computed from the rows that are cited.
        statements = () if writing.generator is None else verified.statements
        if writing.generator is not None:
            writing.notices += doubts_of(verified, writing.draft)
    return Completed(
        text=text,
        citations=await in_thread(put_in_place)(citations),
        refused=False,
        generator=writing.writer,
        notice=" ".join(writing.notices),
        statements=statements,
        usage=writing.draft.usage,
    )


def instruction(question: str) -> str:
    """The rule by which a question reads like an instruction to the site; empty for others."""
    return find_instruction(question)


async def _written(writing: _Writing, tables: TablesOfQuestion | None = None) -> AsyncIterator[str]:
    question, searched = writing.question, writing.searched
    if writing.generator is not None:
        pieces = writing.generator.compose(question, searched.sources, writing.history, writing.draft, tables)
        async for piece in pieces:
            yield piece
    elif searched.computed is not None:
        yield render_computed(searched.computed, searched.sources, detect_language(question))
    else:
        writing.quotation = await in_thread(quote)(question, searched.sources, writing.evidence)
        yield writing.quotation.text


def _without_instructions(history: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in history if not instruction(turn.question))


def _search(
    question: str,
    filters: SearchFilters,
    method: SearchMethod | None,
    history: Sequence[Turn],
    subject: str,
    profile: NamedProfile | None,
) -> Searched:
    try:
        used = profile if profile is not None else profile_for(subject)
        return find_sources(question, filters, method, history, used)
    finally:
        # This thread belongs to a pool: what it leaves open stays open.
        give_connections_back()
