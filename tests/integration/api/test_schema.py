"""The API's real answers, refusals included, match the schema."""

import json
import re
from functools import cache

import jsonschema
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from chat.models import Answer, Conversation, Feedback
from retrieval.models import Source

pytestmark = pytest.mark.django_db

REFUSALS = {"400", "401", "403", "404", "405", "429", "503"}


@cache
def described():
    """Return the site's schema. Making it takes longer than most of these tests."""
    return APIClient().get("/api/schema/?format=json").json()


@pytest.fixture
def schema():
    return described()


@pytest.fixture
def answer(staff):
    conversation = Conversation.objects.create(owner=staff, title="The pump")
    made = Answer.objects.create(
        conversation=conversation, question="How heavy?", text="Heavy.", status="completed", search_method="zscore"
    )
    Feedback.objects.create(answer=made, helpful=True)
    return made


def assert_told(schema, path, response):
    """Assert that the schema lists the response's status, media type and body for its operation."""
    method = response.request["REQUEST_METHOD"].lower()
    operations = schema["paths"][path]
    # An operation that is refused for its method has the refusals of the others.
    told = (operations.get(method) or next(iter(operations.values())))["responses"][str(response.status_code)]
    for header in told.get("headers", {}):
        assert header in response.headers
    plain = as_json_schema(told["content"][response.headers["Content-Type"].partition(";")[0]]["schema"])
    plain["components"] = as_json_schema(schema["components"])
    jsonschema.Draft202012Validator(plain, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(
        response.json()
    )


def as_json_schema(node):
    """OpenAPI 3.0's `nullable` in the words of JSON Schema."""
    if isinstance(node, list):
        return [as_json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: as_json_schema(each) for name, each in node.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


def test_every_operation_names_its_refusals(schema):
    seen = 0
    for path, operations in schema["paths"].items():
        if path == "/api/schema/":
            continue
        for method, operation in operations.items():
            responses = operation["responses"]
            assert set(responses) >= REFUSALS, (method, path)
            if "requestBody" in operation:
                assert {"413", "415", "507"} <= set(responses), (method, path)
            form = json.dumps(responses["403"]["content"])
            assert ("OpenAIProblem" if path.startswith("/v1/") else "/Problem") in form, (method, path)
            assert "Retry-After" in responses["429"]["headers"]
            seen += 1
    assert seen >= 18


def test_an_open_site_says_that_no_key_is_needed(api, settings):
    def security(path, method):
        return api.get("/api/schema/?format=json").json()["paths"][path][method]["security"]

    assert {} in security("/api/v1/ask/", "post")
    assert {} in security("/api/v1/collections/", "get")
    assert {} not in security("/api/v1/collections/", "post")
    assert {} not in security("/api/v1/documents/", "get")
    settings.CHAT_REQUIRES_LOGIN = True
    assert {} not in security("/api/v1/ask/", "post")


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("post", "/api/v1/search/", {"data": {"query": ""}, "format": "json"}, 400),
        ("post", "/api/v1/search/", {"data": {"query": "a", "filters": {"dates": [3]}}, "format": "json"}, 400),
        ("post", "/api/v1/search/", {"data": "[" * 100_000, "content_type": "application/json"}, 400),
        ("post", "/api/v1/search/", {"data": b" " * (6 * 2**20), "content_type": "application/json"}, 413),
        ("post", "/api/v1/search/", {"data": "query=a", "content_type": "text/plain"}, 415),
        ("get", "/api/v1/search/", {}, 405),
        ("get", "/api/v1/documents/", {}, 401),
        ("get", "/api/v1/conversations/", {"headers": {"Authorization": "Token wrong"}}, 401),
        ("get", "/api/v1/conversations/?limit=many", {}, 400),
        ("get", "/api/v1/conversations/?offset=-1", {}, 400),
        ("get", "/api/v1/conversations/?offset=99999999999999999999", {}, 400),
        ("post", "/v1/chat/completions", {"data": {"messages": []}, "format": "json"}, 400),
        ("post", "/v1/chat/completions", {"data": "{}", "content_type": "text/plain"}, 415),
        ("delete", "/v1/chat/completions", {}, 405),
        ("post", "/v1/embeddings", {"data": {"model": "m", "input": []}, "format": "json"}, 400),
        ("get", "/v1/models", {"headers": {"Authorization": "Basic eDp4"}}, 401),
    ],
)
def test_refusals_are_as_the_schema_says(api, schema, method, path, options, status):
    response = getattr(api, method)(path, **options)
    assert response.status_code == status
    assert_told(schema, path.partition("?")[0], response)


def test_a_refusal_for_too_many_requests_is_as_the_schema_says(api, schema, monkeypatch):
    from rest_framework.throttling import ScopedRateThrottle

    monkeypatch.setattr(ScopedRateThrottle, "THROTTLE_RATES", {"search": "1/min", "ask": "1/min"})
    for _ in range(2):
        response = api.post("/api/v1/search/", {"query": ""}, format="json")
    assert response.status_code == 429
    assert_told(schema, "/api/v1/search/", response)


