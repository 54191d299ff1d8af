from __future__ import annotations

import re
from collections.abc import Sequence

from chat.answering.checking.citations import (
    CitationMarker,
    CitedSentence,
    blank_out_spans,
    escape_markers,
    find_cited_sentences,
    find_markers,
    group_markers,
    iterate_cited_words,
)
from chat.answering.checking.support import (
    EvidencePassage,
    EvidenceSentence,
    SentenceSupport,
    SupportScorer,
)
from chat.answering.units import find_quotable_units
from chat.types import CheckedStatement, ContextSource, SupportingRange, VerificationResult, VerifiedCitation
from core.tracing import span
from retrieval.text.language import detect_language

DIGITS = 4
_FENCED = re.compile(r"(?P<fence>`{3,})\n(?P<code>.*?)(?:\n…)?\n(?P=fence)", re.DOTALL)


@span("verification")
def verify_citations(
    text: str, sources: Sequence[ContextSource], markers: Sequence[CitationMarker] | None = None
) -> VerificationResult:
    """Return the words that each marker of an answer cites, and the support of each sentence, from 0 to 1.

    If ``markers`` is None, every ``[n]`` counts as a marker. The support is None if it cannot be measured.
    """
    markers = find_markers(text) if markers is None else markers
    by_marker = {source.marker: source for source in sources}
    comparable = {source.marker for source in sources if not is_in_other_language(source, text)}
    scorer = SupportScorer([build_evidence(source) for source in sources])
    plain = blank_out_spans(text, [(marker.start, marker.end) for marker in markers])
    return VerificationResult(
        tuple(
            _cite(marker, words, by_marker[marker.number], scorer, is_comparable=marker.number in comparable)
            for marker, words in iterate_cited_words(text, markers)
            if marker.number in by_marker
        ),
        tuple(
            _build_statement(each, scorer.score(plain[each.start : each.end], each.markers), comparable)
            for each in find_cited_sentences(text, group_markers(markers))
        ),
    )


def _cite(
    marker: CitationMarker, words: str, source: ContextSource, scorer: SupportScorer, *, is_comparable: bool
) -> VerifiedCitation:
    block = source.block
    verbatim = _find_verbatim(words, source)
    value: float | None = 1.0
    if verbatim:
        start, end = verbatim
    else:
        support = scorer.score(words, (marker.number,))
        value = _round_support_score(support, is_comparable)
        closest = (
            support.match.sentence
            if support and support.match
            else next(iter(find_quotable_units([source])), block.best)
        )
        start, end = closest.start, closest.end
    return VerifiedCitation(
        marker=marker.number,
        passage=block.passage_at(start),
        quote=block.content[start - block.start : end - block.start],
        start=start,
        end=end,
        marker_start=marker.start,
        marker_end=marker.end,
        support=value,
        verbatim=verbatim is not None,
    )


def _find_verbatim(words: str, source: ContextSource) -> tuple[int, int] | None:
    block = source.block
    start = escape_markers(block.content).find(escape_markers(words)) if words else -1
    found = (start, start + len(words)) if start >= 0 else _find_quoted_code(words, block.content)
    return (block.start + found[0], block.start + found[1]) if found else None


def _find_quoted_code(statement: str, content: str) -> tuple[int, int] | None:
    fenced = _FENCED.fullmatch(statement.strip())
    lines = [line.strip() for line in fenced["code"].splitlines() if line.strip()] if fenced else []
    found = re.search(r"\s++".join(map(re.escape, lines)), content) if lines else None
    return found.span() if found else None


def build_evidence(source: ContextSource) -> EvidencePassage:
    sentences = tuple(
        EvidenceSentence(escape_markers(unit.text), unit.start, unit.end, f"{unit.heading} {unit.table_head}".strip())
        for unit in find_quotable_units([source])
    )
    context = source.block
    title = " ".join([context.best.document_title, *dict.fromkeys(passage.section for passage in context.passages)])
    return EvidencePassage(source.marker, escape_markers(context.content), sentences, title)


def is_in_other_language(source: ContextSource, text: str) -> bool:
    """Return whether the source and the text are in different languages; False if one language is unknown."""
    languages = {detect_language(text), detect_language(source.block.content)}
    return "" not in languages and len(languages) > 1


def _build_statement(
    sentence: CitedSentence, support: SentenceSupport | None, comparable: set[int]
) -> CheckedStatement:
    place = sentence.start, sentence.end, sentence.markers
    if support is None:
        return CheckedStatement(*place)
    value = _round_support_score(support, not sentence.markers or bool(comparable.intersection(sentence.markers)))
    match = support.match
    return CheckedStatement(
        *place,
        support=value,
        supported=None if value is None else support.is_supported,
        reasons=tuple(map(str, support.reasons)) if value is not None else (),
        best=SupportingRange(match.passage.marker, match.sentence.start, match.sentence.end) if match else None,
        verbatim=support.verbatim,
    )


def _round_support_score(support: SentenceSupport | None, is_comparable: bool) -> float | None:
    if support is None or not (is_comparable or support.verbatim):
        return None
    return round(support.support, DIGITS)
