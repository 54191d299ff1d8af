"""A user's present rights decide which parts of old and of unfinished answers are shown."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.contrib.sessions.models import Session
from django.test import AsyncClient, Client, RequestFactory
from rest_framework.exceptions import PermissionDenied

from chat.api.endpoints import wait_for_answer
from chat.conversations import sharing
from chat.conversations.history import list_turns_before, store_sources_behind
from chat.conversations.listing import search_conversations
from chat.models import Answer, Conversation, Feedback, StreamedEvent
from chat.streaming import readers, streams
from chat.streaming.writing import RUNS
from core.key_limits import KeyScope
from ragsite.accounts.keys import KeyAuthentication, issue_key
from retrieval.models import Collection, Document
from tests.support.asking import answered as finished
from tests.support.asking import begin, client_of, saved_answer
from tests.support.keys import key_of
from tests.support.people import make_staff

pytestmark = pytest.mark.django_db

SECRET = "3450 grams"
SENTENCE = "This answer came from documents that you may no longer read."


def answered(conversation, document, question="How heavy?", **others):
    """Return an answer as it is saved: with its sources, citation, events and trace."""
    known = {"attempts": 1, "search_method": "lexical", "source_collections": [document.collection_id]}
    answer = saved_answer(conversation, question, document, **known | others)
    searched = {"sources": answer.sources, "degraded": [], "search_method": "lexical"}
    token = {"text": answer.text}
    whole = {"answer": answer.text, "citations": [], "repeats": False, "usage": {}, "notice": "", "conversation": ""}
    for number, (name, payload) in enumerate([("searched", searched), ("token", token), ("completed", whole)], 1):
        StreamedEvent.objects.create(answer=answer, attempt=1, sequence=number, name=name, payload=payload)
    return answer


@pytest.fixture
def document(collection):
    return Document.objects.create(collection=collection, source="sheet.md", title="Sheet")


@pytest.fixture
def conversation(owner):
    return Conversation.objects.create(owner=owner, title="Weights")


@pytest.fixture
def answer(conversation, document):
    return answered(conversation, document)


def made_private(document):
    Collection.objects.update(visibility="staff")


def collection_deleted(document):
    document.collection.delete()


def document_moved(document):
    document.collection = Collection.objects.create(slug="closed", name="Closed", visibility="staff")
    document.save()


LOSSES = [made_private, collection_deleted, document_moved]


def surfaces(answer):
    """All addresses that show something of an answer to its asker."""
    one, whole = f"/api/v1/answers/{answer.pk}/", f"/api/v1/conversations/{answer.conversation_id}/"
    return [
        f"/c/{answer.conversation_id}/",
        f"/answers/{answer.pk}/debug/",
        f"/answers/{answer.pk}/debug/scores/",
        one,
        whole,
    ]


@pytest.mark.parametrize("lose", LOSSES)
def test_after_a_loss_no_address_shows_the_text_and_every_one_that_shows_the_question_says_why(
    answer, document, mine, settings, lose
):
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    before = {address: mine.get(address).content.decode() for address in surfaces(answer) if "scores" not in address}
    assert [address for address, body in before.items() if SECRET not in body] == [f"/answers/{answer.pk}/debug/"]
    lose(document)
    for address in surfaces(answer):
        response = mine.get(address)
        body = response.content.decode()
        assert SECRET not in body, address
        if "debug" in address:
            assert response.status_code == 404, address
        else:
            assert response.status_code == 200, address
            assert SENTENCE in body, address
            assert "Sheet" not in body, address
    assert "How heavy?" in mine.get(f"/c/{answer.conversation_id}/").content.decode()
    told = mine.get(f"/api/v1/answers/{answer.pk}/").json()
    assert (told["question"], told["answer"], told["citations"], told["withheld"]) == ("How heavy?", "", [], True)


@pytest.mark.django_db(transaction=True)
async def test_after_a_loss_no_stream_tells_the_text_again(answer, document, owner):
    async def told(address):
        client = AsyncClient()
        await client.aforce_login(owner)
        response = await client.get(address)
        return b"".join([part async for part in response.streaming_content]).decode()

    addresses = [f"/answers/{answer.pk}/stream/", f"/api/v1/answers/{answer.pk}/stream/"]
    for address in addresses:
        assert SECRET in await told(address)
    await sync_to_async(made_private)(document)
    for address in addresses:
        body = await told(address)
        assert SECRET not in body, address
        assert "Sheet" not in body, address
        assert SENTENCE in body, address


def test_a_deleted_document_withholds_nothing_from_the_asker_and_a_right_that_comes_back_shows_the_text_again(
    answer, document, owner, mine
):
    def is_shown():
        return SECRET in mine.get(f"/c/{answer.conversation_id}/").content.decode()

    Collection.objects.update(visibility="staff")
    for is_staff in (False, True, False):
        User.objects.filter(pk=owner.pk).update(is_staff=is_staff)
        assert is_shown() is is_staff
    Collection.objects.update(visibility="public")
    assert is_shown()
    document.delete()
    assert is_shown()


def test_a_deactivated_user_reads_nothing(answer, owner, mine):
    key = key_of(owner)
    User.objects.update(is_active=False)
    assert mine.get(f"/c/{answer.conversation_id}/").status_code == 404
    headers = {"Authorization": f"Token {key}"}
    assert Client().get(f"/api/v1/answers/{answer.pk}/", headers=headers).status_code == 401


def test_staff_with_the_permission_read_all_and_others_only_their_own(answer, document, settings):
    collection_deleted(document)
    clerk = make_staff("clerk")
    desk = client_of(clerk)
    assert desk.get(f"/api/v1/answers/{answer.pk}/").status_code == 404
    assert desk.get(f"/answers/{answer.pk}/debug/").status_code == 404
    clerk.user_permissions.add(Permission.objects.get(codename="view_answer"))
    assert SECRET in desk.get(f"/api/v1/answers/{answer.pk}/").content.decode()
    assert desk.get(f"/answers/{answer.pk}/debug/").status_code == 200


def test_lost_words_are_not_found_and_a_follow_up_is_not_told_them(answer, conversation, owner, mine):
    own = Conversation.objects.owned_by(owner, "")
    second = Answer.objects.create(conversation=conversation, question="And how long?")
    assert search_conversations(own, owner, "3450").count() == 1
    assert SECRET in list_turns_before(second)[0].answer
    Collection.objects.update(visibility="staff")
    assert search_conversations(own, owner, "3450").count() == 0
    assert search_conversations(own, owner, "heavy").count() == 1
    assert mine.get("/api/v1/conversations/?q=3450").json()["count"] == 0
    [turn] = list_turns_before(second)
    assert (turn.question, turn.answer) == ("How heavy?", "")


def test_an_answer_that_may_repeat_an_earlier_one_goes_with_it(answer, conversation, mine):
    other = Collection.objects.create(slug="other", name="Other")
    sheet = Document.objects.create(collection=other, source="x.md", title="X")
    second = answered(conversation, sheet, "And that in pounds?", source_collections=[], prompt_version=3)
    store_sources_behind(second)
    second.save()
    assert second.source_collections == sorted([answer.source_collections[0], other.pk])
    Collection.objects.exclude(pk=other.pk).update(visibility="staff")
    assert mine.get(f"/api/v1/answers/{second.pk}/").json()["withheld"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", ["private", "deactivated", "key revoked", "session ended", "new password"])
async def test_a_running_stream_ends_when_the_right_is_lost(library, gated, monkeypatch, loss):
    monkeypatch.setattr(readers, "RECHECK_SECONDS", 0.05)
    owner = await sync_to_async(User.objects.create_user)("owner")
    session_key = ""
    if loss == "key revoked":
        issued = await sync_to_async(issue_key)(owner, "Laptop", [KeyScope.ASK])
        owner, key = await sync_to_async(KeyAuthentication().authenticate_key)(RequestFactory().get("/"), issued.secret)
    elif loss in ("session ended", "new password"):
        browser = AsyncClient()
        await browser.aforce_login(owner)
        session_key = browser.cookies[settings.SESSION_COOKIE_NAME].value
    begun = await sync_to_async(begin)(user=owner, visitor="")
    events = []
    async with asyncio.timeout(30):
        async for event in readers.follow_as_reader(begun.pk, owner, session_key=session_key):
            events.append(event)
            if event.name == "token":
                match loss:
                    case "private":
                        await Collection.objects.aupdate(visibility="staff")
                    case "deactivated":
                        await User.objects.aupdate(is_active=False)
                    case "key revoked":
                        await sync_to_async(key.revoke)()
                    case "session ended":
                        await Session.objects.all().adelete()
                    case "new password":
                        await User.objects.aupdate(password="another")
    assert [event.name for event in events if event.name != "ping"] == ["searched", "token", "failed"]
    assert events[-1].payload == {"message": SENTENCE, "withheld": True}
    # A reader who comes back gets no text either, from this process or from another.
    following = readers.follow_as_reader(begun.pk, owner, "1-1", session_key=session_key)
    assert [event.name async for event in following] == ["failed"]
    await streams.stop_answer(begun.pk)
    async with asyncio.timeout(30):
        await streams.complete_answer(begun.pk)


@pytest.mark.django_db(transaction=True)
async def test_a_reader_who_leaves_lets_go_of_the_stream(library, gated):
    begun = await sync_to_async(begin)()

    async def read():
        async for _event in readers.follow_as_reader(begun.pk, AnonymousUser()):
            pass

    reader = asyncio.create_task(read())
    async with asyncio.timeout(30):
        while begun.pk not in RUNS or not RUNS[begun.pk].followers:
            await asyncio.sleep(0.01)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert RUNS[begun.pk].followers == 0
        await streams.stop_answer(begun.pk)
        await streams.complete_answer(begun.pk)


@pytest.mark.django_db(transaction=True)
def test_an_answer_remembers_its_collections_and_the_api_refuses_one_that_was_lost_meanwhile(library, owner):
    asked = finished(user=owner, visitor="")
    assert asked.sources
    assert asked.source_collections == [library.pk]
    Collection.objects.update(visibility="staff")
    with pytest.raises(PermissionDenied, match="no longer read"):
        wait_for_answer(asked, owner)


def browser_of(name, *permissions, **flags):
    user = User.objects.create_user(name, **flags)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return client_of(user)


def strangers():
    return {
        "visitor": Client(),
        "other": browser_of("other"),
        "staff": browser_of("staff", is_staff=True),
        "reader of all": browser_of("auditor", "view_answer", is_staff=True),
    }


def test_nobody_but_the_asker_rates_an_answer(answer, document, mine):
    def rate(client, rated, *, helpful):
        said = json.dumps({"helpful": helpful, "comment": "mine"})
        return client.post(f"/api/v1/answers/{rated.pk}/feedback/", said, content_type="application/json").status_code

    assert rate(mine, answer, helpful=True) == 201
    boss = browser_of("boss", is_staff=True, is_superuser=True)
    for name, client in {**strangers(), "superuser": boss}.items():
        assert rate(client, answer, helpful=False) == 404, name
        assert client.post(f"/answers/{answer.pk}/feedback/", {"verdict": "no"}).status_code == 404, name
    # No account rates the answer of a program without an account.
    nobodys = answered(Conversation.objects.create(), document)
    assert rate(Client(), nobodys, helpful=True) == 201
    assert rate(boss, nobodys, helpful=False) == 404
    assert [(one.helpful, one.comment) for one in Feedback.objects.all()] == [(True, "mine")] * 2


@pytest.mark.django_db(transaction=True)
def test_nobody_but_the_asker_and_those_permitted_stops_an_answer(conversation, mine):
    def stop(client, kind):
        begun = Answer.objects.create(conversation=conversation, question="How heavy?")
        code = client.post(f"{kind}/answers/{begun.pk}/stop/").status_code
        begun.refresh_from_db()
        return code, begun.status

    for kind, done in (("/api/v1", 204), ("", 302)):
        for name, client in strangers().items():
            assert stop(client, kind) == (404, "pending"), name
            User.objects.exclude(username="owner").delete()
        assert stop(mine, kind) == (done, "stopped")
        assert stop(browser_of(f"mender{done}", "change_answer", is_staff=True), kind) == (done, "stopped")


def test_a_shared_page_does_not_give_away_the_ids_that_let_a_program_act(document):
    nobodys = answered(Conversation.objects.create(title="Weights"), document)
    shared = f"/s/{sharing.share_conversation(nobodys.conversation)}/"
    page = Client().get(shared).content.decode()
    assert SECRET in page
    assert str(nobodys.pk) not in page
    assert str(nobodys.conversation_id) not in page
