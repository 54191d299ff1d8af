"""Dataclasses of a search survive writing and reading as JSON."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.types import AnswerTrace, PromptTrace, read_trace
from core.dataclass_json import from_json, to_json
from retrieval.search.trace import RerankTrace, RetrieverTrace, StageStatus
from retrieval.types import (
    AppliedBoost,
    Candidate,
    MetadataBoost,
    Reformulation,
    RerankScore,
    Retriever,
    RetrieverScore,
    RetrieverWeights,
)

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(
    RetrieverWeights, st.builds(RetrieverWeights, vector=st.floats(0, 9), lexical=st.floats(0.1, 9))
)


def of_type(kind):
    """Any value of a field; of several things, no more than two: a trace is large."""
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return st.lists(of_type(arguments[0]), max_size=2).map(tuple)
    if get_origin(kind) is Mapping:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=2)
    return st.from_type(kind)


# Hypothesis would leave every field that has a default as it is.
for kind in (
    *(RetrieverScore, AppliedBoost, RerankScore, Candidate, RetrieverTrace, RerankTrace, Reformulation),
    *(PromptTrace, AnswerTrace),
):
    st.register_type_strategy(
        kind, st.builds(kind, **{name: of_type(each) for name, each in get_type_hints(kind).items()})
    )


@settings(max_examples=60)
@given(st.from_type(AnswerTrace))
def test_what_is_stored_comes_back(trace):
    assert read_trace(json.loads(json.dumps(to_json(trace)))) == trace


@given(st.from_type(AnswerTrace))
def test_readers_who_are_not_staff_see_no_error(trace):
    visible = trace.copy_without_errors()
    assert not any(each.error for each in visible.retrievers)
    assert visible.rerank is None or not visible.rerank.error
    assert visible.reformulation is None or not visible.reformulation.notice
    assert replace(visible, retrievers=(), rerank=None, reformulation=None) == replace(
        trace, retrievers=(), rerank=None, reformulation=None
    )


@given(st.from_type(AnswerTrace))
def test_a_trace_of_another_release_is_read(trace):
    stored = to_json(trace)
    for name in ("assembly", "prompt"):
        del stored[name]
    read = read_trace({**stored, "unknown": 1})
    assert (read.question, read.assembly) == (trace.question, {})


def test_nothing_was_searched():
    assert read_trace({}) is None


def test_enums_are_written_as_plain_texts():
    written = to_json({"leg": Retriever.LEXICAL, "status": (StageStatus.OK,)})
    assert written == {"leg": "lexical", "status": ["ok"]}
    assert {type(written["leg"]), type(written["status"][0])} == {str}


@pytest.mark.parametrize("stored", [{"vector": "1", "lexical": 1}, {"vector": 1}, ["vector"], 1])
def test_a_value_that_does_not_fit_is_not_made_to_fit(stored):
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(RetrieverWeights, stored)


def test_a_value_of_several_kinds_keeps_its_kind():
    for value in ("2025", 2025, 2025.5, True):
        read = from_json(MetadataBoost, {"key": "year", "value": value, "weight": 1})
        assert type(read.value) is type(value)
        assert read.value == value
