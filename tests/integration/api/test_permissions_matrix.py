"""Every address of the API and every kind of caller: who may call it. An address without a row here fails."""

import uuid

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chat.models import Answer, Conversation
from retrieval.models import Document, PushedItem, Source
from tests.support.addresses import addresses
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db

# "asker" asked the question; the two staff accounts did not.
CALLERS = ["anonymous", "other", "staff without", "staff with", "superuser", "asker"]
ALL_PERMISSIONS = [
    *(
        "view_document",
        "add_document",
        "change_document",
        "delete_document",
        "add_collection",
        "view_answer",
        "change_answer",
    )
]


def same(code):
    return [code] * 6


# Name of the address and method: what each of CALLERS gets.
EXPECTED = {
    ("schema", "GET"): same(200),
    ("api_docs", "GET"): same(200),
    ("retrieval_api:search", "POST"): same(400),
    ("retrieval_api:filters", "GET"): same(200),
    ("retrieval_api:collections", "GET"): same(200),
    ("retrieval_api:collections", "POST"): [401, 403, 403, 400, 400, 403],
    ("retrieval_api:document-list", "GET"): [401, 403, 403, 200, 200, 403],
    ("retrieval_api:document-list", "POST"): [401, 403, 403, 202, 202, 403],
    ("retrieval_api:document-detail", "GET"): [401, 403, 403, 200, 200, 403],
    ("retrieval_api:document-detail", "DELETE"): [401, 403, 403, 204, 204, 403],
    ("retrieval_api:pushed_document", "GET"): [401, 403, 403, 200, 200, 403],
    ("retrieval_api:pushed_document", "PUT"): [401, 403, 403, 202, 202, 403],
    ("retrieval_api:pushed_document", "DELETE"): [401, 403, 403, 204, 204, 403],
    ("retrieval_api:push_batch", "GET"): [401, 403, 403, 404, 404, 403],
    ("retrieval_api:push_batch", "PUT"): [401, 403, 403, 202, 202, 403],
    ("retrieval_api:push_batch", "DELETE"): [401, 403, 403, 204, 204, 403],
    ("retrieval_api:push_batch", "POST"): [401, 403, 403, 200, 200, 403],
    ("chat_api:ask", "POST"): same(400),
    ("chat_api:answer", "GET"): [404, 404, 404, 200, 200, 200],
    ("chat_api:answer_stream", "GET"): [404, 404, 404, 200, 200, 200],
    ("chat_api:stop", "POST"): [404, 404, 404, 204, 204, 204],
    ("chat_api:feedback", "POST"): [404, 404, 404, 404, 404, 201],
    ("chat_api:conversation-list", "GET"): same(200),
    ("chat_api:conversation-detail", "GET"): [404, 404, 404, 404, 404, 200],
    ("chat_api:conversation-detail", "DELETE"): [404, 404, 404, 404, 404, 204],
    ("openai_api:completions", "POST"): same(400),
    ("openai_api:embeddings", "POST"): same(400),
    ("openai_api:models", "GET"): same(200),
    ("openai_api:model", "GET"): same(200),
    # Whatever the method.
    ("openai_api:not_offered", "GET"): same(404),
}
BODIES = {
    ("chat_api:feedback", "POST"): {"helpful": True},
    ("retrieval_api:pushed_document", "PUT"): {"text": "Other words."},
    ("retrieval_api:push_batch", "PUT"): {"text": "Words."},
    ("retrieval_api:push_batch", "POST"): {"items": [{"external_id": "b", "text": "Words."}]},
}


def test_every_address_and_method_has_its_row():
    offered = set()
    for name, route, view in addresses():
        if route.startswith(("/api/", "/v1/")):
            methods = getattr(view, "actions", None) or [
                method for method in ("get", "post", "put", "patch", "delete") if hasattr(view.cls, method)
            ]
            # The framework adds HEAD to a view when it is first asked.
            offered |= {(name, method.upper()) for method in methods if method != "head"}
    assert offered | {("openai_api:not_offered", "GET")} == set(EXPECTED)


@pytest.fixture
def people():
    made = {
        "anonymous": AnonymousUser(),
        "other": make_reader("other"),
        "staff without": make_staff("without"),
        "staff with": make_staff("with"),
        "superuser": make_superuser("boss"),
        "asker": make_reader("asker"),
    }
    made["staff with"].user_permissions.add(*Permission.objects.filter(codename__in=ALL_PERMISSIONS))
    return made


@pytest.mark.parametrize(("name", "method"), EXPECTED, ids=lambda part: part)
def test_who_may_call_it(name, method, people, collection):
    cache.clear()
    got = []
    for caller in CALLERS:
        conversation = Conversation.objects.create(owner=people["asker"], title="Mine")
        answer = Answer.objects.create(
            conversation=conversation, question="Why?", text="So.", status=Answer.Status.COMPLETED
        )
        document = Document.objects.create(collection=collection, source=f"{uuid.uuid4()}.md")
        source = Source.objects.create(collection=collection, name=str(uuid.uuid4()), kind="push")
        pushed = Document.objects.create(collection=collection, source=f"{source}/a.md", origin=source)
        sent_at = {"result": "added", "sent_at": timezone.now()}
        PushedItem.objects.create(source=source, external_id="a", name=pushed.source, **sent_at)
        arguments = {
            "retrieval_api:document-detail": [document.pk],
            "retrieval_api:pushed_document": [source.pk, "a"],
            "retrieval_api:push_batch": [source.pk],
            "openai_api:model": ["ragsite"],
            "openai_api:not_offered": ["elsewhere"],
            "chat_api:conversation-detail": [conversation.pk],
        }.get(name, [answer.pk] if name.startswith("chat_api:") and "{" not in name else [])
        if name in ("chat_api:ask", "chat_api:conversation-list"):
            arguments = []
        client = APIClient(raise_request_exception=False)
        if caller != "anonymous":
            client.force_authenticate(people[caller])
        address = reverse(name, args=arguments)
        if name == "retrieval_api:document-list" and method == "POST":
            body = {"file": SimpleUploadedFile("a.md", b"# A\n\nWords."), "collection": collection.slug}
            response = client.post(address, body, format="multipart")
        else:
            sent = BODIES.get((name, method), {}) if method != "GET" else None
            response = (
                client.generic(method, address)
                if sent is None
                else getattr(client, method.lower())(address, sent, format="json")
            )
        got.append(response.status_code)
        if response.status_code == 403:
            assert response.json() == {
                "detail": "Your account may not do this: ask an administrator for the permission."
            }
    assert dict(zip(CALLERS, got, strict=True)) == dict(zip(CALLERS, EXPECTED[name, method], strict=True))


def test_who_may_add_and_not_change_does_not_replace(collection):
    adder = make_staff("adder", "add_document")
    client = APIClient()
    client.force_authenticate(adder)

    def upload(data):
        body = {"file": SimpleUploadedFile("a.md", data), "collection": collection.slug}
        return client.post("/api/v1/documents/", body, format="multipart")

    assert upload(b"# A\n\nWords.").status_code == 202
    refused = upload(b"# A\n\nOther words.")
    assert refused.status_code == 400
    [rejected] = refused.json()["rejected"]
    assert rejected["error"] == "a.md is there already, and your account may not change documents."
    assert Document.objects.get().file.read() == b"# A\n\nWords."
