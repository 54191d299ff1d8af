"""A curator mends an answer: the page that does it, and the admin's own of approved answers."""

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse
from rest_framework.test import APIClient

from chat.answering import pipeline
from chat.models import Answer, ApprovedAnswer
from chat.types import FailedEvent
from evaluation.dashboard.gaps import find_unanswered_questions
from evaluation.dashboard.scope import parse_scope
from ragsite.accounts.roles import create_roles
from retrieval.models import Collection, Draft
from retrieval.models.collection import Visibility
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.types import Ranking, Retriever
from tests.support.libraries import remembered
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

LEAVE = "# Leave\n\nEmployees have 25 days of leave a year. Days that are left lapse in July."
PARKING = "# Parking\n\nThe car park has 40 places."
QUESTION = "May I stay at home for a fortnight?"


@pytest.fixture
@remembered
def document(collection, ingest):
    ingest(collection, "parking.md", PARKING)
    return ingest(collection, "leave.md", LEAVE)


@pytest.fixture
def curator(db):
    create_roles()
    user = User.objects.create_user("carla", "carla@example.org", is_staff=True, first_name="Carla")
    user.groups.add(Group.objects.get(name="Curators"))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def admin(client, curator):
    client.force_login(curator)
    return client


def ask(question=QUESTION):
    return APIClient().post("/api/v1/ask/", {"question": question}, format="json").json()


@pytest.fixture
def page(document):
    """Return the address of the page for a question that the documents do not answer."""
    asked = ask()
    assert asked["refused"]
    return reverse("admin:chat_answer_mend", args=[asked["answer_id"]])


def passage(document):
    return document.chunks.earliest("ordinal")


def offered(document, html):
    """Return the value under which the page offers the document's passage."""
    return next(part for part in html.split('"') if part.endswith(f":{passage(document).pk}"))


def approval(document, curator, **values):
    return {
        "action": "approve",
        "question": QUESTION,
        "text": "Two weeks at most, as part of your 25 days.",
        "passages": [f"1:{passage(document).pk}"],
        "collection": document.collection_id,
        "owner": curator.pk,
        **values,
    }


def test_an_answer_is_approved_from_a_refused_one(admin, page, document, curator):
    answer = Answer.objects.get()
    assert page in admin.get(reverse("admin:chat_answer_change", args=[answer.pk])).content.decode()
    html = admin.get(page).content.decode()
    assert QUESTION in html
    chosen = offered(document, html)
    for values, said in (
        ({"passages": []}, "Choose at least one passage"),
        ({"text": "As it says [7]."}, "The text cites [7]"),
        ({"text": ""}, "This field is required"),
        ({"question": ""}, "This field is required"),
        ({"passages": ["1:999999"]}, "is not one of the available choices"),
    ):
        refused = admin.post(page, approval(document, curator, **{"passages": [chosen], **values}))
        assert said in refused.content.decode()
        assert not ApprovedAnswer.objects.exists()
    response = admin.post(page, approval(document, curator, passages=[chosen]), follow=True)
    assert "Ask again" in response.content.decode()
    approved = ApprovedAnswer.objects.get()
    assert approved.text == f"Two weeks at most, as part of your 25 days. [{chosen.partition(':')[0]}]"
    assert (approved.state, approved.approved_by, approved.owner) == ("approved", curator, curator)
    again = admin.post(page, {"action": "ask"}).content.decode()
    assert "Approved by Carla on" in again
    assert "Two weeks at most" in again
    assert ask()["approved"]["by"] == "Carla"


def test_an_offered_passage_shows_the_place_of_the_searched_words(admin, page, document, ingest):
    filler = " ".join(f"The gate of yard {number} is green." for number in range(30))
    ingest(document.collection, "stays.md", f"# Rules\n\n## Stays\n\n{filler} A *fortnight* at home is <i>fine</i>.")
    html = admin.get(page, {"find": "fortnight home"}).content.decode()
    preview = html.partition("Library · Stays")[2].partition("curation-excerpt")[2].partition("</label>")[0]
    assert "… " in preview
    assert "A <mark>fortnight</mark> at <mark>home</mark> is" in preview
    assert "yard 26" not in preview


def test_a_question_is_given_to_one_passage_alone_which_answers_it(admin, page, document, ingest):
    wrong = ingest(document.collection, "canteen.md", "# Canteen\n\nThe canteen has soup.")
    admin.post(page, {"action": "give", "passage": passage(wrong).pk})
    assert QUESTION in passage(wrong).canonical_questions
    admin.post(page, {"action": "give", "passage": passage(document).pk})
    assert passage(wrong).canonical_questions == []
    chunk = passage(document)
    assert (chunk.canonical_questions[0], chunk.questions_edited) == (QUESTION, True)
    for question in (QUESTION, "may I stay at home for a fortnight"):
        asked = ask(question)
        assert not asked["refused"]
        assert {cited["chunk_id"] for cited in asked["citations"]} == {chunk.pk}
    assert "25 days of leave" in admin.post(page, {"action": "ask"}).content.decode()


