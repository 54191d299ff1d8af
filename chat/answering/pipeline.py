"""Answer a question: search, select sources, write, cite. This works without a request or a saved row."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.answering import writers
from chat.answering.approved_answers import find_approved_answer, split_text
from chat.answering.checking.citations import CitationMarker
from chat.answering.checking.verification import verify_citations
from chat.answering.evidence import Evidence, estimate_evidence, find_unknown_names
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.extractive import quote_documents
from chat.answering.greetings import answer_greeting
from chat.answering.injection import RULE_NAMES, find_injection_rule
from chat.answering.model_trial import can_call_functions
from chat.answering.notices import describe_fallback, find_doubts_of_answer
from chat.answering.openai_compatible import OpenAICompatibleGenerator
from chat.answering.quotation_places import locate_quotations
from chat.answering.refusal import build_refusal
from chat.answering.sources import find_rows_named_in_question, find_sources, find_tables, render_computed_text
from chat.exceptions import AnswerWithheld, NoAnswerFound
from chat.metrics import INSTRUCTIONS, MODEL_FAILURES, MODEL_WITHHELD
from chat.models.instructions import list_instructions
from chat.types import (
    AlternativePassage,
    AnswerDraft,
    AnswerEvent,
    AnswerState,
    AnswerToken,
    CompletedEvent,
    FailedEvent,
    TokensWithdrawnEvent,
    VerificationResult,
)
from core.exceptions import ModelFailed
from core.metrics import start_at_zero
from core.threads import in_thread
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.index.closeness import find_current_calibration
from retrieval.models import Collection
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.text.language import detect_language
from retrieval.types import SearchFilters, SearchMethod, TriedQuestions, Turn

logger = logging.getLogger(__name__)
start_at_zero(INSTRUCTIONS, RULE_NAMES)


async def answer_question(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    history: Sequence[Turn] = (),
    subject: str = "",
    profile: NamedProfile | None = None,
    model: str = "",
    without_model: str = "",
    instructions: str | None = None,
    tried: TriedQuestions | None = None,
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of one answer: AnswerDraft, AnswerTokens, then CompletedEvent.

    At any point, FailedEvent can come as the last. The joined tokens are the completed text, unless
    the model failed: then CompletedEvent contains a replacement.

    - ``history``: earlier turns of the conversation, oldest first.
    - ``subject``: the visitor, for whom an experiment may choose a search profile. Empty: the published profile.
    - ``profile``: use this search profile, and no approved answers.
    - ``model``: name of the language model, or ``extractive`` to quote documents. Empty: the site's default.
    - ``without_model``: if not empty, use no language model, and show this reason to the reader.
    - ``instructions``: curators' instructions to the model. None: the active ones.
    - ``tried``: for a trial, questions by chunk id, as if curators had stored them with these passages.
    """
    # A given profile means that the search is measured, so approved answers are skipped.
    if at_once := await in_thread(_answer_without_search, question, filters, history, use_approved=profile is None):
        approved, completed = at_once
        if approved is not None:
            yield approved
            for piece in split_text(completed.text):
                yield AnswerToken(piece)
        yield completed
        return

    def search_sources() -> _SearchOutcome:
        # An instruction that was refused earlier must not reach the model as part of the conversation.
        turns = [turn for turn in history if not find_injection_rule(turn.question)]
        draft = find_sources(question, filters, method, turns, subject, profile, tried)
        evidence = _estimate_confidence(draft, is_follow_up=bool(turns))
        return _SearchOutcome(draft, evidence, _choose_generator(draft, model, without_model, instructions), turns)

    try:
        found = await in_thread(search_sources)
    except (InvalidQuery, SearchUnavailable) as error:
        if isinstance(error, SearchUnavailable):
            logger.error("A question could not be searched: %s", error)
        yield FailedEvent(str(error))
        return
    draft, evidence, generator = found.draft, found.evidence, found.generator
    yield draft
    if not _is_answerable(draft, evidence, generator):
        yield await in_thread(build_refusal, draft, evidence, filters)
        return
    try:
        if generator is not None:
            try:
                async for event in _ask_model(generator, draft, filters, found.history):
                    yield event
                return
            except (ModelFailed, NoAnswerFound) as error:
                if isinstance(error, NoAnswerFound) and not evidence.is_answerable:
                    raise
                _note_failure(draft, error)
        sources = draft.sources
        completed = await in_thread(_answer_with_quotation, draft, evidence)
        if draft.sources is not sources:
            yield draft
        if generator is None:
            yield AnswerToken(completed.text)
        yield completed
    except NoAnswerFound:
        yield await in_thread(build_refusal, draft, evidence, filters)


