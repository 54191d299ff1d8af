"""Several language models: who may choose which, what is saved with the answer, and what it costs."""

import re

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser, Group
from django.test import AsyncClient
from rest_framework.test import APIClient

from chat.answering import writers
from chat.models import Answer, Conversation, LanguageModel, ModelTrial, QuestionCount
from chat.streaming import asking, streams
from retrieval.models import Collection
from tests.support.asking import answered, client_of
from tests.support.keys import key_of
from tests.support.libraries import library_of
from tests.support.model_server import call_pieces, model_server
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor pump for heating. It may carry glycol."
QUESTION = "May the MX-9920-W carry glycol?"
CHANGE = "/admin/chat/languagemodel/{}/change/"
HTMX = {"HX-Request": "true"}


library = library_of({"pump.md": PUMP})


@pytest.fixture
def small(model, settings):
    """Return the built-in model, from the settings."""
    settings.OPENAI_MODEL, settings.OPENAI_API_KEY = "small", "key-of-small"
    model.pieces = ["It may carry glycol [1]."]
    return model


@pytest.fixture
def large(small, settings):
    """Return a server beside the built-in model; :func:`add` makes a model of it."""
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    with model_server() as server:
        server.pieces = ["Glycol may be carried by the pump [1]."]
        server.usage = {"prompt_tokens": 1000, "completion_tokens": 100}
        yield server


def add(server, *groups, name="large", **values):
    row = LanguageModel(name=name, base_url=server.url, model="org/large-v2", **values)
    row.api_key = "key-of-large"
    row.save()
    row.groups.set(groups)
    return row


def ask(user=None, **options):
    return answered(QUESTION, user=user or AnonymousUser(), **options)


def test_the_chosen_model_writes_is_saved_and_counted_with_its_prices(library, large):
    user = make_reader("reader")
    add(large, price_prompt=2, price_completion=10)
    answer = ask(user, model="large")
    assert (answer.generator, answer.model, answer.text) == ("large", "large", "Glycol may be carried by the pump [1].")
    assert answer.usage["cost"] == 0.003
    assert float(QuestionCount.objects.get(user=user).cost) == 0.003
    (request,) = large.requests
    assert (request["model"], large.headers[0]["Authorization"]) == ("org/large-v2", "Bearer key-of-large")
    # No model is chosen: the built-in one answers, and the cache serves no answer of another model.
    answer = ask(user)
    assert (answer.generator, answer.model, answer.repeats) == ("small", "", None)
    assert len(large.requests) == 1


def test_the_conversation_keeps_its_model_and_asking_anew_does_not_change_it(library, large):
    add(large)
    again = {"conversation_id": ask(model="large").conversation_id}
    assert ask(**again).generator == "large"
    assert ask(**again, model="small", anew=True).generator == "small"
    assert ask(**again).generator == "large"
    assert ask(**again, model="small").generator == "small"
    LanguageModel.objects.update(is_enabled=False)
    Conversation.objects.update(model="large")
    assert ask(**again, anew=True).generator == "small"


def test_the_default_row_writes_for_those_who_may_choose_it(library, large, settings):
    group = Group.objects.create(name="Editors")
    editor = make_reader("editor")
    editor.groups.add(group)
    row = add(large, group, is_default=True)
    assert (list(writers.list_language_models(editor)), writers.choose_writer(AnonymousUser())) == (
        ["large", "small"],
        "small",
    )
    assert (ask(editor).generator, ask().generator) == ("large", "small")
    other = add(large, name="other", is_default=True)
    row.refresh_from_db()
    assert (row.is_default, writers.choose_writer(editor)) == (False, "other")
    other.is_enabled = False
    other.save()
    assert writers.choose_writer(editor) == "small"
    # The documents are quoted if the reader may choose no model.
    settings.OPENAI_BASE_URL = ""
    asked_before = len(large.requests)
    assert (ask().generator, len(large.requests)) == ("extractive", asked_before)


def test_a_model_that_is_taken_away_or_whose_key_is_lost_writes_nothing(library, large, settings):
    row = add(large)
    asked = asking.create_answer(QUESTION, user=AnonymousUser(), visitor="browser-1", model="large")
    row.groups.set([Group.objects.create(name="Editors")])
    async_to_sync(streams.complete_answer)(asked.pk)
    asked.refresh_from_db()
    assert (asked.status, "large" in asked.error) == (Answer.Status.FAILED, True)
    row.groups.clear()
    LanguageModel.objects.update(secret="of another site")
    answer = ask(model="large")
    assert (answer.generator, "language model did not answer" in answer.notice) == ("extractive", True)
    assert not large.requests


@pytest.fixture
def closed(library, large):
    """Return a model for editors alone."""
    return add(large, Group.objects.create(name="Editors"))


@pytest.fixture
def reader():
    return make_reader("reader", password="a long password")


def test_programs_cannot_choose_what_the_reader_may_not(closed, reader):
    program = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(reader)}")
    page = client_of(reader)
    for name in ("large", "nothing"):
        refused = program.post("/api/v1/ask/", {"question": QUESTION, "model": name}, format="json")
        assert (refused.status_code, list(refused.json())) == (400, ["model"])
        body = {"model": f"ragsite@{name}", "messages": [{"role": "user", "content": QUESTION}]}
        refused = program.post("/v1/chat/completions", body, format="json")
        assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")
        assert page.post("/ask/", {"question": QUESTION, "model": name}, headers=HTMX).status_code == 422
    assert not [each for each in program.get("/v1/models").json()["data"] if "@" in each["id"]]
    assert 'name="model"' not in page.get("/").content.decode()
    assert not Answer.objects.exists()


