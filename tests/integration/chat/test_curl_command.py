"""A search as a command for a terminal: what it prints finds the same passages over the API."""

import json
import re
import shlex
from html import unescape

import pytest
from rest_framework.test import APIClient

from chat.models import Answer
from retrieval.models import Collection
from tests.support.asking import answered, client_of
from tests.support.keys import key_of
from tests.support.libraries import library_of
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its seal kits cost 12 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams & more. Its price is 15 euros.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. An elephant is heavy, and weighs 5000 kg.",
}
QUESTION = 'What\'s the weight of the "MX-9920-W" <pump> $HOME?'

library = library_of(TEXTS)


@pytest.fixture
def staff(db):
    return make_superuser("admin", password="a long enough one")


def printed(page):
    """Return the words of the printed command as a shell reads them."""
    [command] = re.findall(r'<pre id="curl-\w+" tabindex="0">(.*?)</pre>', page, re.S)
    return shlex.split(unescape(command))


def executed(words, user):
    """Send what the command would send, with a key of the user in $API_KEY."""
    address, header = words[words.index("-s") + 1], words[words.index("-H") + 1]
    assert header == "Authorization: Bearer $API_KEY"
    body = words[words.index("--data") + 1]
    api = APIClient(HTTP_AUTHORIZATION=header.removeprefix("Authorization: ").replace("$API_KEY", key_of(user)))
    response = api.post(address.removeprefix("http://testserver"), body, content_type="application/json")
    assert response.status_code == 200, response.content
    return json.loads(body), response.json()


def test_the_panels_command_finds_the_same_first_passage(library, staff):
    answer = answered(QUESTION, collection=library.slug)
    words = printed(client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode())
    body, found = executed(words, staff)
    assert body["explain"] is True
    assert body["collection"] == library.slug
    first = answer.trace["candidates"][0]
    assert found["results"][0]["chunk_id"] == first["chunk_id"]
    assert found["results"][0]["score"] == pytest.approx(first["score"])
    assert found["trace"]["candidates"][0]["chunk_id"] == first["chunk_id"]


def test_method_and_filters_of_the_question_are_in_the_command(library, staff, ingest):
    answer = answered(QUESTION, method="lexical")
    chosen = {"languages": ["en"], "dates": [{"field": "added", "from": "2020-01-01"}]}
    Answer.objects.filter(pk=answer.pk).update(asked_filters=chosen)
    path = f"/answers/{answer.pk}/debug/"
    body, found = executed(printed(client_of(staff).get(path).content.decode()), staff)
    assert body["filters"] == chosen
    assert body["method"] == "lexical"
    assert found["search_method"] == "lexical"
    # Whoever may not read all documents is not told which values exist.
    clerk = make_staff("clerk", "view_answer")
    secret = Collection.objects.create(slug="secret", name="Secret", visibility="members")
    ingest(secret, "hidden.md", "# Hidden\n\nWords.")
    Answer.objects.filter(pk=answer.pk).update(asked_filters={"metadata_any": {"patient": ["Jansen"]}})
    page = client_of(clerk).get(path).content.decode()
    assert "filters" not in json.loads(printed(page)[-1])
    assert "Jansen" not in page
    assert "they are not shown to you" in page


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("How heavy is the ball valve?", "How heavy is the ball valve? and its price?"),
        ("How heavy is the MX-9920-W pump?", "MX-9920-W: its price?"),
    ],
)
def test_a_follow_ups_command_searches_it_as_it_was_searched(library, staff, question, searched):
    first = answered(question)
    answer = answered("and its price?", conversation_id=first.conversation_id)
    body, found = executed(printed(client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode()), staff)
    assert body["query"] == searched
    assert found["results"][0]["chunk_id"] == answer.trace["candidates"][0]["chunk_id"]


def test_the_playgrounds_command_finds_what_the_profile_in_force_finds(library, client, staff):
    asked = {"question": QUESTION, "collection": library.slug, "a": "published", "b": "built-in", "top_k": "2"}
    client.force_login(staff)
    page = client.get("/admin/retrieval/searchprofile/playground/", asked)
    body, found = executed(printed(page.content.decode()), staff)
    side = page.context["comparison"].sides[0]
    assert body["top_k"] == 2
    assert [each["chunk_id"] for each in found["results"]] == [row.candidate.chunk_id for row in side.rows]