def _answer_without_search(
    question: str, filters: SearchFilters, history: Sequence[Turn], *, use_approved: bool
) -> tuple[AnswerDraft | None, CompletedEvent] | None:
    """Return a draft and the answer if no search is needed; otherwise None.

    Only approved answers have a draft. For instructions and greetings, the draft is None.
    """
    if rule := find_injection_rule(question):
        INSTRUCTIONS.labels(rule=rule).inc()
        logger.warning("A question that reads like an instruction to the site (%s) was not answered.", rule)
        text = _("This reads like an instruction to the site rather than a question. Ask about the documents.")
        return None, CompletedEvent(text, (), generator="", state=AnswerState.NOTHING)
    if greeting := answer_greeting(question, filters):
        return None, greeting
    return find_approved_answer(question, filters, history) if use_approved else None


@dataclass(frozen=True, slots=True)
class _SearchOutcome:
    """The state of an answer after the search.

    ``generator`` is the language model that writes the answer; if it is None, the answer quotes documents.
    ``history`` does not contain turns whose questions try to give the site instructions.
    """

    draft: AnswerDraft
    evidence: Evidence
    generator: OpenAICompatibleGenerator | None
    history: Sequence[Turn]


def _estimate_confidence(draft: AnswerDraft, *, is_follow_up: bool) -> Evidence:
    reformulation = draft.trace.reformulation
    if reformulation is not None and (is_follow_up or reformulation.corrected):
        # The search used a rewritten follow-up question, which needs no earlier questions, or corrected spelling.
        draft.question = draft.trace.best_query
    evidence = estimate_evidence(draft.trace, draft.results, find_current_calibration())
    confidence = evidence.probability
    if draft.computed is not None:
        confidence = 1.0 if draft.computed.is_computed else 0.8
    draft.confidence, draft.evidence = round(confidence, 4), evidence.features
    if draft.results and evidence.by_words and "vector" not in draft.trace.degraded:
        draft.notices.append(
            _("The embedding model did not answer, so words alone decided whether the passages answer the question.")
        )
    if unknown := find_unknown_names(draft.trace, draft.results):
        draft.notices.append(_("The documents do not mention %(names)s.") % {"names": ", ".join(unknown)})
    if draft.trace.named_collections:
        named = Collection.objects.filter(slug__in=draft.trace.named_collections).order_by("name")
        names = ", ".join(named.values_list("name", flat=True))
        draft.notices.append(
            _("The question names %(collections)s: passages from there come first.") % {"collections": names}
        )
    return evidence


def _choose_generator(
    draft: AnswerDraft, model: str, without_model: str, instructions: str | None
) -> OpenAICompatibleGenerator | None:
    """Return the language model that writes the answer; None if documents are quoted. Set the draft's writer."""
    generator = None
    # The value of a computed result is exact, so no model may rewrite it.
    if draft.computed is None:
        try:
            generator = writers.find_generator(model)
        except ModelFailed as error:
            MODEL_FAILURES.inc()
            logger.warning("The documents are quoted: %s", error)
            draft.notices.append(describe_fallback(draft))
    if without_model and generator is not None:
        generator = None
        draft.notices.append(without_model)
    if generator is None and draft.computed is None:
        draft.sources = draft.results
    draft.generator = generator.name if generator is not None else EXTRACTIVE
    slugs = {source.block.best.collection for source in draft.sources}
    if instructions is not None:
        draft.instructions = instructions
    elif generator is not None and len(slugs) == 1 and (found := list_instructions(slugs=slugs)):
        draft.instructions, draft.instructions_version = found[0].text, str(found[0])
    return generator


