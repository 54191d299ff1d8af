"""An answer checked against its sources: what its markers point at, and how far its sentences are supported."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.answering.citations import CitedSentence, Marker, cited_sentences, cited_statements, quoted
from chat.answering.support import (
    EvidencePassage,
    EvidenceSentence,
    SentenceSupport,
    Statement,
    SupportReason,
    SupportScorer,
)
from chat.answering.units import quotable_units
from chat.types import BestPlace, CheckedStatement, ContextSource, Verified, VerifiedCitation
from retrieval.infrastructure.tracing import span
from retrieval.text.language import detect_language
from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    Supports = list[SentenceSupport | None]

logger = logging.getLogger(__name__)

DIGITS = 4
_FENCED = re.compile(r"(?P<fence>`{3,})\n(?P<code>.*?)(?:\n…)?\n(?P=fence)", re.DOTALL)
_LEADING_STOP = re.compile(r"^[.,;:!?]+\s+")


@span("verification")
def verify(text: str, sources: Sequence[ContextSource], *, by_sentence: bool = False) -> Verified:
    """The words of the sources that an answer's markers mean, in order, and each of its sentences with its support.

    Words that stand in a source as they stand in the answer are found as they are (support 1). Else the sentence of the
    source that comes closest is quoted, and the support is the probability that it bears the words out. A statement is
    what asserts something that could be checked (:func:`.assertions.extract_assertion`); headings and code are none.

    Support is None for what is written in another language than the sources it rests on, where words tell nothing.

    With ``by_sentence`` each sentence has markers of its own, as :mod:`chat.answering.attribution` gives them: none
    speaks for the sentences before it. There is a statement for every sentence then; the support of one that asserts
    nothing is None.
    """
    mentions = _mentions(text, {source.marker: source for source in sources}, by_sentence)
    sentences = cited_sentences(text, spread=not by_sentence)
    scorer = SupportScorer([evidence_of(source) for source in sources])
    supports = iter(
        scorer.score_each([(each.statement, each.source.marker) for each in mentions if each.verbatim is None])
    )
    checked = scorer.score([Statement(text[each.start : each.end], each.markers) for each in sentences])
    comparable = {source.marker for source in sources if not is_foreign(source, text)}
    citations = [
        citation
        for mention in mentions
        for citation in _citations(mention, None if mention.verbatim else next(supports), comparable)
    ]
    citations.sort(key=lambda citation: citation.marker_start)
    statements = tuple(
        _checked(sentence, support, citations, comparable)
        if support is not None
        else CheckedStatement(sentence.start, sentence.end, sentence.markers)
        for sentence, support in zip(sentences, checked, strict=True)
        if support is not None or by_sentence
    )
    return Verified(tuple(citations), statements)


# Citations -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mention:
    """A statement that cites a source, by ``markers`` of the same number.

    ``verbatim`` is the statement's start and end in the document, None where it does not stand there word for word.
    """

    statement: str
    source: ContextSource
    markers: Sequence[Marker]
    verbatim: tuple[int, int] | None


def _mentions(text: str, by_marker: dict[int, ContextSource], by_sentence: bool) -> list[_Mention]:
    mentions: list[_Mention] = []
    uncited: list[str] = []
    for cited in cited_statements(text):
        # In "It is hot [1]. It is wet [2]." the first full stop is no part of what the second marker speaks for.
        statement = _LEADING_STOP.sub("", cited.text)
        if by_sentence:
            *_, (start, end, _break) = split_sentences(statement, 0, len(statement))
            statement, uncited = statement[start:end] if "```" not in statement else statement, []
        for number in dict.fromkeys(marker.number for marker in cited.markers):
            if source := by_marker.get(number):
                markers = [marker for marker in cited.markers if marker.number == number]
                mentions.append(_Mention(statement, source, markers, _find_verbatim(statement, uncited[::-1], source)))
        if cited.markers:
            uncited.clear()
        else:
            uncited.append(statement)
    return mentions


def _find_verbatim(statement: str, before: Iterable[str], source: ContextSource) -> tuple[int, int] | None:
    """Start and end of a statement that stands in a source word for word; None for one that does not.

    ``before`` holds the statements without a marker in front of it, nearest first: those that stand right before it in
    the source too (the items of a list, the paragraph above a piece of code) are part of the quotation. Numbers in
    brackets count as the same in the document's writing and in an answer's.
    """
    block = source.block
    content = quoted(block.content)
    start = content.find(quoted(statement))
    end = start + len(statement)
    if start < 0:
        if not (code := _find_code(statement, block.content)):
            return None
        start, end = code
    for uncited in before:
        earlier = content.rfind(quoted(uncited), 0, start)
        if earlier < 0 or content[earlier + len(uncited) : start].strip():
            break
        start = earlier
    return block.start + start, block.start + end


def _find_code(statement: str, content: str) -> tuple[int, int] | None:
    """Start and end of code that the answer put between fences of its own; it may be indented otherwise there."""
    fenced = _FENCED.fullmatch(statement.strip())
    lines = [line.strip() for line in fenced["code"].splitlines() if line.strip()] if fenced else []
    found = re.search(r"\s++".join(map(re.escape, lines)), content) if lines else None
    return found.span() if found else None


def _citations(
    mention: _Mention, support: SentenceSupport | None, comparable: Collection[int]
) -> Iterable[VerifiedCitation]:
    """A citation for each marker: of the statement itself, where it is verbatim, else of what comes closest to it."""
    source, block = mention.source, mention.source.block
    if mention.verbatim:
        start, end = mention.verbatim
        value: float | None = 1.0
    else:
        value = _support_value(support, source.marker in comparable)
        closest = (
            support.match.sentence if support and support.match else next(iter(quotable_units([source])), block.best)
        )
        start, end = closest.start, closest.end
    for marker in mention.markers:
        yield VerifiedCitation(
            marker=marker.number,
            passage=block.passage_at(start),
            quote=block.content[start - block.start : end - block.start],
            start=start,
            end=end,
            marker_start=marker.start,
            marker_end=marker.end,
            support=value,
            verbatim=mention.verbatim is not None,
        )


# Support -------------------------------------------------------------------------------------------------------------


def evidence_of(source: ContextSource) -> EvidencePassage:
    """A source's units, with offsets of the document; headings are read with what stands under them."""
    sentences = tuple(
        EvidenceSentence(quoted(unit.text), unit.start, unit.end, f"{unit.heading} {unit.table_head}".strip())
        for unit in quotable_units([source])
    )
    context = source.block
    title = " ".join([context.best.document_title, *dict.fromkeys(passage.section for passage in context.passages)])
    return EvidencePassage(source.marker, quoted(context.content), sentences, title)


