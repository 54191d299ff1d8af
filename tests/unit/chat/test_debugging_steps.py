"""The numbers in the boxes of the debug panel's picture, in both languages."""

from __future__ import annotations

import pytest
from django.utils import translation

from chat.debugging.steps import steps_of
from chat.models import Answer
from retrieval.search.trace import RerankTrace, RetrieverTrace, StageStatus
from retrieval.types import Retriever
from tests.support.traces import example_trace

TRACE = example_trace(
    timings_ms={"classify": 0.26, "fuse": 15.7},
    retrievers=tuple(RetrieverTrace(each, StageStatus.OK, 1200, 9.96) for each in Retriever),
    rerank=RerankTrace("words", StageStatus.OK, judged=50, weight=0.5, depth=50, milliseconds=9999.0),
    assembly={"blocks": 3, "tokens": 1250, "budget_tokens": 4000},
)


@pytest.mark.parametrize(
    ("language", "badges", "details"),
    [
        (
            "en",
            {"question": "12.4 s", "classification": "0.3 ms", "vector": "10.0 ms", "fusion": "16 ms"},
            {"classification": "0.65", "vector": "1,200 returned", "rerank": "weight 0.5", "context": "1,250 of 4,000"},
        ),
        (
            "nl",
            {"question": "12,4 s", "classification": "0,3 ms", "vector": "10,0 ms", "fusion": "16 ms"},
            {"classification": "0,65", "vector": "1.200", "rerank": "0,5", "context": "1.250"},
        ),
    ],
)
def test_numbers_are_rounded_and_written_as_the_reader_writes_them(
    language: str, badges: dict[str, str], details: dict[str, str]
) -> None:
    answer = Answer(question="What?", timings_ms={"total": 12_380.0})
    with translation.override(language):
        steps = {step.name: step for step in steps_of(answer, TRACE, (), 0)}
    assert {name: steps[name].badge for name in badges} == badges
    for name, said in details.items():
        assert said in " ".join(steps[name].details), name
