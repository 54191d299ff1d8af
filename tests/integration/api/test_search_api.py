import contextlib
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.exceptions import RetrieverFailed
from retrieval.models import Collection
from retrieval.search import search_places
from retrieval.search.ranking import retrievers
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.types import Retriever, SearchMethod
from tests.support.faults import counted
from tests.support.libraries import remembered
from tests.support.site import wait_until

pytestmark = pytest.mark.django_db
# The retrievers ask on connections of their own.
on_several_connections = pytest.mark.django_db(transaction=True)

URL = "/api/v1/search/"
HOLIDAYS = "# Holidays\n\nEvery employee has 25 days of paid holiday a year.\n"
PARKING = "# Parking\n\nThe car park behind the building closes at eight in the evening.\n"
PAYROLL = "# Pay\n\nSalaries are paid on the 25th of each month, and never on a holiday.\n"


@pytest.fixture
@remembered
def handbook(collection, ingest):
    ingest(collection, "holidays.md", HOLIDAYS)
    ingest(collection, "parking.md", PARKING)
    ingest(collection, "pay.md", PAYROLL)
    return collection


def post(api, **body):
    return api.post(URL, body, format="json")


@on_several_connections
def test_behind_as_many_searches_as_may_run_one_is_refused_at_once(api, handbook, monkeypatch):
    monkeypatch.setattr(search_places, "SEARCH_WAIT_SECONDS", 0.05)
    refused = counted("ragsite_refused_searches_total")
    with contextlib.ExitStack() as others:
        for _ in range(search_places.SEARCHES_AT_ONCE):
            others.enter_context(search_places.wait_for_search_slot())
        response = post(api, query="How many days of holiday do I have?")
    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert response.json()["detail"].startswith("Too many searches are running.")
    assert counted("ragsite_refused_searches_total") == refused + 1
    assert post(api, query="How many days of holiday do I have?").status_code == 200


@on_several_connections
def test_a_search_beyond_the_waiting_ones_does_not_wait(api, handbook, monkeypatch):
    monkeypatch.setattr(search_places, "SEARCH_WAIT_SECONDS", 30.0)
    waiting = threading.Barrier(search_places.SEARCHES_WAITING + 1)

    def search_later():
        waiting.wait()
        with search_places.wait_for_search_slot():
            return True

    with ThreadPoolExecutor(search_places.SEARCHES_WAITING) as threads:
        with contextlib.ExitStack() as others:
            for _ in range(search_places.SEARCHES_AT_ONCE):
                others.enter_context(search_places.wait_for_search_slot())
            later = [threads.submit(search_later) for _ in range(search_places.SEARCHES_WAITING)]
            waiting.wait()
            wait_until(lambda: search_places._queue._value == 0)
            with monkeypatch.context() as patched:
                patched.setattr(search_places, "_places", None)  # waiting for a place would fail
                refused = post(api, query="How many days of holiday do I have?")
        assert refused.status_code == 503
        assert all(each.result(timeout=20) for each in later)
    assert post(api, query="How many days of holiday do I have?").status_code == 200


@on_several_connections
def test_a_search_says_what_it_found_and_how(api, handbook):
    response = post(api, query="How many days of holiday do I have?", top_k=2, explain=True)
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"query_class", "search_method", "degraded", "results", "timings_ms", "trace"}
    assert body["search_method"] == "zscore"
    assert body["degraded"] == []
    assert [result["rank"] for result in body["results"]] == [1, 2]
    first = body["results"][0]
    assert "25 days of paid holiday" in first["content"]
    assert first["document"]["title"] == "Holidays"
    assert set(first["document"]) >= {"id", "title", "url"}
    assert first["legs"]["lexical"]["rank"] == 1
    assert first["legs"]["vector"]["score"] > 0
    assert first["end"] - first["start"] == len(first["content"])
    assert any(term.startswith("holiday") for term in first["matched_terms"])
    assert body["timings_ms"]["total"] > 0
    assert body["trace"]["candidates"][0]["chunk_id"] == first["chunk_id"]
    assert set(body["trace"]) == {
        *("question", "query", "query_class", "rule", "search_method", "weights", "depth", "top_k", "rrf_k"),
        *("score_threshold", "legs", "rerank", "candidates", "timings_ms", "profile", "reformulation"),
    }


@on_several_connections
@pytest.mark.parametrize("method", ["default", *SearchMethod])
def test_every_method_is_explained_by_contributions_that_sum_to_the_score(api, handbook, method):
    body = post(api, query="paid holiday", method=method, explain=True).json()
    assert body["search_method"] == ("zscore" if method == "default" else method)
    assert body["results"]
    for row in [*body["results"], *body["trace"]["candidates"]]:
        parts = [retriever["contribution"] for retriever in row["legs"].values()]
        parts += [boost["contribution"] for boost in row["boosts"]]
        assert math.isclose(row["score"], sum(parts) + row["bonus"], abs_tol=1e-9)


