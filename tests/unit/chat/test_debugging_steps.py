"""The numbers in the boxes of the debug panel's picture, in both languages."""

from __future__ import annotations

import pytest
from django.utils import translation

from chat.debugging.steps import steps_of
from chat.models import Answer

LEG = {"status": "ok", "returned": 1200, "milliseconds": 9.96, "error": ""}
TRACE = {
    "query_class": "keyword",
    "rule": "a number in it",
    "search_method": "adaptive",
    "weights": {"vector": 0.65, "lexical": 0.35},
    "timings_ms": {"classify": 0.26, "fuse": 15.7},
    "legs": [{"leg": "vector", **LEG}, {"leg": "lexical", **LEG}],
    "rerank": {"status": "ok", "reranker": "words", "judged": 50, "weight": 0.5, "milliseconds": 9999.0},
    "assembly": {"blocks": 3, "tokens": 1250, "budget_tokens": 4000},
    "candidates": [],
}


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
