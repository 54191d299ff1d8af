"""Askers' feedback on answers, by the page's form."""

import json

import pytest

from chat.models import Answer, Conversation, Feedback

pytestmark = pytest.mark.django_db

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def answer(owner):
    conversation = Conversation.objects.create(owner=owner, title="Weights")
    return Answer.objects.create(conversation=conversation, question="q", text="t", status=Answer.Status.COMPLETED)


def saved():
    return list(Feedback.objects.values_list("helpful", "reason", "comment"))


def test_a_verdict_is_kept_changed_and_taken_back(mine, answer):
    address = f"/answers/{answer.pk}/feedback/"
    said = mine.post(address, {"verdict": "yes"}, **HTMX)
    assert json.loads(said["HX-Trigger"]) == {"announce": {"sentence": "Thank you, your opinion is saved."}}
    assert saved() == [(True, "", "")]
    assert "<details" not in said.content.decode()

    said = mine.post(address, {"verdict": "no"}, **HTMX)
    assert '<details class="critique" open>' in said.content.decode()
    details = {"verdict": "no", "has_details": "1", "reason": "outdated", "comment": "See <2026>."}
    said = mine.post(address, details, **HTMX)
    assert saved() == [(False, "outdated", "See <2026>.")]
    assert '<details class="critique">' in said.content.decode()
    assert "The documents are out of date" in said.content.decode()
    page = mine.get(f"/c/{answer.conversation_id}/").content.decode()
    assert "See &lt;2026&gt;." in page
    assert 'value="outdated" checked' in page

    mine.post(address, {"verdict": "yes", "reason": "outdated"}, **HTMX)
    assert saved() == [(True, "", "")]
    mine.post(address, {"verdict": "none"}, **HTMX)
    assert saved() == []


def test_without_scripts_the_form_leads_back_to_the_answer_or_says_why_not(mine, answer):
    address = f"/answers/{answer.pk}/feedback/"
    response = mine.post(address, {"verdict": "no"})
    assert response["Location"] == f"/c/{answer.conversation_id}/#answer-{answer.pk}-feedback"
    assert '<details class="critique">' in mine.get(f"/c/{answer.conversation_id}/").content.decode()
    refused = mine.post(address, {"verdict": "no", "has_details": "1", "comment": "x" * 2001})
    assert (refused.status_code, refused["Content-Type"]) == (422, "text/plain")
    assert refused.content.decode() == "Please keep the comment within 2000 characters."
    assert saved() == [(False, "", "")]


def test_a_line_end_of_a_comment_is_one_character(mine, answer):
    posted = {"verdict": "no", "has_details": "1", "comment": "line\r\n" * 399 + "12345"}
    assert mine.post(f"/answers/{answer.pk}/feedback/", posted, **HTMX).status_code == 200
    assert saved() == [(False, "", "line\n" * 399 + "12345")]
    posted["comment"] += "6"
    assert mine.post(f"/answers/{answer.pk}/feedback/", posted, **HTMX).status_code == 422


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"verdict": "perhaps"}, "Select a valid choice"),
        ({"verdict": "no", "reason": "ugly"}, "Select a valid choice"),
        ({"verdict": "no", "has_details": "1", "comment": "\n" + "x" * 2001}, "within 2000 characters"),
    ],
)
def test_what_cannot_be_is_refused(mine, answer, posted, sentence):
    response = mine.post(f"/answers/{answer.pk}/feedback/", posted, **HTMX)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    # The first line end behind the tag is none of the text's.
    assert f">\n{posted.get('comment', '')}</textarea>" in response.content.decode() or "comment" not in posted
    assert saved() == []
