"""An approved answer comes first for its question and for questions like it, until one of its passages changes."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core import mail
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from chat.conversations import rights
from chat.curation import approval
from chat.models import Answer, ApprovedAnswer, ApprovedQuestion, Feedback
from chat.streaming import asking, streams
from core.job_queue import sweeping
from evaluation.runs.measurement import measure_reply
from retrieval.models import Chunk, Collection, Document
from retrieval.models.collection import CollectionGrant, Visibility
from retrieval.rights.search_filters import build_filters
from retrieval.search.profiles.profiles import active_profile
from retrieval.text.questions import have_same_kind_and_codes
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db(transaction=True)

LEAVE = "# Leave\n\nEmployees have 25 days of leave a year. Days that are left lapse in July."
QUESTION = "How many days of leave do I have?"
TEXT = "You have **25 days** of leave a year [1]. Ask your manager in time."


@pytest.fixture
@remembered
def document(collection, ingest):
    return ingest(collection, "leave.md", LEAVE)


@pytest.fixture
def curator(db):
    return User.objects.create_user("c.vries", "c.vries@example.org", first_name="Carla", last_name="de Vries")


def approve(document, by, *, question=QUESTION, **values):
    approved = ApprovedAnswer(question=question, collection=document.collection, owner=by, **{"text": TEXT, **values})
    approval.approve_answer(approved, by)
    if approved.kind == ApprovedAnswer.Kind.ANSWER:
        approval.save_sources(approved, [(1, Chunk.objects.filter(document=document).earliest("ordinal"))])
    approval.save_wordings(approved, [])
    return approved


@pytest.fixture
def approved(document, curator):
    return approve(document, curator)


async def ask(question=QUESTION, user=None, **options):
    begin = sync_to_async(asking.create_answer)
    answer = await begin(question, user=user or AnonymousUser(), visitor="" if user else "me", **options)
    async for _event in streams.follow_answer_stream(answer.pk):
        pass
    return await Answer.objects.select_related("approved", "conversation__owner").aget(pk=answer.pk)


async def is_given(question=QUESTION, user=None):
    return (await ask(question, user)).approved is not None


def sweep():
    for _receiver, result in sweeping.send_robust(sender=None):
        assert not isinstance(result, Exception), result


async def test_it_comes_first_and_cites_its_passages(approved, document):
    answer = await ask("how many days of LEAVE do I have")
    assert (answer.status, answer.text, answer.refused) == ("completed", TEXT, False)
    assert (answer.generator, answer.search_method, answer.approved) == ("approved", "approved", approved)
    [citation] = [one async for one in answer.citations.all()]
    assert (citation.marker, citation.document_id) == (1, document.pk)
    assert answer.text[citation.marker_start : citation.marker_end] == "[1]"
    assert citation.quote in LEAVE
    assert [source["marker"] for source in answer.sources] == [1]


async def test_a_question_like_it_gets_it_and_another_one_does_not(approved):
    assert await is_given("How many days of leave do I have a year?")
    assert not await is_given("When do days of leave lapse?")
    assert not await is_given("How many days of leave do I have in 2027?")


async def test_other_wordings_count(approved):
    asked = "What is my yearly holiday entitlement?"
    assert not await is_given(asked)
    await sync_to_async(approval.save_wordings)(approved, [asked])
    assert await is_given(asked)
    assert await is_given()


async def test_an_answer_from_before_it_serves_no_more(document, curator):
    assert not await is_given()
    await sync_to_async(approve)(document, curator)
    assert await is_given()


async def test_a_short_follow_up_is_another_question(document, curator):
    await sync_to_async(approve)(document, curator, question="How many days is it in total?")
    first = await ask("What is a wet-rotor pump?")
    assert (await ask("How many days is it in all?", conversation_id=first.conversation_id)).approved is None


async def test_a_run_measures_the_search(approved):
    filters = await sync_to_async(build_filters)(AnonymousUser())
    reply = await measure_reply(QUESTION, filters, await sync_to_async(active_profile)())
    assert reply.searched.trace.search_method != "approved"


async def test_without_rights_to_its_sources_nobody_sees_it(approved, document):
    given = await ask()
    reader = await User.objects.acreate_user("reader")
    group = await Group.objects.acreate(name="hr")
    assert await is_given(user=reader)
    await Document.objects.filter(pk=document.pk).aupdate(metadata={"groups": ["hr"]})
    reader = await User.objects.aget(pk=reader.pk)
    assert not await is_given(user=reader)
    assert await sync_to_async(rights.is_withheld)(reader, given)
    await reader.groups.aadd(group)
    assert await is_given(user=reader)
    await Collection.objects.filter(pk=approved.collection_id).aupdate(visibility=Visibility.GRANTED)
    other = await Collection.objects.acreate(slug="other", name="Other")
    await CollectionGrant.objects.acreate(collection=other, user=reader)
    assert not await is_given(user=reader)
    # No passage is gone: it stays in force for others.
    await approved.arefresh_from_db()
    assert approved.flag == ""


@pytest.mark.parametrize("noticed_by", ["sweep", "question"])
@pytest.mark.parametrize("change", ["changed", "gone", "expired", "unhelpful"])
async def test_its_owner_is_told_what_became_of_it(change, noticed_by, approved, document, ingest, settings):
    settings.MAIL_IS_SENT = True
    if change == "changed":
        await sync_to_async(ingest)(approved.collection, "leave.md", LEAVE.replace("25", "27"))
    elif change == "gone":
        await sync_to_async(document.delete)()
    elif change == "expired":
        yesterday = timezone.localdate() - timedelta(days=1)
        await ApprovedAnswer.objects.filter(pk=approved.pk).aupdate(expires_on=yesterday)
    else:
        await Feedback.objects.acreate(answer=await ask(), helpful=False)
    if noticed_by == "question":
        assert await is_given() == (change == "unhelpful")
    await sync_to_async(sweep)()
    await sync_to_async(sweep)()
    await approved.arefresh_from_db()
    assert approved.flag == change
    [told] = mail.outbox
    assert told.to == ["c.vries@example.org"]
    assert approved.question in told.body
    assert await is_given() == (change == "unhelpful")


async def test_a_document_that_is_read_again_keeps_it(approved, ingest):
    longer = LEAVE.replace("# Leave", "# About us\n\nWe make pumps.\n\n# Leave")
    await sync_to_async(ingest)(approved.collection, "leave.md", longer)
    await sync_to_async(sweep)()
    answer = await ask()
    assert answer.approved == approved
    citation = await answer.citations.aget()
    assert longer[citation.start : citation.end] == citation.quote


async def test_approved_again_it_is_given_again(approved, curator):
    await sync_to_async(approved.flag_for_review)(ApprovedAnswer.Flag.CHANGED)
    assert not await is_given()
    await sync_to_async(approval.approve_answer)(approved, curator)
    assert await is_given()


async def test_out_of_scope_is_a_refusal_in_the_curators_words(document, curator):
    text = "Salaries are not discussed here: ask the payroll office."
    kind = ApprovedAnswer.Kind.OUT_OF_SCOPE
    await sync_to_async(approve)(document, curator, question="What does my boss earn?", kind=kind, text=text)
    answer = await ask("What does my boss earn?")
    assert (answer.refused, answer.text, answer.alternatives) == (True, text, [])


async def test_another_embedder_has_its_vectors_made(approved):
    await ApprovedQuestion.objects.aupdate(embedder="another", embedding=None)
    assert not await is_given("How many days of leave do I have a year?")
    await sync_to_async(sweep)()
    assert await is_given("How many days of leave do I have a year?")


def test_who_approved_it_is_said_everywhere(approved, curator, capsys):
    on = timezone.localdate(approved.approved_at).isoformat()
    expected = {"by": "Carla de Vries", "on": on}
    api = APIClient()
    asked = api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
    assert asked["approved"] == expected
    messages = [{"role": "user", "content": QUESTION}]
    completion = api.post("/v1/chat/completions", {"model": "ragsite", "messages": messages}, format="json").json()
    assert completion["approved"] == expected
    assert "Approved by Carla de Vries on" in completion["choices"][0]["message"]["content"]
    call_command("ask", QUESTION, "--json")
    assert json.loads(capsys.readouterr().out)["approved"] == expected
    curator.delete()
    saved = api.get(f"/api/v1/answers/{asked['answer_id']}/").json()
    assert saved["approved"] == {"by": "a former curator", "on": on}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Who founded it?", "When was it founded?", False),
        ("In what year was it founded?", "When was it founded?", True),
        ("Wat kost parkeren?", "Hoeveel kost parkeren?", False),
        ("What does E1001 mean?", "What does E1002 mean?", False),
        ("How can I park?", "how do I park", True),
    ],
)
def test_questions_alike(one, other, alike):
    assert have_same_kind_and_codes(one, other) == alike
