"""Filters by metadata, dates and language; they apply to both retrievers, and never starve the result."""

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest

from bench.bulk import DocumentToWrite, replace_documents
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import NewChunk, refresh_planner_statistics
from retrieval.models import Document
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.ranking import vector_ranker as dense_ranker
from retrieval.types import DateRange, NumberRange, Retriever, SearchMethod
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db(transaction=True)

PAPERS = {
    "icu.md": {"department": "icu", "published": "2026-01-15", "year": 2026},
    "surgery.md": {"department": ["surgery", "er"], "published": "2026-02-01T23:59:59Z", "year": 2025},
    "er.md": {"department": "er", "published": "last spring", "year": "2025"},
    "none.md": {},
}


@pytest.fixture
@remembered
def library(collection, ingest):
    for number, (source, metadata) in enumerate(PAPERS.items(), start=1):
        document = ingest(
            collection, source, f"The hand hygiene protocol of {source}.", metadata=metadata, language="en"
        )
        added = datetime(2026, number, 10, 12, tzinfo=UTC)
        Document.objects.filter(pk=document.pk).update(created_at=added, updated_at=added.replace(day=20))
    return collection


def passing(**filters):
    """Return the sources that pass, the same by either retriever."""
    by_retriever = [
        {
            hit.passage.source
            for hit in search(
                "hand hygiene protocol", replace(build_unrestricted_filters(), **filters), method=method
            ).hits
        }
        for method in (SearchMethod.LEXICAL, SearchMethod.VECTOR)
    ]
    assert by_retriever[0] == by_retriever[1]
    return by_retriever[0]


def between(field, first=None, last=None):
    return passing(dates=(DateRange(field, first, last),))


def test_any_of_several_values_alone_or_in_a_list(library):
    assert passing(metadata_any={"department": ["icu"]}) == {"icu.md"}
    assert passing(metadata_any={"department": ["icu", "surgery"]}) == {"icu.md", "surgery.md"}
    assert passing(metadata_any={"department": ["er"]}) == {"surgery.md", "er.md"}
    assert passing(metadata_any={"department": ["er"], "year": [2025]}) == {"surgery.md"}
    assert passing(metadata_any={"year": [2025, "2025"]}) == {"surgery.md", "er.md"}
    assert passing(metadata_any={"department": ["radiology"]}) == set()
    assert passing(metadata_any={"department": []}) == set()


def test_containment_still_asks_for_all(library):
    assert passing(metadata={"department": ["er"]}) == {"surgery.md"}
    assert passing(metadata={"department": ["surgery", "er"]}) == {"surgery.md"}
    assert passing(metadata={"department": "er"}) == {"er.md"}


def test_days_are_included_on_both_sides(library):
    assert between("added", date(2026, 2, 10), date(2026, 3, 10)) == {"surgery.md", "er.md"}
    assert between("added", date(2026, 2, 11), date(2026, 3, 9)) == set()
    assert between("added", last=date(2026, 1, 10)) == {"icu.md"}
    assert between("changed", first=date(2026, 4, 20)) == {"none.md"}
    assert between("changed", first=date(2026, 4, 21)) == set()


def test_days_are_those_of_the_sites_time_zone(library, settings):
    Document.objects.filter(source="icu.md").update(created_at=datetime(2026, 1, 10, 23, 30, tzinfo=UTC))
    assert between("added", last=date(2026, 1, 10)) == {"icu.md"}
    settings.TIME_ZONE = "Europe/Amsterdam"
    assert between("added", last=date(2026, 1, 10)) == set()


def test_dates_in_the_metadata(library):
    assert between("published", date(2026, 1, 15), date(2026, 2, 1)) == {"icu.md", "surgery.md"}
    assert between("published", first=date(2026, 1, 16)) == {"surgery.md"}
    assert between("published", last=date(2026, 1, 15)) == {"icu.md"}
    assert between("department", first=date(1, 1, 1)) == set()
    assert between("year", first=date(1, 1, 1)) == set()


def test_numbers_in_the_metadata(library):
    def within(field, least=None, most=None):
        return passing(numbers=(NumberRange(field, least, most),))

    # A text that is a number counts; a document without a number does not pass.
    assert within("year", 2025, 2025) == {"surgery.md", "er.md"}
    assert within("year", least=2025.5) == {"icu.md"}
    assert within("year", most=2024.9) == set()
    assert within("published", least=0) == within("department", most=9) == set()


def test_formats(library):
    assert passing(formats=("text/markdown",)) == set(PAPERS)
    assert passing(formats=("application/pdf",)) == set()


def test_one_in_thirty_rows_still_fills_the_list(collection, monkeypatch):
    """The search uses the HNSW index; the passing rows are far from the question and hundreds of others nearer."""
    wanted_every = 30
    _fill(collection, documents=20 * wanted_every, wanted_every=wanted_every)
    monkeypatch.setattr(dense_ranker, "EXACT_UP_TO", 0)
    tuned = dense_ranker.build_scan_settings

    def use_the_index(candidates):
        # In a table this small the planner would rather read and sort it all.
        avoided = ("enable_seqscan", "enable_bitmapscan", "enable_sort")
        return {**tuned(candidates), **dict.fromkeys(avoided, "off")}

    monkeypatch.setattr(dense_ranker, "build_scan_settings", use_the_index)
    for name, wanted in {
        "metadata_any": {"metadata_any": {"kind": ["rare"]}},
        "dates": {"dates": (DateRange("day", date(2026, 1, 1), date(2026, 1, 31)),)},
        "a phrase": {},
    }.items():
        filters = replace(build_unrestricted_filters(), **wanted)
        question = "hand hygiene protocol" if wanted else 'hand hygiene "rare protocol"'
        result = search(question, filters, method=SearchMethod.ZSCORE, top_k=15)
        assert result.trace.degraded == ()
        assert len(result.hits) == 15, name
        assert {hit.passage.source.split("-")[0] for hit in result.hits} == {"rare"}
        retrievers = {retriever.retriever: retriever.returned for retriever in result.trace.retrievers}
        assert retrievers[Retriever.LEXICAL] == 20
        # A graph that is made by chance may leave one out of reach; a cluster makes one for each shard.
        assert 18 <= retrievers[Retriever.VECTOR] <= 20


def _fill(collection, documents, wanted_every):
    question = embedder_choice.get_embedder().embed_query("hand hygiene protocol")
    noise = np.random.default_rng(7).normal(size=(documents, len(question))) / np.sqrt(len(question))

    def made(number):
        kind, language, near = ("rare", "nl", 0) if number % wanted_every == 0 else ("common", "en", 1)
        content = f"Hand hygiene {kind if kind == 'rare' else ''} protocol {number}"
        vector = noise[number] + near * question
        unit = (vector / np.linalg.norm(vector)).astype(np.float32)
        chunk = NewChunk(0, len(content), None, (), content, str(number), 3, (), unit)
        return DocumentToWrite(f"{kind}-{number}.md", "", language, content, str(number), "", (chunk,))

    replace_documents(collection, map(made, range(documents)), active_embedder())
    Document.objects.filter(source__startswith="common").update(metadata={"kind": "common"})
    Document.objects.filter(source__startswith="rare").update(metadata={"kind": "rare", "day": "2026-01-15"})
    refresh_planner_statistics()
