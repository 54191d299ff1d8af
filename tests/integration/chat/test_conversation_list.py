"""The list of one's conversations: searched, renamed, as long as asked for."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from chat.conversations.listing import PAGE, search_conversations
from chat.models import Answer, Conversation
from tests.support.asking import client_of
from tests.support.people import make_reader, make_staff

pytestmark = pytest.mark.django_db

HTMX = {"HTTP_HX_REQUEST": "true"}


def conversation(owner, title, question="q", text="", days=0):
    made = Conversation.objects.create(owner=owner, title=title, updated_at=timezone.now() - timedelta(days=days))
    Answer.objects.create(conversation=made, question=question, text=text, status=Answer.Status.COMPLETED)
    return made


def titles(page):
    return re.findall(r'<a class="entry-title"[^>]*>([^<]*)</a>', page)


def test_words_are_found_in_titles_questions_and_answers(owner):
    seals = conversation(owner, "Pumps", "Which seal kit?", "SK-9920-W fits.")
    conversation(owner, "Visiting hours", "When?", "From two to four.")
    conversation(owner, "100% sure_thing")
    own = Conversation.objects.owned_by(owner, "")

    def found(wanted):
        return sorted(str(one) for one in search_conversations(own, owner, wanted))

    assert found("sk-9920") == ["Pumps"]
    assert found("SEAL") == ["Pumps"]
    assert found("visiting four") == ["Visiting hours"]
    assert found("visiting seal") == []
    assert found("% _") == ["100% sure_thing"]
    assert found("\0 pumps") == ["Pumps"]
    assert len(found("   ")) == 3
    # However often it is mentioned.
    Answer.objects.create(conversation=seals, question="Another seal?", status=Answer.Status.COMPLETED)
    assert found("seal") == ["Pumps"]


def test_the_search_looks_into_ones_own_conversations_alone(owner, mine):
    conversation(owner, "My seals")
    conversation(make_reader("other"), "Their seals")
    assert titles(mine.get("/", {"q": "seals"}).content.decode()) == ["My seals"]
    page = mine.get("/conversations/", {"q": "seals"}, **HTMX)
    assert titles(page.content.decode()) == ["My seals"]
    assert json.loads(page["HX-Trigger"]) == {"announce": {"sentence": "1 conversation"}}
    assert "No conversation mentions “&lt;b&gt;”." in mine.get("/", {"q": "<b>"}).content.decode()
    assert mine.get("/conversations/", {"q": "a b"})["Location"] == "/?q=a+b"


def test_the_rest_is_shown_when_asked_for(owner, mine):
    for number in range(PAGE + 3):
        conversation(owner, f"Number {number}", days=number)
    page = mine.get("/").content.decode()
    assert titles(page) == [f"Number {number}" for number in range(PAGE)]
    more = re.search(r'class="show-more" href="([^"]*)"', page)
    page = mine.get(more[1].replace("&amp;", "&")).content.decode()
    assert len(titles(page)) == PAGE + 3
    assert "show-more" not in page
    assert re.findall(r'<p class="group"[^>]*>(.*?)</p>', page) == ["Today", "Last seven days", "Earlier"]
    for nonsense in ("x", "-4", "9" * 30, "²"):
        assert mine.get("/", {"show": nonsense}).status_code == 200


def test_a_title_is_changed_by_its_owner_or_refused_with_a_sentence(owner, mine):
    made = conversation(owner, "Old")
    address = f"/c/{made.pk}/rename/"
    assert 'value="Old"' in mine.get(address, **HTMX).content.decode()
    shown = {"HTTP_HX_CURRENT_URL": f"http://testserver/c/{made.pk}/"}
    page = mine.post(address, {"title": "  A  <new> title "}, **HTMX, **shown).content.decode()
    assert "A &lt;new&gt; title · Ragsite</title>" in page
    made.refresh_from_db()
    assert made.title == "A <new> title"
    assert "<title>" not in mine.post(address, {"title": "Newer"}, **HTMX).content.decode()
    for title, sentence in (("  ", "Please type a title."), ("x" * 201, "within 200 characters")):
        refused = mine.post(address, {"title": title}, **HTMX)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()
        assert sentence in refused.content.decode()
    other = client_of(make_staff("other"))
    for method in (other.get, other.post):
        assert method(address, {"title": "New"}, **HTMX).status_code == 404
    assert other.get(f"/c/{made.pk}/entry/").status_code == 404
    made.refresh_from_db()
    assert made.title == "Newer"