@on_several_connections
def test_filters_narrow_the_search(api, handbook, ingest):
    private = ingest(handbook, "dutch.md", "# Vakantie\n\nHoliday rules for Ghent.", metadata={"office": "Ghent"})
    by_document = post(api, query="holiday", filters={"documents": [private.pk]}).json()
    assert {result["document"]["id"] for result in by_document["results"]} == {private.pk}
    by_metadata = post(api, query="holiday", filters={"metadata": {"office": "Ghent"}}).json()
    assert {result["document"]["id"] for result in by_metadata["results"]} == {private.pk}
    assert post(api, query="holiday", filters={"languages": ["xx"]}).json()["results"] == []
    assert post(api, query="holiday", filters=None, top_k=None, method=None).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": " \t\n"}, "query"),
        ({"query": 5}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "a", "top_k": 0}, "top_k"),
        ({"query": "a", "top_k": 51}, "top_k"),
        ({"query": "a", "top_k": True}, "top_k"),
        ({"query": "a", "top_k": [3]}, "top_k"),
        ({"query": "a", "method": "best"}, "method"),
        ({"query": "a", "method": "\ud800"}, "method"),
        ({"query": "a", "method": {}}, "method"),
        ({"query": "a", "collection": "\x00"}, "collection"),
        ({"query": "a", "collection": 3}, "collection"),
        ({"query": "a", "explain": "perhaps"}, "explain"),
        ({"query": "a", "filters": []}, "filters"),
        ({"query": "a", "filters": {"documents": [2**63]}}, "documents"),
        ({"query": "a", "filters": {"documents": "1"}}, "documents"),
        ({"query": "a", "filters": {"languages": ["\x00"]}}, "languages"),
        ({"query": "a", "filters": {"metadata": []}}, "metadata"),
        ({"query": "a", "filters": {"metadata": {"k": "\x00"}}}, "metadata"),
        ({"query": "a", "filters": {"metadata": {"\ud800": 1}}}, "metadata"),
        ({"query": "a", "filters": {"metadata": {"k": "x" * 30_000}}}, "metadata"),
    ],
)
def test_bad_input_is_refused_with_the_name_of_the_field(api, collection, body, field):
    response = api.post(URL, json.dumps(body), content_type="application/json")
    assert response.status_code == 400, response.content
    assert f'"{field}"' in response.content.decode()


def test_other_charsets_bodies_and_types_are_refused(api, collection, settings):
    for charset in ("bz2_codec", "hex", "utf-16", "nonsense"):
        response = api.post(URL, b'{"query": "a"}', content_type=f"application/json; charset={charset}")
        assert response.status_code == 200
    assert api.post(URL, b"query=a", content_type="application/x-www-form-urlencoded").status_code == 415
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    huge = api.post(URL, json.dumps({"query": "a", "padding": "x" * 2**20}), content_type="application/json")
    assert huge.status_code == 413
    assert huge.json() == {"detail": "The request is larger than 1 MiB, not counting files."}
    assert api.get(URL).status_code == 405


@on_several_connections
def test_a_failed_leg_is_named_to_all_and_explained_to_staff_only(api, staff_api, handbook, monkeypatch):
    class Broken(VectorRanker):
        def rank(self, depth):
            raise RetrieverFailed("connection to 10.1.2.3 refused")

    monkeypatch.setitem(retrievers.RANKERS, Retriever.VECTOR, Broken)
    body = post(api, query="holiday", explain=True).json()
    assert body["degraded"] == ["vector"]
    assert body["search_method"] == "lexical"
    assert body["results"][0]["legs"]["vector"] == {
        "rank": None, "score": None, "normalized": None, "weight": 0.0, "contribution": 0.0,
    }  # fmt: skip
    assert "10.1.2.3" not in json.dumps(body)
    assert "10.1.2.3" in json.dumps(post(staff_api, query="holiday", explain=True).json())


@on_several_connections
def test_when_no_leg_answers_the_caller_is_told_without_internals(api, handbook, monkeypatch):
    class Broken(VectorRanker):
        def rank(self, depth):
            raise RetrieverFailed("secret host")

    monkeypatch.setitem(retrievers.RANKERS, Retriever.VECTOR, Broken)
    response = post(api, query="holiday", method="vector")
    assert response.status_code == 503
    assert set(response.json()) == {"detail"}
    assert "secret" not in response.content.decode()


def test_collections_are_listed_by_who_may_read_them(api, staff_api, handbook):
    Collection.objects.create(slug="secret", name="Secret", visibility="staff")
    listed = api.get("/api/v1/collections/").json()["results"]
    assert [row["slug"] for row in listed] == ["library"]
    assert (listed[0]["documents"], listed[0]["passages"]) == (3, 3)
    assert len(staff_api.get("/api/v1/collections/").json()["results"]) == 2


def test_staff_add_collections(api, staff_api):
    body = {"slug": "new", "name": "New", "text_search_configuration": "dutch", "visibility": "staff"}
    assert api.post("/api/v1/collections/", body, format="json").status_code in (401, 403)
    response = staff_api.post("/api/v1/collections/", body, format="json")
    assert response.status_code == 201
    assert response.json()["documents"] == 0
    again = staff_api.post("/api/v1/collections/", body, format="json")
    assert again.status_code == 400
    assert "slug" in again.json()
    wrong = staff_api.post("/api/v1/collections/", {**body, "text_search_configuration": "klingon"}, format="json")
    assert wrong.status_code == 400
    assert "text_search_configuration" in wrong.json()


