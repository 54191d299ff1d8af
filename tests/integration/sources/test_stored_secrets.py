"""A stored secret goes to the server for which it was given, and to no other."""

import threading

import pytest
from django.db import connection
from django.urls import reverse

from chat.models import LanguageModel
from retrieval.models import Source, Webhook
from retrieval.models.source import DESTINATION_OPTIONS
from retrieval.sources.kinds import KINDS
from retrieval.sources.options import SecretField, read_all_options
from tests.integration.sources.test_surfaces import curator  # noqa: F401 (a fixture)
from tests.support.asking import client_of
from tests.support.people import make_superuser
from tests.support.sources import make_source

SECRET = "t0p-secret"
URL = "https://files.example:8443/a"
OTHER_SERVERS = [
    "https://evil.example:8443/a",
    "http://files.example:8443/a",
    "https://files.example/a",
    "https://files.example.evil.example:8443/a",
    "https://evil.example:8443/a?https://files.example:8443/a",
]
SAME_SERVER = ["https://files.example:8443/b", "https://FILES.example:8443/a"]
MAILBOX = {"host": "mail.example", "port": 993, "security": "tls", "folder": "INBOX"}
# Each kind has its options, the name of its address, other options, and whether these are for the same server.
ADDRESSES = {
    "website": ("url", {"way": "crawl", "depth": 1, "delay": 1}),
    "git": ("repository", {}),
    "webdav": ("url", {}),
    "feed": ("url", {"content": "page"}),
    "confluence": ("url", {"space": "HB"}),
    "mediawiki": ("url", {"namespace": 0}),
    "s3": ("endpoint", {"region": "r", "bucket": "books", "access_key": "me"}),
}
CASES = [
    (kind, {address: URL, **others}, {address: now}, now in SAME_SERVER)
    for kind, (address, others) in ADDRESSES.items()
    # All kinds compare addresses by one function: one kind meets all of them.
    for now in ((*OTHER_SERVERS, *SAME_SERVER) if kind == "website" else (*OTHER_SERVERS[:2], SAME_SERVER[0]))
] + [
    ("mailbox", MAILBOX, change, change in ({"folder": "Sent"}, {"host": "MAIL.example"}))
    for change in (
        *({"host": "evil.example"}, {"port": 994}, {"security": "none"}, {"security": "starttls"}),
        *({"folder": "Sent"}, {"host": "MAIL.example"}),
    )
]
# Options that say what is read, and in whose name, not from where.
HARMLESS = {
    *("include", "exclude", "username", "base_url", "way", "depth", "delay", "branch", "folder", "content", "space"),
    *("namespace", "region", "bucket", "key_prefix", "access_key", "path", "takes_readers", "reader_names"),
}

pytestmark = pytest.mark.django_db


def secret_name(kind):
    names = [name for name, field in KINDS[kind].form.base_fields.items() if isinstance(field, SecretField)]
    assert len(names) <= 1
    return names[0] if names else ""


def test_each_option_of_each_kind_is_known_as_a_destination_or_as_harmless():
    for name, kind in KINDS.items():
        # All settings of a connector are destinations, with its name.
        known = {*DESTINATION_OPTIONS, *HARMLESS, "connector", secret_name(name)}
        assert {*kind.form.base_fields} <= known, name
    assert {kind for kind, *_ in CASES} == {kind for kind in KINDS if secret_name(kind)}


@pytest.mark.parametrize(("kind", "options", "change", "is_kept"), CASES)
def test_a_changed_server_or_encryption_removes_the_password(curator, collection, kind, options, change, is_kept):  # noqa: F811
    name = secret_name(kind)
    source = make_source(collection, kind, {**options, name: SECRET})
    page = client_of(curator)
    address = reverse("admin:retrieval_source_change", args=[source.pk])
    shown = page.get(address).content.decode()
    assert "or removed if the server, its port or its encryption changes" in shown
    fields = {"name": "Shelf", "interval_minutes": 60, **options, **change, name: ""}
    answer = page.post(address, fields, follow=True).content.decode()
    source.refresh_from_db()
    assert source.options[next(iter(change))] == next(iter(change.values()))
    assert (read_all_options(source).get(name), "secret was removed" in answer) == (
        SECRET if is_kept else None,
        not is_kept,
    )
    # One that is typed with the change is for the new server.
    page.post(address, {**fields, name: "another"})
    source.refresh_from_db()
    assert read_all_options(source)[name] == "another"