def test_programs_and_pages_of_those_who_may_choose(closed, reader):
    reader.groups.add(*closed.groups.all())
    program = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(reader)}")
    answered = program.post("/api/v1/ask/", {"question": QUESTION, "model": "large"}, format="json").json()
    assert answered["generator"] == "large"
    listed = [each["id"] for each in program.get("/v1/models").json()["data"]]
    slug = Collection.objects.get().slug
    both = ["ragsite", f"ragsite/{slug}"]
    assert listed[:6] == [*both, *(f"{one}@{name}" for name in ("small", "large") for one in both)]
    for model in (f"ragsite/{slug}@large", "ragsite@small", "ragsite"):
        body = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
        completion = program.post("/v1/chat/completions", body, format="json").json()
        assert (completion["model"], completion["generator"]) == (model, "large" if "large" in model else "small")
    shown = client_of(reader).get(f"/c/{answered['conversation']}/").content.decode()
    assert shown.count('name="model"') == 2
    assert shown.count("<option selected>large</option>") == 2


async def test_a_streamed_answer_can_be_asked_anew_of_another_model(library, large):
    await sync_to_async(add)(large)
    browser = AsyncClient()
    await browser.post("/ask/", {"question": QUESTION, "model": "large"}, headers=HTMX)
    answer = await Answer.objects.aget()
    response = await browser.get(f"/answers/{answer.pk}/stream/")
    streamed = b"".join([piece async for piece in response.streaming_content]).decode()
    assert '<select class="action" name="model"' in streamed
    assert "<option selected>large</option>" in streamed


# The admin's page.


FIELDS = {"name": "large", "model": "m", "context_tokens": 8000, "price_prompt": 0, "price_completion": 0}


def test_an_address_is_checked_before_it_is_saved(admin_client, small):
    for address, said in (
        ("ftp://models.example/v1", "must look like"),
        ("https://me:secret@models.example/v1", "a name or a password"),
        ("http://169.254.169.254/v1", "SOURCE_PRIVATE_HOSTS"),
        ("http://127.0.0.1:9/v1", "SOURCE_PRIVATE_HOSTS"),
        ("nonsense", "must look like"),
    ):
        page = admin_client.post("/admin/chat/languagemodel/add/", {**FIELDS, "base_url": address, "is_enabled": "on"})
        assert said in page.content.decode(), address
        assert not LanguageModel.objects.exists()


def test_the_key_is_encrypted_never_shown_and_goes_to_no_other_address(admin_client, small, settings):
    values = {**FIELDS, "base_url": f"{small.url}/", "api_key": "a-new-key", "is_enabled": "on"}
    assert admin_client.post("/admin/chat/languagemodel/add/", {**values, "name": "small"}).status_code == 200
    assert admin_client.post("/admin/chat/languagemodel/add/", values).status_code == 302
    row = LanguageModel.objects.get()
    assert (row.base_url, row.api_key, "a-new-key" in row.secret) == (small.url, "a-new-key", False)
    address = CHANGE.format(row.pk)
    assert "a-new-key" not in admin_client.get(address).content.decode()
    admin_client.post(address, {**values, "api_key": "", "context_tokens": 9000})
    row.refresh_from_db()
    assert (row.context_tokens, row.api_key) == (9000, "a-new-key")
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    admin_client.post(address, {**values, "api_key": "", "base_url": "http://127.0.0.1:9/v1"})
    row.refresh_from_db()
    assert (row.base_url, row.api_key) == ("http://127.0.0.1:9/v1", "")


def test_an_address_is_checked_again_when_it_is_connected_to(admin_client, library, large, settings):
    """The name may resolve to another machine by then."""
    row = add(large)
    assert ask(model="large").generator == "large"
    settings.SOURCE_PRIVATE_HOSTS = []
    answer = ask(model="large", anew=True)
    assert (answer.generator, len(large.requests)) == ("extractive", 1)
    assert answer.notice
    tested = admin_client.post(f"/admin/chat/languagemodel/{row.pk}/test/").content.decode()
    assert "127.0.0.1 is inside this site&#x27;s own network" in tested
    assert len(large.requests) == 1


def facts(page):
    return re.findall(r"<td>(.*)</td>", page.partition('id="content-main"')[2])


def test_the_test_shows_what_the_model_can_do_or_why_it_does_not_answer(admin_client, large):
    address = f"/admin/chat/languagemodel/{add(large).pk}/test/"
    assert (
        "It takes as long as four short answers."
        in admin_client.get(address.replace("test", "change")).content.decode()
    )
    assert admin_client.get(address).status_code == 405
    large.pieces = ["It opens at 9 [1]. ", "A repair of <b>17</b> pumps costs 40 euros [2]."]
    large.rounds = [call_pieces('{"question": "How many pumps weigh more than 2 kg?"}')]
    shown = admin_client.post(address).content.decode()
    assert "It opens at 9 [1]. A repair of &lt;b&gt;17&lt;/b&gt; pumps costs 40 euros [2]." in shown
    assert facts(shown)[2:] == ["yes", "yes"]
    assert ModelTrial.objects.get().uses_functions
    large.pieces = ["It opens at 9."]
    shown = admin_client.post(address).content.decode()
    assert [value.partition(":")[0] for value in facts(shown)[2:]] == ["no", "no"]
    large.statuses, large.said = [401], "no such key: key-of-large"
    shown = admin_client.post(address).content.decode()
    assert "The model server refused the API key (HTTP 401)." in shown
    assert facts(shown) == ["–"] * 4