def _is_answerable(draft: AnswerDraft, evidence: Evidence, generator: OpenAICompatibleGenerator | None) -> bool:
    if draft.computed is not None or not draft.sources:
        return draft.computed is not None
    # Without vectors the evidence is weak, so a model is asked.
    asks_model = generator is not None and (generator.may_refuse or evidence.by_words)
    return not evidence.is_hopeless if asks_model else evidence.is_answerable


async def _ask_model(
    generator: OpenAICompatibleGenerator, draft: AnswerDraft, filters: SearchFilters, history: Sequence[Turn]
) -> AsyncGenerator[AnswerEvent, None]:
    tables = await in_thread(find_tables, draft.question, filters, draft.sources)
    if tables is not None and not await in_thread(can_call_functions, generator.name):
        tables = None
    text = ""
    markers: list[CitationMarker] = []
    async for token in generator.compose(draft, history, tables):
        if isinstance(token, TokensWithdrawnEvent):
            text, markers = "", []
            yield token
            yield draft
            continue
        if tables is not None and tables.sources != draft.sources:
            draft.sources = tables.sources
            yield draft
        markers += [marker.shift_by(len(text)) for marker in token.markers or ()]
        text += token.text
        yield token
    verified = await in_thread(verify_citations, text, draft.sources, markers)
    draft.notices += find_doubts_of_answer(verified, draft)
    yield await in_thread(_complete_answer, draft, text, verified)


def _note_failure(draft: AnswerDraft, error: ModelFailed | NoAnswerFound) -> None:
    if isinstance(error, AnswerWithheld):
        MODEL_WITHHELD.labels(reason=error.reason).inc()
        draft.withheld = error.reason
    MODEL_FAILURES.inc()
    gave_up = isinstance(error, NoAnswerFound)
    reason = "it found no answer in them" if gave_up else error
    logger.warning("%s failed, the documents are quoted instead: %s", draft.generator, reason)
    draft.generator = EXTRACTIVE
    draft.notices.insert(
        0,
        _("The language model found no answer in these passages. This one comes nearest to the question.")
        if gave_up
        else describe_fallback(draft),
    )


def _answer_with_quotation(draft: AnswerDraft, evidence: Evidence) -> CompletedEvent:
    """Return the answer that quotes a document, or that was computed over a table. Raises: NoAnswerFound.

    Table rows that fit the question may become the draft's sources.
    """
    if draft.computed is None:
        # A model gets blocks merged from several results; a quotation needs each result by itself.
        draft.sources = draft.results
        quotation = quote_documents(draft.question, draft.results, evidence)
        rows = find_rows_named_in_question(draft, quotation.citations[0].passage) if quotation.is_row else None
        if rows is None:
            return _complete_answer(
                draft, quotation.text.strip(), VerificationResult(quotation.citations), quotation.alternatives
            )
        draft.computed, draft.sources = rows
    text = render_computed_text(draft.computed, draft.sources, detect_language(draft.question)).strip()
    # Only the citations are checked, because comparing words cannot show whether a computed value is right.
    return _complete_answer(draft, text, VerificationResult(verify_citations(text, draft.sources).citations))


def _complete_answer(
    draft: AnswerDraft, text: str, verified: VerificationResult, alternatives: Sequence[AlternativePassage] = ()
) -> CompletedEvent:
    return CompletedEvent(
        text=text,
        citations=locate_quotations(verified.citations),
        generator=draft.generator,
        notice=" ".join(draft.notices),
        statements=verified.statements,
        usage=draft.usage,
        alternatives=locate_quotations(alternatives),
    )