def test_a_given_question_is_tried_before_it_is_saved(admin, page, document, ingest):
    wrong = ingest(document.collection, "canteen.md", "# Canteen\n\nThe canteen has soup.")
    admin.post(page, {"action": "give", "passage": passage(wrong).pk})
    before = admin.post(page, {"action": "ask"}).content.decode()
    assert "The canteen has soup." in before
    tried = admin.post(page, {"action": "try", "passage": passage(document).pk}).content.decode()
    shown = tried.partition('id="trial"')[2].partition("</section>")[0]
    assert "25 days of leave" in shown
    assert "Confidence: 100 %" in shown
    assert "The new answer quotes the passage." in shown
    assert "Not saved yet" in shown
    # Readers get the old answer, also after the page was left.
    assert passage(document).canonical_questions == []
    assert passage(wrong).canonical_questions == [QUESTION]
    assert {cited["chunk_id"] for cited in ask()["citations"]} == {passage(wrong).pk}
    admin.post(page, {"action": "give", "passage": passage(document).pk})
    assert {cited["chunk_id"] for cited in ask()["citations"]} == {passage(document).pk}


def test_a_passage_that_the_search_does_not_list_is_tried_too(admin, page, document, monkeypatch):
    monkeypatch.setattr(Bm25Ranker, "rank", lambda *_: Ranking(Retriever.LEXICAL, ()))
    monkeypatch.setattr(VectorRanker, "rank", lambda *_: Ranking(Retriever.VECTOR, ()))
    assert ask()["refused"]
    tried = admin.post(page, {"action": "try", "passage": passage(document).pk}).content.decode()
    assert "The new answer quotes the passage." in tried


def test_a_trial_says_that_the_passage_is_not_used(admin, page, document, curator, ingest):
    other = Collection.objects.create(slug="other", name="Other")
    elsewhere = ingest(other, "stay.md", "# Stay\n\nYou may stay at home for a fortnight.")
    Answer.objects.update(collection=document.collection)
    tried = admin.post(page, {"action": "try", "passage": passage(elsewhere).pk}).content.decode()
    assert "the question was asked of Library, and the passage is in another collection" in tried
    assert 'value="give"' in tried
    Answer.objects.update(collection=None)
    chosen = offered(document, admin.get(page).content.decode())
    admin.post(page, approval(document, curator, passages=[chosen]))
    tried = admin.post(page, {"action": "try", "passage": passage(elsewhere).pk}).content.decode()
    assert "an approved answer comes before it" in tried


def test_a_trial_that_fails_says_so_and_still_offers_both(admin, page, document, monkeypatch):
    async def fail(*_, **__):
        yield FailedEvent("The search cannot answer at the moment.")

    monkeypatch.setattr(pipeline, "answer_question", fail)
    tried = admin.post(page, {"action": "try", "passage": passage(document).pk}).content.decode()
    assert "Asking again failed" in tried
    assert "The search cannot answer at the moment." in tried
    assert 'value="give"' in tried
    assert "Take back" in tried


def test_an_approved_answer_is_shown_before_it_is_saved(admin, page, document, curator):
    chosen = offered(document, admin.get(page).content.decode())
    values = approval(document, curator, passages=[chosen], action="check")
    shown = admin.post(page, values).content.decode().partition('id="trial"')[2].partition("</section>")[0]
    assert "Two weeks at most" in shown
    assert "Leave</a>" in shown
    assert 'value="approve"' in shown
    assert not ApprovedAnswer.objects.exists()
    assert "Choose at least one passage" in admin.post(page, {**values, "passages": []}).content.decode()


def test_a_gap_that_a_document_closed_is_settled_with_its_passage(admin, page, document, ingest):
    text = f"# Rules\n\n## {QUESTION}\n\nYou may stay at home for a fortnight, and no longer than **twelve** days."
    added = ingest(document.collection, "rules.md", text)
    shown = admin.post(page, {"action": "ask"}).content.decode()
    assert "<strong>twelve</strong>" in shown  # rendered, not as Markdown
    assert f'name="passage" value="{passage(added).pk}"' in shown
    admin.post(page, {"action": "give", "passage": passage(added).pk})
    assert find_unanswered_questions(parse_scope({}, make_superuser("root")))[0] == []


