"""A retriever whose part of PostgreSQL errs, hangs, is slow, answers nonsense or is cut off: the other one serves."""

from typing import ClassVar

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from chat.models import Answer
from chat.pages.turns import build_turn
from retrieval.protocols import Ranker
from retrieval.search.ranking import retrievers
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.statement_timeout import statement_timeout
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.types import RankedChunk, Ranking, Retriever
from tests.support.faults import FAULTS, ask, counted

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS = {
    "error": "SELECT 1 / 0",
    "hang": "SELECT pg_sleep(60)",
    "slow": "SELECT pg_sleep(0.05)",
    "dies": "SELECT pg_terminate_backend(pg_backend_pid())",
}
TOLD = {Retriever.LEXICAL: "Keyword search did not answer", Retriever.VECTOR: "Search by meaning did not answer"}


class Faulty(Ranker):
    """The retriever of a retriever, with a fault. One that answers nonsense names passages that do not exist."""

    fault: ClassVar[str] = ""

    def __init__(self, whole, question, filters, plan):
        self._whole = whole(question, filters, plan)
        self.retriever = self._whole.retriever
        self._seconds = plan.retriever_timeout_seconds

    @property
    def embedder_id(self):
        return self._whole.embedder_id

    def rank(self, depth):
        if self.fault == "garbage":
            return Ranking(self.retriever, (RankedChunk(10**15, 1, 1.0), RankedChunk(-1, 2, 0.5)))
        if self.fault:
            with statement_timeout(self.retriever, self._seconds), connection.cursor() as cursor:
                cursor.execute(STATEMENTS[self.fault])
        return self._whole.rank(depth)

    def score(self, stored):
        return self._whole.score(stored)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("retriever", "whole"), [(Retriever.LEXICAL, Bm25Ranker), (Retriever.VECTOR, VectorRanker)])
async def test_the_other_one_serves_and_the_next_question_is_whole_again(
    library, settings, monkeypatch, caplog, retriever, whole, fault
):
    settings.RETRIEVAL_LEG_TIMEOUT_SECONDS = 0.8
    monkeypatch.setattr(Faulty, "fault", fault)
    monkeypatch.setitem(retrievers.RANKERS, retriever, lambda *search: Faulty(whole, *search))
    failures = counted("ragsite_search_leg_failures_total", leg=retriever.value)
    answer, _events = await ask()
    assert answer.status == Answer.Status.COMPLETED
    assert "3450 grams" in answer.text
    if fault in ("error", "hang", "dies"):
        (other,) = set(Retriever) - {retriever}
        assert (answer.degraded, answer.search_method) == ([retriever.value], other.value)
        assert f"The {retriever.value} retriever did not answer" in caplog.text
        assert TOLD[retriever] in " ".join((await sync_to_async(build_turn)(answer)).notices)
        assert counted("ragsite_search_leg_failures_total", leg=retriever.value) == failures + 1
    monkeypatch.setattr(Faulty, "fault", "")
    settings.RETRIEVAL_LEG_TIMEOUT_SECONDS = 5.0
    answer, _events = await ask()
    assert "3450 grams" in answer.text
    assert answer.degraded == []


@pytest.mark.parametrize("fault", ["error", "hang", "dies"])
async def test_without_both_the_reader_is_told(library, settings, monkeypatch, fault):
    settings.RETRIEVAL_LEG_TIMEOUT_SECONDS = 0.3
    monkeypatch.setattr(Faulty, "fault", fault)
    for retriever, whole in ((Retriever.LEXICAL, Bm25Ranker), (Retriever.VECTOR, VectorRanker)):
        monkeypatch.setitem(retrievers.RANKERS, retriever, lambda *search, whole=whole: Faulty(whole, *search))
    answer, events = await ask()
    assert answer.status == Answer.Status.FAILED
    assert events[-1].payload["message"] == answer.error
    assert answer.error == "The search cannot answer at the moment. Please try again in a minute."
