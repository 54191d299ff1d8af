"""The questions of a set, and their expected passages in the current documents."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage, RunKind
from evaluation.statistics import Expectation
from retrieval.models import Chunk, Document, DocumentText

# Of the quoted words or of the passage, whichever is shorter, so much must lie in the other.
LEAST_SHARE = 0.5


def measured_questions(evaluation_set: EvaluationSet, kind: str = RunKind.SEARCH) -> list[EvaluationQuestion]:
    """What a run of this kind asks, in the order of its making, with the expected passages."""
    return list(evaluation_set.questions.measurable(kind).prefetch_related("expected_passages").order_by("pk"))


def fingerprint(questions: Iterable[EvaluationQuestion], kind: str = RunKind.SEARCH) -> str:
    """A hash that is the same for the same questions with the same expectations of this kind, and for no others."""
    described = [[question.pk, question.text, *_expectations(question, kind)] for question in questions]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _expectations(question: EvaluationQuestion, kind: str) -> list[Any]:
    if kind == RunKind.ANSWERS:
        return [question.expected_answer, question.expects_refusal, question.must, question.must_not, question.longest]
    passages = question.expected_passages.all()
    return [sorted((one.source, one.quote, one.content_hash, one.grade) for one in passages)]


def resolve(collection_id: int, expected: Sequence[ExpectedPassage]) -> dict[int, Expectation]:
    """Each expected passage among the collection's chunks, by its id, in the order given.

    A passage is known by its hash; where no chunk of the document has it any more, by its words, wherever the document
    holds them now, however they are cut.
    """
    sources = {one.source for one in expected}
    documents = dict(Document.objects.filter(collection=collection_id, source__in=sources).values_list("source", "pk"))
    by_hash: dict[tuple[int, str], set[int]] = {}
    hashes = {one.content_hash for one in expected if one.content_hash}
    for chunk, document, content_hash in Chunk.objects.filter(
        document__in=documents.values(), content_hash__in=hashes
    ).values_list("pk", "document_id", "content_hash"):
        by_hash.setdefault((document, content_hash), set()).add(chunk)
    found: dict[int, Expectation] = {}
    by_words: dict[int, list[ExpectedPassage]] = {}
    for one in expected:
        at = documents.get(one.source)
        if at is not None and one.quote and not (chunks := by_hash.get((at, one.content_hash))):
            by_words.setdefault(at, []).append(one)
        else:
            chunks = by_hash.get((at, one.content_hash), set()) if at is not None and one.quote else set()
            found[one.pk] = Expectation(one.pk, one.grade, at, frozenset(chunks), whole=not one.quote)
    for at, passages in by_words.items():
        located = _locate(at, {one.pk: one.quote for one in passages})
        found |= {one.pk: Expectation(one.pk, one.grade, at, located[one.pk]) for one in passages}
    return {one.pk: found[one.pk] for one in expected}


def _locate(document_id: int, quotes: Mapping[int, str]) -> dict[int, frozenset[int]]:
    """The document's chunks that hold each of the quoted words; none where it does not hold them."""
    text = DocumentText.objects.filter(pk=document_id).values_list("text", flat=True).first() or ""
    places = list(Chunk.objects.filter(document=document_id).values_list("pk", "start", "end"))
    return {
        key: frozenset(
            chunk
            for first, last in _spans(quote, text)
            for chunk, start, end in places
            if min(end, last) - max(start, first) >= max(1, LEAST_SHARE * min(end - start, last - first))
        )
        for key, quote in quotes.items()
    }


def _spans(quote: str, text: str) -> list[tuple[int, int]]:
    """Where the text holds these words, however they are spaced."""
    words = quote.split()
    if not words:
        return []
    return [match.span() for match in re.finditer(r"\s++".join(map(re.escape, words)), text)]