@pytest.fixture
@remembered
def papers(collection, ingest):
    for title, metadata in (
        ("icu.md", {"department": "icu", "published": "2026-01-15"}),
        ("er.md", {"department": ["er", "lab"], "published": "2026-03-01"}),
        ("none.md", {}),
    ):
        ingest(collection, title, "Hand hygiene.", title=title, metadata=metadata)
    return collection


def filtered(api, **filters):
    return post(api, query="hand hygiene", filters=filters, explain=True)


def titles(response):
    assert response.status_code == 200, response.content
    return {hit["document"]["title"] for hit in response.json()["results"]}


@on_several_connections
def test_filters_by_any_of_several_values_and_by_dates(api, papers):
    assert titles(filtered(api, metadata_any={"department": ["icu", "lab"]})) == {"icu.md", "er.md"}
    assert titles(filtered(api, metadata_any={"department": ["lab"]})) == {"er.md"}
    assert titles(filtered(api, dates=[{"field": "published", "from": "2026-02-01"}])) == {"er.md"}
    assert titles(filtered(api, dates=[{"field": "published", "to": "2026-01-15"}])) == {"icu.md"}
    assert titles(filtered(api, dates=[{"field": "added", "from": "2020-01-01"}])) == {"icu.md", "er.md", "none.md"}
    assert titles(filtered(api, dates=[{"field": "changed", "to": "2020-01-01"}])) == set()
    both = [{"field": "published", "from": "2026-01-01", "to": "2026-02-01"}, {"field": "added", "from": "2020-01-01"}]
    assert titles(filtered(api, dates=both, metadata_any={"department": ["icu", "er"]})) == {"icu.md"}
    assert titles(filtered(api, dates=[], metadata_any={})) == {"icu.md", "er.md", "none.md"}
    for field in ("added", "published"):
        assert filtered(api, dates=[{"field": field, "from": "0001-01-01", "to": "9999-12-31"}]).status_code == 200


@pytest.mark.parametrize(
    ("name", "wanted", "why"),
    [
        ("dates", "2026", "Expected a list of items"),
        ("dates", [3], "Expected a dictionary"),
        ("dates", [{"field": "added", "from": "2026-01-01"}] * 11, "no more than 10"),
        ("dates", [{"field": "added", "since": "2026-01-01"}], '"since":["Unknown field."]'),
        ("dates", [{"from": "2026-01-01"}], "required"),
        ("dates", [{"field": 3, "from": "2026-01-01"}], "must be a string"),
        ("dates", [{"field": "a\x00", "from": "2026-01-01"}], "Null characters"),
        ("dates", [{"field": "added"}], "needs a first day, a last day"),
        ("dates", [{"field": "added", "from": "01-02-2026"}], "YYYY-MM-DD"),
        ("dates", [{"field": "added", "from": "2026-02-30"}], "YYYY-MM-DD"),
        ("dates", [{"field": "added", "from": "2026-02-02", "to": "2026-02-01"}], "must not end"),
        ("metadata_any", [], "Expected a dictionary"),
        ("metadata_any", {"department": "icu"}, "Expected a list of items"),
        ("metadata_any", {"department": []}, "at least 1"),
        ("metadata_any", {"department": list(range(51))}, "no more than 50"),
        ("metadata_any", {"department": ["\x00"]}, "NUL"),
    ],
)
def test_a_bad_filter_is_refused_with_the_reason(api, collection, name, wanted, why):
    response = filtered(api, **{name: wanted})
    assert response.status_code == 400, response.content
    assert why in json.dumps(response.json()["filters"][name], separators=(",", ":"))


@on_several_connections
def test_the_trace_says_what_was_searched(api, staff_api, papers):
    body = {"query": "What is hand hygeine?", "explain": True}
    trace = post(api, **body).json()["trace"]
    assert trace["question"] == body["query"]
    assert trace["query"] == trace["reformulation"]["query"] == "What is hand hygiene?"
    assert (trace["reformulation"]["by"], trace["reformulation"]["changed"]) == ("rules", True)
    named = post(api, **body, method="rrf").json()["trace"]
    assert (named["query"], named["reformulation"]) == (body["query"], None)


@on_several_connections
def test_why_a_model_did_not_reformulate_is_for_staff(api, staff_api, papers, settings):
    settings.QUERY_REFORMULATOR = {
        "BACKEND": "retrieval.search.understanding.model_reformulator.ModelReformulator",
        "OPTIONS": {"base_url": "http://127.0.0.1:9/v1", "api_key": "", "model": "tiny"},
    }
    body = {"query": "hand hygiene " * 20, "explain": True}
    assert "line to the model broke" in post(staff_api, **body).json()["trace"]["reformulation"]["notice"]
    assert post(api, **body).json()["trace"]["reformulation"]["notice"] == ""
