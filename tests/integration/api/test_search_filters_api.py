from __future__ import annotations

import pytest

from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db
# The retrievers ask on connections of their own.
on_several_connections = pytest.mark.django_db(transaction=True)

URL = "/api/v1/search/"


@pytest.fixture
@remembered
def papers(collection, ingest):
    ingest(
        collection, "icu.md", "Hand hygiene.", title="icu.md", metadata={"department": "icu", "published": "2026-01-15"}
    )
    ingest(
        collection,
        "er.md",
        "Hand hygiene.",
        title="er.md",
        metadata={"department": ["er", "lab"], "published": "2026-03-01"},
    )
    ingest(collection, "none.md", "Hand hygiene.", title="none.md")
    return collection


def post(api, **filters):
    return api.post(URL, {"query": "hand hygiene", "filters": filters, "explain": True}, format="json")


def titles(response):
    assert response.status_code == 200, response.content
    return {hit["document"]["title"] for hit in response.json()["results"]}


@on_several_connections
def test_filters_by_any_of_several_values_and_by_dates(api, papers):
    assert titles(post(api, metadata_any={"department": ["icu", "lab"]})) == {"icu.md", "er.md"}
    assert titles(post(api, metadata_any={"department": ["lab"]})) == {"er.md"}
    assert titles(post(api, dates=[{"field": "published", "from": "2026-02-01"}])) == {"er.md"}
    assert titles(post(api, dates=[{"field": "published", "to": "2026-01-15"}])) == {"icu.md"}
    assert titles(post(api, dates=[{"field": "added", "from": "2020-01-01"}])) == {"icu.md", "er.md", "none.md"}
    assert titles(post(api, dates=[{"field": "changed", "to": "2020-01-01"}])) == set()
    both = [{"field": "published", "from": "2026-01-01", "to": "2026-02-01"}, {"field": "added", "from": "2020-01-01"}]
    assert titles(post(api, dates=both, metadata_any={"department": ["icu", "er"]})) == {"icu.md"}
    assert titles(post(api, dates=[], metadata_any={})) == {"icu.md", "er.md", "none.md"}
    for field in ("added", "published"):
        assert post(api, dates=[{"field": field, "from": "0001-01-01", "to": "9999-12-31"}]).status_code == 200


@pytest.mark.parametrize(
    ("dates", "why"),
    [
        ("2026", "must be a list of ranges"),
        ({"field": "added", "from": "2026-01-01"}, "must be a list of ranges"),
        ([3], "must be a list of ranges"),
        ([{"field": "added", "from": "2026-01-01"}] * 11, "at most 10 ranges"),
        ([{"field": "added", "since": "2026-01-01"}], "no 'since'"),
        ([{"from": "2026-01-01"}], "needs a field"),
        ([{"field": 3, "from": "2026-01-01"}], "needs a field"),
        ([{"field": "", "from": "2026-01-01"}], "needs a field"),
        ([{"field": "x" * 201, "from": "2026-01-01"}], "needs a field"),
        ([{"field": "a\x00", "from": "2026-01-01"}], "NUL"),
        ([{"field": "added"}], "needs a first day, a last day"),
        ([{"field": "added", "from": "01-02-2026"}], "YYYY-MM-DD"),
        ([{"field": "added", "from": "2026-02-30"}], "2026-02-30 is not a day"),
        ([{"field": "added", "from": 2026}], "YYYY-MM-DD"),
        ([{"field": "added", "to": "٢٠٢٦-٠١-٠١"}], "YYYY-MM-DD"),
        ([{"field": "added", "from": "2026-02-02", "to": "2026-02-01"}], "must not end"),
    ],
)
def test_a_bad_range_is_refused_with_one_sentence(api, collection, dates, why):
    response = post(api, dates=dates)
    assert response.status_code == 400, response.content
    (message,) = response.json()["filters"]["dates"]
    assert why in message


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ([], "must be a JSON object"),
        ({"department": "icu"}, "list of 1 to 50 values"),
        ({"department": []}, "list of 1 to 50 values"),
        ({"department": list(range(51))}, "list of 1 to 50 values"),
        ({"department": ["\x00"]}, "NUL"),
    ],
)
def test_bad_alternatives_are_refused_with_one_sentence(api, collection, wanted, why):
    response = post(api, metadata_any=wanted)
    assert response.status_code == 400, response.content
    (message,) = response.json()["filters"]["metadata_any"]
    assert why in message


@on_several_connections
def test_the_trace_says_what_was_searched(api, staff_api, papers):
    body = {"query": "What is hand hygeine?", "explain": True}
    trace = api.post(URL, body, format="json").json()["trace"]
    assert trace["question"] == body["query"]
    assert trace["query"] == trace["reformulation"]["query"] == "What is hand hygiene?"
    assert (trace["reformulation"]["by"], trace["reformulation"]["changed"]) == ("rules", True)
    named = api.post(URL, {**body, "method": "rrf"}, format="json").json()["trace"]
    assert (named["query"], named["reformulation"]) == (body["query"], None)


@on_several_connections
def test_why_a_model_did_not_reformulate_is_for_staff(api, staff_api, papers, settings):
    settings.QUERY_REFORMULATOR = {
        "BACKEND": "retrieval.search.model_reformulator.ModelReformulator",
        "OPTIONS": {"base_url": "http://127.0.0.1:9/v1", "api_key": "", "model": "tiny"},
    }
    body = {"query": "hand hygiene " * 20, "explain": True}
    told = staff_api.post(URL, body, format="json").json()["trace"]["reformulation"]
    assert "could not be reached" in told["notice"]
    assert api.post(URL, body, format="json").json()["trace"]["reformulation"]["notice"] == ""
