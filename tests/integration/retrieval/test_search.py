"""Search on a real PostgreSQL: both retrievers, their fusion, and what happens when one of them does not answer."""

import threading

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from retrieval.exceptions import InvalidQuery, RetrieverFailed, SearchUnavailable
from retrieval.index.active_embedder import active_embedder
from retrieval.index.term_statistics import read_frequencies
from retrieval.metrics import RETRIEVER_FAILURES
from retrieval.models import Document
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.passage_rows import load_stored_chunks
from retrieval.search.pipeline import search
from retrieval.search.ranking import retrievers
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import build_plan
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.search.trace import StageStatus
from retrieval.types import Retriever, SearchMethod
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = build_plan(ProfileSettings(method=SearchMethod.RRF))

TEXTS = {
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor circulation pump. It weighs 3450 grams.",
    "other.md": "# MX-9902-W\n\nThe MX-9902-W is a smaller wet-rotor circulation pump. It weighs 2400 grams.",
    "valve.md": "# Valves\n\nA ball valve closes with a quarter turn of its lever.",
    "hours.md": "# Opening hours\n\nThe warehouse is open on working days from eight until five.",
    "code.md": "# Functions\n\n`load_index` reads an index from disk. `addVar` declares a variable.",
}


library = library_of(TEXTS)


def sources(question, **options):
    return [hit.passage.source for hit in search(question, build_unrestricted_filters(), **options).hits]


def test_every_method_finds_the_part(library):
    for method in SearchMethod:
        result = search("How heavy is the MX-9920-W pump?", build_unrestricted_filters(), method=method)
        assert result.hits[0].passage.source == "pump.md"
        assert result.trace.search_method == method.value
        assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
        assert result.trace.degraded == ()


def test_candidates_carry_both_scores_and_their_reasons(library):
    result = search("wet-rotor pump weight", build_unrestricted_filters(), top_k=2)
    assert len(result.hits) == 2
    assert len(result.trace.candidates) == len(TEXTS)
    for candidate in result.trace.candidates:
        assert {retriever for retriever, score in candidate.retrievers.items() if score.score is not None} == set(
            Retriever
        )
        assert candidate.rerank is None
        total = candidate.bonus + sum(retriever.contribution for retriever in candidate.retrievers.values())
        assert candidate.score == pytest.approx(total)
        assert bool(candidate.dropped) == (candidate.rank is None)
    assert result.trace.candidates[2].dropped == "not among the first 2"
    assert "rotor" in result.hits[0].candidate.matched_terms


def test_a_longer_list_keeps_the_head_of_a_shorter(library):
    for method in SearchMethod:
        longest = [
            hit.passage.chunk_id
            for hit in search("wet pump valve open", build_unrestricted_filters(), method=method, top_k=5).hits
        ]
        for top_k in range(1, 5):
            hits = search("wet pump valve open", build_unrestricted_filters(), method=method, top_k=top_k).hits
            assert [hit.passage.chunk_id for hit in hits] == longest[:top_k]


def test_scores_looked_up_equal_scores_ranked(library):
    for ranker_class in (Bm25Ranker, VectorRanker):
        ranker = ranker_class("wet pump", build_unrestricted_filters(), PLAN)
        ranked = {chunk.chunk_id: chunk.score for chunk in ranker.rank(50).chunks}
        assert ranker.score(load_stored_chunks(sorted(ranked), active_embedder().pk)) == pytest.approx(ranked, rel=1e-5)


def test_a_question_of_stop_words_and_nonsense(library):
    assert search("what is it", build_unrestricted_filters(), method=SearchMethod.LEXICAL).hits == ()
    assert search("qwertyuiop", build_unrestricted_filters(), method=SearchMethod.LEXICAL).hits == ()
    assert len(search("qwertyuiop", build_unrestricted_filters()).hits) > 0