def is_foreign(source: ContextSource, answer: str) -> bool:
    """Whether the source is in another language than the answer, as far as both are known."""
    languages = {detect_language(answer), detect_language(source.block.content)}
    return "" not in languages and len(languages) > 1


def _checked(
    sentence: CitedSentence, support: SentenceSupport, citations: Sequence[VerifiedCitation], comparable: set[int]
) -> CheckedStatement:
    match, reasons = support.match, support.reasons
    if match and any(
        each.marker == match.passage.marker and each.start <= match.sentence.start < each.end for each in citations
    ):
        # It belongs to a quotation whose marker comes further on: an item of a list that is cited at its end.
        reasons = tuple(reason for reason in reasons if reason is not SupportReason.UNCITED)
    value = _support_value(support, not sentence.markers or bool(comparable.intersection(sentence.markers)))
    return CheckedStatement(
        start=sentence.start,
        end=sentence.end,
        markers=sentence.markers,
        support=value,
        supported=None if value is None else support.supported,
        reasons=tuple(map(str, reasons)) if value is not None else (),
        best=BestPlace(match.passage.marker, match.sentence.start, match.sentence.end) if match else None,
        verbatim=support.features is None and support.supported,
    )


def _support_value(support: SentenceSupport | None, is_comparable: bool) -> float | None:
    """The support, rounded; None in another language, unless the words stand in the source as they are."""
    if support is None or not (is_comparable or support.features is None):
        return None
    return round(support.support, DIGITS)