def test_answers_are_as_the_schema_says(staff_api, schema, answer, collection, ingest):
    document = ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    for path, values in {
        "/api/v1/answers/{answer_id}/": {"answer_id": answer.pk},
        "/api/v1/collections/": {},
        "/api/v1/conversations/": {},
        "/api/v1/conversations/{id}/": {"id": answer.conversation_id},
        "/api/v1/documents/": {},
        "/api/v1/documents/{id}/": {"id": document.pk},
        "/v1/models": {},
    }.items():
        response = staff_api.get(re.sub(r"{(\w+)}", lambda found, values=values: str(values[found[1]]), path))
        assert response.status_code == 200
        assert_told(schema, path, response)
    found = staff_api.post("/api/v1/search/", {"query": "pump", "explain": True}, format="json")
    assert found.status_code == 200
    assert_told(schema, "/api/v1/search/", found)


def test_operations_are_grouped_and_have_titles(schema):
    groups = {tag["name"] for tag in schema["tags"]}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert set(operation["tags"]) <= groups, (method, path)
            assert 5 <= len(operation["summary"]) <= 100, (method, path, operation["summary"])
            if method in ("put", "patch", "delete", "post"):
                assert not operation["summary"].startswith(("Read one of", "List the")), (method, path)


UNKNOWN, NO_FLAG, NO_TEXT = ["Unknown field."], ["This must be true or false."], ["This must be a string."]


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/api/v1/search/", {"query": "a", "topk": 3}, {"topk": UNKNOWN}),
        ("/api/v1/search/", {"query": "a", "\ud800": 3}, {"?": UNKNOWN}),
        ("/api/v1/search/", {"query": "a", "filters": {"language": "en"}}, {"filters": {"language": UNKNOWN}}),
        ("/api/v1/ask/", {"question": "a", "temperature": 3}, {"temperature": UNKNOWN}),
        ("/api/v1/collections/", {"slug": "a", "name": "A", "public": True}, {"public": UNKNOWN}),
        ("/api/v1/collections/", {"slug": 7, "name": 0}, {"slug": NO_TEXT, "name": NO_TEXT}),
        *(
            ("/api/v1/search/", {"query": "a", "explain": value}, {"explain": NO_FLAG})
            for value in (0, 1, "true", "", [], "\ud800")
        ),
    ],
)
def test_what_is_unknown_or_of_another_type_is_refused_by_name(staff_api, path, body, refusal):
    response = staff_api.post(path, json.dumps(body), content_type="application/json")
    assert (response.status_code, response.json()) == (400, refusal)


def test_no_reason_may_be_given_as_an_empty_one(staff_api, answer):
    url = f"/api/v1/answers/{answer.pk}/feedback/"
    response = staff_api.post(url, {"helpful": False, "reason": ""}, format="json")
    assert response.status_code == 200
    assert response.json()["reason"] == ""


def test_both_names_of_the_last_event_are_looked_at(staff_api, schema, answer):
    url = f"/api/v1/answers/{answer.pk}/stream/?after=1-2"
    response = staff_api.get(url, headers={"Last-Event-ID": "the last"})
    assert (response.status_code, list(response.json())) == (400, ["Last-Event-ID"])
    assert_told(schema, "/api/v1/answers/{answer_id}/stream/", response)


def test_pushes_are_as_the_schema_says(staff, staff_api, schema, collection):
    source = Source.objects.create(collection=collection, name="Wiki", kind="push")
    base = "/api/v1/documents/by-source/{source_id}"
    assert set(schema["paths"][f"{base}/batch"]) == {"post"}
    assert [each["name"] for each in schema["paths"][f"{base}/batch"]["post"]["parameters"]] == ["source_id"]
    one, batch = f"{base}/{{external_id}}", f"{base}/batch"
    at, page = base.format(source_id=source.pk), {"text": "The pump.", "changed_at": "2026-01-02T00:00:00Z"}
    file = {"file": SimpleUploadedFile("a.md", b"# A")}
    items = [{"external_id": "b", "text": "B."}, {"external_id": "c"}, {"external_id": "b", "action": "delete"}]
    for method, path, address, body, status in (
        ("put", one, "a/b", page, 202),
        ("put", one, "a/b", page, 200),
        ("get", one, "a/b", None, 200),
        ("put", one, "a/b", {**page, "changed_at": "2026-01-01T00:00:00Z"}, 409),
        ("put", one, "a/b", {"text": ""}, 400),
        ("put", one, "a/b", {"text": "x", "readers": {"groups": 7}}, 400),
        ("put", one, "sheet", file, 202),
        ("get", one, "missing", None, 404),
        ("delete", one, "a/b?changed_at=2026-01-01T00:00:00Z", None, 409),
        ("delete", one, "a/b?changed_at=yesterday", None, 400),
        ("post", batch, "batch", {"items": items}, 200),
        ("post", batch, "batch", {"items": []}, 400),
    ):
        kind = {} if body is None else {"data": body, "format": "multipart" if "file" in body else "json"}
        response = getattr(staff_api, method)(f"{at}/{address}", **kind)
        assert response.status_code == status, (address, response.json())
        assert_told(schema, path, response)