def test_a_change_outside_the_form_removes_it_too(collection):
    kept = {"way": "crawl", "depth": 1, "delay": 1, "url": URL}
    source = make_source(collection, "website", {**kept, "password": SECRET})
    source.interval_minutes = 5
    source.save(update_fields=["interval_minutes"])
    assert read_all_options(Source.objects.get())["password"] == SECRET
    source.options = {**source.options, "url": OTHER_SERVERS[0]}
    source.save(update_fields=["options"])
    assert "password" not in read_all_options(Source.objects.get())
    source = make_source(collection, "feed", {"url": URL, "content": "page", "password": SECRET}, name="Feed")
    source.kind = "webdav"
    source.save()
    assert not Source.objects.get(pk=source.pk).secret


def test_a_request_that_runs_meanwhile_does_not_bring_a_removed_one_back(collection):
    """One request moves the source and types a password of its own; another request had read the source before."""
    make_source(collection, "feed", {"url": URL, "content": "page", "password": SECRET})
    late, early = Source.objects.get(), Source.objects.get()
    for row, given in ((early, "mine"), (late, "")):
        row.options = {**row.options, "url": OTHER_SERVERS[0]}
        if given:
            row.set_secret('{"password": "mine"}')
        row.save()
    assert read_all_options(Source.objects.get())["password"] == "mine"


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_never_send_the_old_one_to_the_new_server(collection):
    make_source(collection, "feed", {"url": URL, "content": "page", "password": SECRET})
    barrier = threading.Barrier(4)

    def change(given):
        row = Source.objects.get()
        row.options = {**row.options, "url": OTHER_SERVERS[0]}
        if given:
            row.set_secret('{"password": "mine"}')
        barrier.wait(30)
        row.save()
        connection.close()

    threads = [threading.Thread(target=change, args=(given,)) for given in (True, False, True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_all_options(Source.objects.get()).get("password") in (None, "mine")


@pytest.mark.parametrize("now", [*OTHER_SERVERS, *SAME_SERVER])
def test_a_key_of_a_language_model_and_the_secret_of_a_webhook_go_to_their_server_alone(monkeypatch, now):
    monkeypatch.setattr("chat.admin.resolve_host", lambda *_: ["192.0.2.1"])
    page = client_of(make_superuser("boss"))
    model = LanguageModel(name="large", base_url=URL, model="m")
    model.api_key = SECRET
    model.save()
    address = reverse("admin:chat_languagemodel_change", args=[model.pk])
    fields = {"name": "large", "model": "m", "context_tokens": 16000, "price_prompt": 0, "price_completion": 0}
    answer = page.post(address, {**fields, "base_url": now, "api_key": "", "is_enabled": "on"}, follow=True)
    model.refresh_from_db()
    is_kept = now in SAME_SERVER
    assert model.base_url == now
    assert (model.api_key, "secret was removed" in answer.content.decode()) == (SECRET if is_kept else "", not is_kept)

    webhook = Webhook(address=URL, events=["document.failed"])
    webhook.set_secret(SECRET)
    webhook.save()
    before = webhook.secret
    address = reverse("admin:retrieval_webhook_change", args=[webhook.pk])
    answer = page.post(address, {"address": now, "events": ["document.failed"], "new_secret": ""}, follow=True)
    webhook.refresh_from_db()
    assert webhook.address == now
    assert (webhook.secret == before, "shown only once" in answer.content.decode()) == (is_kept, not is_kept)
    assert webhook.secret
