"""The debug panel's drawings: the waterfalls, the words around a match, and the rows of candidates."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.debugging.candidates import FRAGMENT_CHARACTERS, build_candidate_rows, highlight_snippet
from chat.debugging.stages import build_answer_bars, build_search_stage_bars
from retrieval.types import SILENT, Candidate, Retriever, RetrieverScore
from tests.support.traces import example_trace

TIMINGS = {
    "reformulate": 2.0, "classify": 1.0, "legs": 20.0, "lexical": 8.0, "vector": 19.0, "scores": 2.0, "fuse": 1.0,
    "rerank": 10.0, "load": 4.0, "total": 40.0,
}  # fmt: skip


def test_stages_follow_each_other_and_the_retrievers_begin_together():
    bars = {bar.name: bar for bar in build_search_stage_bars(TIMINGS)}
    assert [bar.start_ms for bar in bars.values()] == [0.0, 2.0, 3.0, 3.0, 3.0, 23.0, 25.0, 26.0, 36.0]
    assert list(bars)[:5] == ["reformulate", "classify", "legs", "vector", "lexical"]
    assert bars["vector"].nested
    assert (bars["legs"].left_percent, bars["legs"].width_percent) == (7.5, 50.0)
    assert bars["load"].left_percent + bars["load"].width_percent == 100.0
    assert build_search_stage_bars({}) == ()


@given(st.dictionaries(st.sampled_from(sorted(TIMINGS)), st.floats(0, 1e6)))
def test_no_bar_leaves_the_waterfall(timings):
    for bar in build_search_stage_bars(timings):
        assert 0 <= bar.left_percent <= 100
        assert bar.left_percent + bar.width_percent <= 100.02


@pytest.mark.parametrize(
    ("moments", "bars"),
    [
        (
            {"searched": 50.0, "first_token": 250.0, "written": 900.0, "total": 1000.0},
            [("search", 40.0), ("context", 10.0), ("wait", 200.0), ("write", 650.0), ("check", 100.0)],
        ),
        ({"searched": 50.0, "total": 60.0}, [("search", 40.0), ("context", 10.0), ("decide", 10.0)]),
        ({"repeated": 5.0, "total": 10.0}, [("answer", 10.0)]),
        ({}, []),
    ],
)
def test_an_answer_is_searched_awaited_written_and_checked(moments, bars):
    assert [(bar.name, bar.milliseconds) for bar in build_answer_bars(moments, 40.0)] == bars


FILLER = "Some words that stand between the interesting ones and say nothing at all. " * 6


def test_a_snippet_shows_the_text_around_the_first_match_and_marks_it():
    text = f"{FILLER}The seal <kit> fits the pump. {FILLER}"
    html = highlight_snippet(text, [(text.index("seal"), text.index("seal") + 4)])
    assert "The <mark>seal</mark> &lt;kit&gt; fits the pump." in html
    assert html.startswith("… ")
    assert html.endswith(" …")
    assert highlight_snippet("A short text.") == "A short text."
    assert highlight_snippet(FILLER).startswith("Some words")
    assert highlight_snippet("") == ""


@given(st.text(alphabet="ab \n<é", max_size=900), st.lists(st.tuples(st.integers(-5, 950), st.integers(-5, 950))))
def test_a_snippet_is_a_piece_of_the_text(text, spans):
    shown = unescape(re.sub("</?mark>", "", highlight_snippet(text, spans))).removeprefix("… ").removesuffix(" …")
    assert shown in text
    assert len(shown) <= FRAGMENT_CHARACTERS


def test_kept_candidates_come_first_and_the_others_by_score():
    def candidate(chunk_id, rank, score):
        scores = {Retriever.LEXICAL: SILENT, Retriever.VECTOR: RetrieverScore(1, 1.0, 1.0, 0.5, score)}
        return Candidate(chunk_id, score, scores, rank=rank, dropped="" if rank else "not among the first 1")

    trace = example_trace(candidates=(candidate(3, None, 0.2), candidate(2, None, 0.4), candidate(1, 1, 0.9)))
    rows = build_candidate_rows(trace, {})
    assert [(row.candidate.rank, row.candidate.score) for row in rows] == [(1, 0.9), (None, 0.4), (None, 0.2)]
    assert rows[0].lexical.score.rank is None
    assert (rows[0].vector.start_percent, rows[0].vector.width_percent) == (50.0, 50.0)
