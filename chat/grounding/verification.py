"""An answer held against its sources: where its markers point, and how far its sentences are borne out."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from chat.grounding.citations import CitedSentence, Marker, cited_sentences, cited_statements, quoted
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

    Judgements = list[Judgement | None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Mention:
    """A statement that cites a source with these markers; ``verbatim`` is its start and end in the document, None
    where it does not stand there word for word."""

    statement: str
    source: Source
    markers: Sequence[Marker]
    verbatim: tuple[int, int] | None


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
        [(mention.statement, mention.source.marker) for mention in mentions if mention.verbatim is None],
        [Statement(text[sentence.start : sentence.end], sentence.markers) for sentence in sentences],
    )
    comparable = {source.marker for source in sources if measured and not _is_foreign(source, text)}
    remaining = iter(cited)
    found = [
        citation
        for mention in mentions
        for citation in _citations(
            mention,
            *((mention.verbatim, 1.0) if mention.verbatim else _closest(mention.source, next(remaining), comparable)),
        )
    ]
    citations = tuple(sorted(found, key=attrgetter("marker_start")))
    statements = tuple(
        _checked(sentence, judgement, citations, comparable)
        for sentence, judgement in zip(sentences, judged, strict=True)
        if judgement is not None
    )
    return Verified(citations, statements, measured)


def _mentions(text: str, by_marker: dict[int, Source]) -> list[_Mention]:
    statements = cited_statements(text)
    # In "It is hot [1]. It is wet [2]." the first full stop is no part of what the second marker speaks for.
    words = [_LEADING_STOP.sub("", statement.text) for statement in statements]
    mentions: list[_Mention] = []
    uncited: list[str] = []
    for statement, said in zip(statements, words, strict=True):
        for number in dict.fromkeys(marker.number for marker in statement.markers):
            if source := by_marker.get(number):
                markers = [marker for marker in statement.markers if marker.number == number]
                mentions.append(_Mention(said, source, markers, _verbatim(said, reversed(uncited), source)))
        if statement.markers:
            uncited.clear()
        else:
            uncited.append(said)
    return mentions


def _verbatim(statement: str, before: Iterable[str], source: Source) -> tuple[int, int] | None:
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


def _closest(
    source: Source, judgement: Judgement | None, comparable: Collection[int]
) -> tuple[tuple[int, int], float | None]:
    """The place of the words that come closest to a statement that is not verbatim, and how far they support it."""
    block = source.block
    support = _measured(judgement, source.marker in comparable)
    if judgement is None or judgement.place is None:
        first = next(iter(parts_of([source])), None)
        return ((first.start, first.end) if first else (block.best.start, block.best.end)), support
    sentence = judgement.place.sentence
    return (sentence.start, sentence.end), support


def _citations(mention: _Mention, place: tuple[int, int], support: float | None) -> Iterator[VerifiedCitation]:
    block = mention.source.block
    start, end = place
    quote = block.content[start - block.start : end - block.start]
    for marker in mention.markers:
        yield VerifiedCitation(
            marker=marker.number,
            passage=block.passage_at(start),
            quote=quote,
            start=start,
            end=end,
            marker_start=marker.start,
            marker_end=marker.end,
            support=support,
        )


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
