"""An answer held against its sources: where its markers point, and how far its sentences are borne out."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from chat.grounding.citations import CitedSentence, cited_sentences, cited_statements, quoted
from chat.grounding.evidence.parts import parts_of
from chat.grounding.support.passages import EvidencePassage, EvidenceSentence
from chat.grounding.support.scorer import Judgement, Statement, SupportScorer
from chat.grounding.support.scoring import Reason
from chat.types import CheckedStatement, Source, Verified, VerifiedCitation
from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.protocols import TokenEmbedder
from retrieval.text.language import detect_language

if TYPE_CHECKING:
    from chat.grounding.support.similarity import EncodeAll

    # A statement that cites a source, and the start and end of its words there where it stands word for word.
    Mention = tuple[str, Source, tuple[int, int] | None]
    Judgements = list[Judgement | None]

logger = logging.getLogger(__name__)

DIGITS = 4
_LEADING_STOP = re.compile(r"^[.,;:!?]+\s+")


def verify(text: str, sources: Sequence[Source]) -> Verified:
    """The words of the sources that an answer's markers mean, in order, and each of its sentences with its support.

    Words that stand in a source as they stand in the answer are found as they are (support 1). Else the sentence of the
    source that comes closest is quoted, and the support is the probability that it bears the words out. What claims
    nothing that could be checked is no statement (:func:`.support.claims.claim_of`); so are headings and code.

    Support is None while the embedder does not answer, with a warning in the log, and for what is written in another
    language than the sources it rests on, where words tell nothing.
    """
    mentions = _mentions(text, {source.marker: source for source in sources})
    sentences = cited_sentences(text)
    cited, judged, measured = _judgements(
        [_evidence(source) for source in sources],
        [(statement, source.marker) for statement, source, place in mentions if place is None],
        [Statement(text[sentence.start : sentence.end], sentence.markers) for sentence in sentences],
    )
    comparable = {source.marker for source in sources if measured and not _is_foreign(source, text)}
    remaining = iter(cited)
    citations = tuple(
        _citation(source, *place, 1.0) if place else _closest(source, next(remaining), source.marker in comparable)
        for _, source, place in mentions
    )
    statements = tuple(
        _checked(sentence, judgement, citations, comparable)
        for sentence, judgement in zip(sentences, judged, strict=True)
        if judgement is not None
    )
    return Verified(citations, statements, measured)


def _mentions(text: str, by_marker: dict[int, Source]) -> list[Mention]:
    # In "It is hot [1]. It is wet [2]." the first full stop is no part of what the second marker speaks for.
    statements = [(_LEADING_STOP.sub("", statement), markers) for statement, markers in cited_statements(text)]
    mentions: list[Mention] = []
    for number, (statement, markers) in enumerate(statements):
        before = [uncited for uncited, _ in takewhile(lambda row: not row[1], reversed(statements[:number]))]
        for marker in dict.fromkeys(markers):
            if source := by_marker.get(marker):
                mentions.append((statement, source, _verbatim(statement, before, source)))
    return mentions


def _verbatim(statement: str, before: Sequence[str], source: Source) -> tuple[int, int] | None:
    """Start and end of a statement that stands in a source word for word; None for one that does not.

    ``before`` holds the statements without a marker in front of it, nearest first: those that stand right before it in
    the source too (the items of a list, the paragraph above a piece of code) are part of the quotation. Numbers in
    brackets count as the same in the document's writing and in an answer's.
    """
    block = source.block
    content = quoted(block.content)
    at = content.find(quoted(statement))
    if at < 0:
        return None
    end = at + len(statement)
    for uncited in before:
        earlier = content.rfind(quoted(uncited), 0, at)
        if earlier < 0 or content[earlier + len(uncited) : at].strip():
            break
        at = earlier
    return block.start + at, block.start + end


def _judgements(
    passages: Sequence[EvidencePassage], cited: Sequence[tuple[str, int]], sentences: Sequence[Statement]
) -> tuple[Judgements, Judgements, bool]:
    """What is said of the citations and of the sentences, and whether the embedder took part as it should."""

    def by(encode: EncodeAll | None) -> tuple[Judgements, Judgements]:
        scorer = SupportScorer(passages, encode)
        return scorer.judge_each(cited), scorer.judge(sentences)

    embedder = conf.embedder()
    try:
        return *by(embedder.encode if isinstance(embedder, TokenEmbedder) else None), True
    except RetrievalError as error:
        logger.warning("The support of an answer was not measured, because the embedder does not answer: %s", error)
        return *by(None), False


def _evidence(source: Source) -> EvidencePassage:
    """A source's parts, with offsets of the document; headings are read with what stands under them."""
    sentences = tuple(
        EvidenceSentence(quoted(part.text), part.start, part.end, f"{part.heading} {part.lead}".strip())
        for part in parts_of([source])
    )
    block = source.block
    title = " ".join([block.best.document_title, *dict.fromkeys(passage.section for passage in block.passages)])
    return EvidencePassage(source.marker, quoted(block.content), sentences, title)


def _is_foreign(source: Source, answer: str) -> bool:
    spoken, written = detect_language(answer), detect_language(source.block.content)
    return bool(spoken and written and spoken != written)


def _closest(source: Source, judgement: Judgement | None, comparable: bool) -> VerifiedCitation:
    """The citation of words that do not stand in their source as they are."""
    block = source.block
    if judgement is None or judgement.place is None:
        first = next(iter(parts_of([source])), None)
        start, end = (first.start, first.end) if first else (block.best.start, block.best.end)
        return _citation(source, start, end, _measured(judgement, comparable))
    sentence = judgement.place.sentence
    return _citation(source, sentence.start, sentence.end, _measured(judgement, comparable))


def _citation(source: Source, start: int, end: int, support: float | None) -> VerifiedCitation:
    block = source.block
    quote = block.content[start - block.start : end - block.start]
    return VerifiedCitation(source.marker, block.passage_at(start), quote, start, end, support)


def _checked(
    sentence: CitedSentence, judgement: Judgement, citations: Sequence[VerifiedCitation], comparable: set[int]
) -> CheckedStatement:
    place = judgement.place
    reasons = judgement.reasons
    if place and any(
        each.marker == place.passage.marker and each.start <= place.sentence.start < each.end for each in citations
    ):
        # It belongs to a quotation whose marker comes further on: an item of a list that is cited at its end.
        reasons = tuple(reason for reason in reasons if reason is not Reason.UNCITED)
    support = _measured(judgement, not sentence.markers or bool(comparable.intersection(sentence.markers)))
    return CheckedStatement(
        start=sentence.start,
        end=sentence.end,
        markers=sentence.markers,
        support=support,
        supported=None if support is None else judgement.supported,
        reasons=tuple(map(str, reasons)) if support is not None else (),
        best_marker=place.passage.marker if place else None,
        best_start=place.sentence.start if place else None,
        best_end=place.sentence.end if place else None,
    )


def _measured(judgement: Judgement | None, comparable: bool) -> float | None:
    """The support, rounded; None where it could not be measured, unless the words stand in the source as they are."""
    if judgement is None or not (comparable or judgement.features is None):
        return None
    return round(judgement.support, DIGITS)
