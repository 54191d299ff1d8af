from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage, RunKind
from evaluation.statistics import ExpectedPassageChunks
from retrieval.models import Chunk, Document, DocumentText

# A chunk contains a quote if they share at least this part of the shorter one.
LEAST_SHARE = 0.5


def list_measured_questions(evaluation_set: EvaluationSet, kind: str = RunKind.SEARCH) -> list[EvaluationQuestion]:
    return list(evaluation_set.questions.measurable(kind).prefetch_related("expected_passages").order_by("pk"))


def hash_questions(questions: Iterable[EvaluationQuestion], kind: str = RunKind.SEARCH) -> str:
    """Return a hash of the questions, with those expectations that a run of this kind uses."""
    described = [[question.pk, question.text, *_describe_expectations(question, kind)] for question in questions]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _describe_expectations(question: EvaluationQuestion, kind: str) -> list[Any]:
    if kind == RunKind.ANSWERS:
        return [question.expected_answer, question.expects_refusal, question.must, question.must_not, question.longest]
    passages = question.expected_passages.all()
    return [sorted((one.source, one.quote, one.content_hash, one.grade) for one in passages)]


def find_expected_chunks(collection_id: int, expected: Sequence[ExpectedPassage]) -> dict[int, ExpectedPassageChunks]:
    """Return which chunks of the collection contain each expected passage, by the passage's id."""
    sources = {one.source for one in expected}
    documents = dict(Document.objects.filter(collection=collection_id, source__in=sources).values_list("source", "pk"))
    quotes: dict[int, dict[int, str]] = {}
    for one in expected:
        if one.quote and one.source in documents:
            quotes.setdefault(documents[one.source], {})[one.pk] = one.quote
    chunks: dict[int, frozenset[int]] = {}
    for document_id, quoted in quotes.items():
        chunks |= _locate(document_id, quoted)
    return {
        one.pk: ExpectedPassageChunks(
            one.pk, one.grade, documents.get(one.source), chunks.get(one.pk, frozenset()), whole=not one.quote
        )
        for one in expected
    }


def _locate(document_id: int, quotes: Mapping[int, str]) -> dict[int, frozenset[int]]:
    text = DocumentText.objects.filter(pk=document_id).values_list("text", flat=True).first() or ""
    places = list(Chunk.objects.filter(document=document_id).values_list("pk", "start", "end"))
    return {
        key: frozenset(
            chunk
            for first, last in _find_spans(quote, text)
            for chunk, start, end in places
            if min(end, last) - max(start, first) >= max(1, LEAST_SHARE * min(end - start, last - first))
        )
        for key, quote in quotes.items()
    }


def _find_spans(quote: str, text: str) -> list[tuple[int, int]]:
    words = quote.split()
    if not words:
        return []
    return [match.span() for match in re.finditer(r"\s++".join(map(re.escape, words)), text)]
