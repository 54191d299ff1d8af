"""From a question to its answer: search, assemble, stream, cite. Knows no request and no saved row."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

from django.conf import settings
from django.utils.translation import gettext as _

from chat import conf
from chat.composing.refusals import ask_which, instruction_refusal, refusal, refuse
from chat.exceptions import AnswerWithheld, GenerationFailed, NoAnswer
from chat.grounding.places import put_in_place
from chat.grounding.verification import verify
from chat.grounding.weighing import gather_evidence
from chat.injection.detection import find_instruction
from chat.metrics import INSTRUCTIONS, MODEL_FAILURES, MODEL_WITHHELD
from chat.protocols import AnswerGenerator, ModelGenerator, PartialAnswer
from chat.questions.analysis import asks_what_it_is
from chat.streaming.threads import in_thread
from chat.tables.askable import TablesOfQuestion, find_tables
from chat.tables.computed import cite_rows, render_computed
from chat.types import (
    AnswerEvent,
    AnswerForm,
    AnswerToken,
    Completed,
    ContextSource,
    Failed,
    Searched,
    Verified,
)
from retrieval.database.replicas import read_from_replica
from retrieval.database.servers import give_connections_back
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.observability.tracing import annotate, span
from retrieval.search.assembly import assemble
from retrieval.search.passages import load_neighbours
from retrieval.search.pipeline import search
from retrieval.search.profiles import NamedProfile, profile_for
from retrieval.tables.answering import answer_from_tables
from retrieval.tables.types import Operation
from retrieval.text.language import detect_language
from retrieval.types import SearchFilters, SearchMethod, Turn

logger = logging.getLogger(__name__)


async def answer(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    history: Sequence[Turn] = (),
    draft: PartialAnswer | None = None,
    subject: str = "",
    profile: NamedProfile | None = None,
    without_model: str = "",
) -> AsyncGenerator[AnswerEvent, None]:
    """The events of one answer: Searched, Tokens, then Completed; or Failed, at any point, as the last one. Searched
    comes again where a model has asked the tables: with their rows as further sources.

    A follow-up question is completed from ``history``, the conversation's earlier turns, oldest first: what is searched
    and answered is in the trace. What reads like an instruction to the site is neither searched nor shown to a model:
    Completed comes alone, and says so. ``draft`` is kept up to date, for whoever may stop in the middle. ``subject`` is
    the visitor, for whom a search profile may be chosen; empty: the one in force. ``profile`` is searched with in place
    of either. ``without_model`` is a sentence that says why no language model is asked; empty: one may be.

    The texts of the tokens, joined, are the completed text, unless the model failed on the way: then `Completed` holds
    the whole replacement and says so in its notice.
    """
    draft = draft if draft is not None else PartialAnswer()
    if rule := await in_thread(instruction)(question):
        INSTRUCTIONS.labels(rule=rule).inc()
        logger.warning("A question that reads like an instruction to the site (%s) was not answered.", rule)
        yield Completed(text=instruction_refusal(), citations=(), refused=True, generator="", form=AnswerForm.REFUSAL)
        return
    # Nor does one that was turned away before come back as something that was said.
    if history:
        history = await in_thread(_without_instructions)(history)
    try:
        searched = await in_thread(_search)(question, filters, method, history, subject, profile)
    except InvalidQuery as error:
        yield Failed(str(error))
        return
    except SearchUnavailable as error:
        logger.error("A question could not be searched: %s", error)
        yield Failed(str(error))
        return
    reformulation = searched.trace.reformulation
    if reformulation is not None and (history or reformulation.corrected):
        # "And in winter?" says nothing to whoever answers from the sources alone, nor does a misspelt name.
        question = searched.trace.query
    evidence = await in_thread(gather_evidence)(question, searched.sources)
    answerability = evidence.answerability
    confidence = answerability.probability if searched.computed is None else searched.computed.confidence
    searched = replace(searched, confidence=round(confidence, 4))
    yield searched
    # A failed vector retriever is told as such. The question's vector may be remembered: then nobody else would tell.
    by_words = bool(evidence.scored) and not evidence.has_vectors and "vector" not in searched.trace.degraded
    notices = [_by_words_notice()] if by_words else []
    generator = conf.generator()
    if without_model and isinstance(generator, ModelGenerator):
        generator = conf.fallback()
        notices.append(without_model)
    if meant := await in_thread(ask_which)(question, filters):
        yield replace(
            refusal(generator.name, _("There are several of these: choose the one you mean."), notices), choices=meant
        )
        return
    if not searched.sources or (answerability.is_hopeless and searched.computed is None):
        yield await in_thread(refuse)(generator.name, question, evidence, filters, notices)
        return

    draft.generator = generator.name
    pieces: list[str] = []
    is_models = isinstance(generator, ModelGenerator)
    tables = None
    if is_models and settings.CHAT_MODEL_TOOLS:
        tables = await in_thread(find_tables)(question, filters, searched.sources)
    try:
        async for piece in _written(generator, question, searched, history, draft, tables):
            if tables is not None and tables.sources != searched.sources:
                searched = replace(searched, sources=tables.sources)
                yield searched
            pieces.append(piece)
            yield AnswerToken(piece)
    except NoAnswer as error:
        yield await in_thread(refuse)(generator.name, question, evidence, filters, notices, draft.usage, error.missing)
        return
    except GenerationFailed as error:
        if isinstance(error, AnswerWithheld):
            MODEL_WITHHELD.labels(reason=error.reason).inc()
            draft.withheld = error.reason
        MODEL_FAILURES.inc()
        logger.warning("%s failed, the extractive answerer takes over: %s", generator.name, error)
        generator = conf.fallback()
        notices.insert(0, _fallback_notice(draft))
        is_models = False
        pieces = []
        try:
            pieces = [piece async for piece in _written(generator, question, searched, history, draft)]
        except NoAnswer as no_answer:
            yield await in_thread(refuse)(
                generator.name, question, evidence, filters, notices, draft.usage, no_answer.missing
            )
            return
    text = "".join(pieces).strip()
    verified = await in_thread(verify)(text, searched.sources)
    if not by_words and not verified.measured and "vector" not in searched.trace.degraded:
        notices.append(_by_words_notice())
    if is_models:
        notices += _doubts(verified, draft)
    is_computed = searched.computed is not None and not is_models
    yield Completed(
        text=text,
        citations=await in_thread(put_in_place)(verified.citations),
        refused=False,
        generator=generator.name,
        notice=" ".join(notices),
        # Words cannot tell whether what was computed is right: it was computed from the rows that are cited.
        statements=() if is_computed else verified.statements,
        usage=draft.usage,
        form=AnswerForm.ANSWER if is_models or is_computed else answerability.form,
    )


def instruction(question: str) -> str:
    """The rule by which a question reads like an instruction to the site; empty for others, and when nobody checks."""
    return find_instruction(question) if settings.CHAT_INJECTION_CHECK else ""


async def _written(
    generator: AnswerGenerator,
    question: str,
    searched: Searched,
    history: Sequence[Turn],
    draft: PartialAnswer,
    tables: TablesOfQuestion | None = None,
) -> AsyncIterator[str]:
    computed = ""
    if searched.computed is not None:
        computed = render_computed(searched.computed, searched.sources, detect_language(question))
    if isinstance(generator, ModelGenerator):
        pieces = generator.compose(question, searched.sources, history, draft, computed, tables)
    elif computed:
        yield computed
        return
    else:
        pieces = generator.stream(question, searched.sources)
    async for piece in pieces:
        yield piece


def _without_instructions(history: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in history if not instruction(turn.question))


def _doubts(verified: Verified, draft: PartialAnswer) -> list[str]:
    """What a reader of a model's answer must know of it; empty for one that is whole and names its sources.

    Most sentences count as unsupported when more than half of those that could be measured are.
    """
    doubts = []
    if draft.cut_off:
        doubts.append(_("This answer was cut off: it reached the largest length or time."))
    measured = [statement.supported for statement in verified.statements if statement.supported is not None]
    if not verified.citations:
        doubts.append(_("This answer names no sources; it could not be checked."))
    elif measured.count(False) * 2 > len(measured):
        doubts.append(_("Most sentences of this answer are not supported by the sources they name."))
    return doubts


def _by_words_notice() -> str:
    return _("The embedding model did not answer: what the passages say was judged by their words alone.")


def _fallback_notice(draft: PartialAnswer) -> str:
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
        return read_from_replica(lambda: _found(question, filters, method, history, used), filters.collections)
    finally:
        # This thread belongs to a pool: what it leaves open stays open.
        give_connections_back()


def _found(
    question: str,
    filters: SearchFilters,
    method: SearchMethod | None,
    history: Sequence[Turn],
    profile: NamedProfile,
) -> Searched:
    """What is found, from one server."""
    result = search(question, filters, method=method, profile=profile, history=history)
    with span("assembly"):
        context = assemble(
            result.hits,
            load_neighbours,
            budget_tokens=profile.settings.context_budget_tokens,
            expand=profile.settings.context_neighbours,
            blocks=profile.settings.context_blocks,
        )
        annotate(blocks=len(context.blocks))
    sources = tuple(ContextSource(marker, block) for marker, block in enumerate(context.blocks, start=1))
    searched = result.trace.query
    with span("tables"):
        found = [hit.passage for hit in result.hits]
        computed = answer_from_tables(searched, filters, found, detect_language(searched))
    # "What is a lease?" asks for no list of the rows that have the word in a cell.
    if computed is not None and computed.operation is not Operation.LOOK_UP and asks_what_it_is(searched):
        computed = None
    if computed is not None:
        sources = cite_rows(computed, sources)
    return Searched(sources, context, result.trace, profile_version=profile.version_id, computed=computed)