def test_a_document_is_added_to_the_collections_that_were_asked(admin, page, document, ingest, curator):
    add = reverse("admin:retrieval_document_add")
    other = Collection.objects.create(slug="other", name="Other")
    hidden = Collection.objects.create(slug="vault", name="Vault", visibility=Visibility.GRANTED)
    first, of_others = f"{add}?collection={document.collection_id}&amp;next={page}", f"{add}?collection={other.pk}"
    assert "since the question was asked" not in admin.get(page).content.decode()
    html = admin.get(page).content.decode()
    assert first in html
    assert of_others in html
    assert "not asked of" not in html
    Answer.objects.update(collection=document.collection)
    asked, _, others = admin.get(page).content.decode().partition("not asked of")
    assert first in asked
    assert of_others not in asked
    assert of_others in others
    assert f"collection={hidden.pk}&" not in others

    shown = admin.get(add, {"collection": document.collection_id, "next": page}).content.decode()
    assert f'<option value="{document.collection_id}" selected>' in shown
    assert f'<a href="{page}">Back' in shown
    assert "evil" not in admin.get(add, {"next": "https://evil.example/"}).content.decode()
    sent = {"collection": document.collection_id, "text": "# Home\n\nStay at home for a fortnight.", "next": page}
    assert admin.post(add, sent | {"metadata": "{}"}).headers["Location"] == page
    ingest(other, "elsewhere.md", "# Elsewhere\n\nNothing.")
    html = admin.get(page).content.decode().partition('id="added"')[2].partition("</section>")[0]
    assert "Home" in html or "Pasted text" in html
    assert 'data-document-status="' in html
    assert "Elsewhere" not in html
    assert "Leave" not in html


def test_out_of_scope_is_no_gap(admin, page, document, curator):
    scope = parse_scope({}, make_superuser("root"))
    assert [one.question for one in find_unanswered_questions(scope)[0]] == [QUESTION]
    sentence = "Ask the office of your own floor."
    values = {"action": "scope", "question": QUESTION, "text": sentence, "collection": document.collection_id}
    admin.post(page, values)
    asked = ask()
    assert (asked["refused"], asked["answer"]) == (True, sentence)
    assert find_unanswered_questions(scope)[0] == []


def test_a_wording_is_added_to_an_approved_answer(admin, page, document, curator):
    chosen = offered(document, admin.get(page).content.decode())
    admin.post(page, approval(document, curator, question="How long may I be away?", passages=[chosen]))
    approved = ApprovedAnswer.objects.get()
    assert ask()["approved"] is None
    assert "How long may I be away?" in admin.get(page).content.decode()
    admin.post(page, {"action": "wording", "approved": approved.pk})
    assert ask()["approved"] is not None


def test_a_collection_in_a_draft_says_so(admin, page, document):
    copy = Collection.objects.create(slug="copy", name="Copy")
    Draft.objects.create(collection=document.collection, working_copy=copy, status=Draft.Status.OPEN)
    response = admin.post(page, {"action": "give", "passage": passage(document).pk})
    assert "choose Copy instead" in response.content.decode()
    response = admin.post(page, {"action": "try", "passage": passage(document).pk})
    assert "choose Copy instead" in response.content.decode()
    assert passage(document).canonical_questions == []


def test_nobody_mends_what_they_may_not_see(client, page, document, curator):
    client.force_login(make_staff("reader"))
    assert client.get(page).status_code in (302, 403, 404)
    Collection.objects.filter(pk=document.collection_id).update(visibility=Visibility.GRANTED)
    client.force_login(curator)
    for values in ({"action": "give", "passage": passage(document).pk}, approval(document, curator)):
        client.post(page, values)
    assert "25 days" not in client.post(page, {"action": "try", "passage": passage(document).pk}).content.decode()
    assert passage(document).canonical_questions == []
    assert not ApprovedAnswer.objects.exists()


def test_the_admins_own_page_finds_passages_and_approves(admin, document, curator):
    address = reverse("admin:chat_approvedanswer_add")
    found = admin.post(address, {"question": "How many days of leave?", "_find": "1"}).content.decode()
    assert "This field is required" not in found
    chosen = offered(document, found)
    values = approval(
        document, curator, passages=[chosen], kind="answer", state="approved", wordings="Holidays?\nLeave?"
    )
    assert admin.post(address, values).status_code == 302
    approved = ApprovedAnswer.objects.get()
    assert sorted(each.text for each in approved.questions.all()) == sorted([QUESTION, "Holidays?", "Leave?"])
    change = reverse("admin:chat_approvedanswer_change", args=[approved.pk])
    shown = admin.get(change).content.decode()
    assert f'value="{chosen}"' in shown
    assert "checked" in shown
    assert approved.question in admin.get(reverse("admin:chat_approvedanswer_changelist")).content.decode()
    values |= {"state": "withdrawn", "text": approved.text}
    assert admin.post(change, values).status_code == 302
    assert ask()["approved"] is None
