"""A search run: are the expected passages found, and at what ranks?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from evaluation.models import EvaluationQuestion, QuestionResult
from evaluation.runs.measurement import RunInput, Unmeasurable, require_whole
from evaluation.runs.measures import measure_of
from evaluation.sets.resolution import resolve
from evaluation.sets.scoring import judged_ranking
from evaluation.statistics.ranking import METRICS, TOP_K
from retrieval.exceptions import InvalidQuery
from retrieval.search.pipeline import search
from retrieval.search.trace import SearchResult

QUOTE_CHARACTERS = 200


class SearchMeasurement:
    """Implements ``Measurement``."""

    def __init__(self, task: RunInput) -> None:
        self._task = task
        settings = task.profile.settings
        # As deep as recall@50 looks, or as the profile can go: its own length of a result changes no rank above it.
        self._top_k = min(TOP_K, max(settings.depth, settings.candidate_multiplier * settings.top_k))
        expected = [one for question in task.questions for one in question.expected_passages.all()]
        self._expectations = resolve(task.collection_id, expected)
        self.unresolved = sum(not one.is_resolved for one in self._expectations.values() if one.grade > 0)

    def warm_up(self, question: EvaluationQuestion) -> None:
        self._search(question)

    def ask(self, question: EvaluationQuestion) -> QuestionResult:
        started = time.perf_counter()
        found = self._search(question)
        milliseconds = (time.perf_counter() - started) * 1000
        passages = list(question.expected_passages.all())
        expectations = [self._expectations[one.pk] for one in passages]
        judged = judged_ranking([(hit.passage.chunk_id, hit.passage.document_id) for hit in found.hits], expectations)
        result = QuestionResult(
            run=self._task.run,
            question=question,
            text=question.text,
            expected=[
                {
                    "source": one.source,
                    "quote": one.quote[:QUOTE_CHARACTERS],
                    "grade": one.grade,
                    "rank": judged.ranks[one.pk],
                    "resolved": expectation.is_resolved,
                }
                for one, expectation in zip(passages, expectations, strict=True)
            ],
            milliseconds=round(milliseconds, 2),
        )
        for key, metric in METRICS.items():
            setattr(result, measure_of(self._task.run.kind, key).field, metric(judged.ranking, judged.grades))
        return result

    def reason_not_to_trust(self, results: Sequence[Any]) -> str:
        return ""

    def _search(self, question: EvaluationQuestion) -> SearchResult:
        """Raises: Unmeasurable for a question that nobody can search, NotMeasured when a part of the search failed."""
        try:
            result = search(question.text, self._task.filters, profile=self._task.profile, top_k=self._top_k)
        except InvalidQuery as error:
            raise Unmeasurable(f"The question {question.text!r} cannot be searched: {error}") from error
        require_whole(question, result.trace)
        return result