def test_signs_are_not_syntax(library):
    for question in ("'", "a & b | !c:*", "\\", "'; DROP TABLE x; --", "💧 pump", "%s pump %(x)s", "\x00pump"):
        assert search(question, build_unrestricted_filters()).trace.degraded == ()


def test_frequencies_are_remembered_until_a_passage_changes(library, ingest):
    before = read_frequencies([library.pk], ["pump", "absent"])
    with CaptureQueriesContext(connection) as asked:
        assert read_frequencies([library.pk], ["pump", "absent"]) == before
    assert not any("retrieval_lexeme" in query["sql"] for query in asked)
    ingest(library, "new.md", "Another pump.")
    assert read_frequencies([library.pk], ["pump", "absent"]) == {"pump": before["pump"] + 1}
    Document.objects.get(source="new.md").delete()
    assert read_frequencies([library.pk], ["pump", "absent"]) == before


def test_an_empty_question_is_refused(library):
    with pytest.raises(InvalidQuery):
        search(" \n ", build_unrestricted_filters())
    with pytest.raises(InvalidQuery, match="between 1 and 50"):
        search("pump", build_unrestricted_filters(), top_k=51)


class SilentRanker(Bm25Ranker):
    def rank(self, depth):
        raise RetrieverFailed("The lexical search ran past its 5 s.")


class BuggyRanker(VectorRanker):
    def rank(self, depth):
        raise RuntimeError("index out of range")


class HangingRanker(VectorRanker):
    released = threading.Event()

    def rank(self, depth):
        self.released.wait(60)
        raise RetrieverFailed("Nobody waited for it.")


def test_scores_that_cannot_be_completed_are_told(library, monkeypatch, caplog):
    def silent(*_, **__):
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(retrievers, "load_stored_chunks", silent)
    before = RETRIEVER_FAILURES.labels(leg="vector")._value.get()
    profile = ProfileSettings(depth=1, top_k=1, candidate_multiplier=1)
    trace = search(
        "At what time can I pick up goods, in a quarter?", build_unrestricted_filters(), profile=profile
    ).trace
    assert [score.retrievers[Retriever.VECTOR].rank for score in trace.candidates].count(None) == 1
    (vector,) = [retriever for retriever in trace.retrievers if retriever.retriever is Retriever.VECTOR]
    assert vector.error.startswith("Its scores of what it did not list are unknown: canceling statement")
    assert RETRIEVER_FAILURES.labels(leg="vector")._value.get() == before + 1
    assert "scores are incomplete" in caplog.text


def test_a_late_leg_is_not_waited_for(library, monkeypatch):
    monkeypatch.setitem(retrievers.RANKERS, Retriever.VECTOR, HangingRanker)
    monkeypatch.setattr(retrievers, "DEADLINE_GRACE_SECONDS", 0.0)
    monkeypatch.setattr("django.conf.settings.RETRIEVAL_LEG_TIMEOUT_SECONDS", 1.2)
    result = search("wet-rotor pump", build_unrestricted_filters())
    HangingRanker.released.set()
    statuses = {retriever.retriever: retriever.status for retriever in result.trace.retrievers}
    assert statuses == {Retriever.LEXICAL: StageStatus.OK, Retriever.VECTOR: StageStatus.LATE}


def test_a_slow_statement_is_ended_by_the_database(library):
    from retrieval.search.ranking.statement_timeout import statement_timeout

    with (
        pytest.raises(RetrieverFailed, match=r"ran past its 0\.05 s"),
        statement_timeout(Retriever.LEXICAL, 0.05),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(2)")


def test_no_leg_no_answer(library, monkeypatch):
    monkeypatch.setitem(retrievers.RANKERS, Retriever.LEXICAL, SilentRanker)
    monkeypatch.setitem(retrievers.RANKERS, Retriever.VECTOR, BuggyRanker)
    with pytest.raises(SearchUnavailable, match="cannot answer at the moment"):
        search("pump", build_unrestricted_filters())
