"""Judgements on the pages of admins and in the debug panel."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from evaluation import judgements
from evaluation.models import Judgement, JudgeUsage, Score
from tests.support.judged_answers import completed_answer
from tests.support.pages import staff
from tests.support.people import make_staff

pytestmark = pytest.mark.django_db

CHANGELIST = "/admin/evaluation/judgement/"
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def judgement():
    (judgement,) = judgements.request_judgements(
        completed_answer(question=f"How heavy is it? {EVIL}"), judges=["offline"]
    )
    return judgement


def finished(judgement, **values):
    Judgement.objects.filter(pk=judgement.pk).update(finished_at=timezone.now(), **values)
    judgement.refresh_from_db()
    return judgement


def test_the_list_shows_states_scores_and_errors_escaped(admin, judgement):
    finished(judgement, status="done")
    Score.objects.create(judgement=judgement, metric="groundedness", score=0.25, threshold=0.5, reason="Low.")
    failed = finished(
        judgements.request_judgements(completed_answer(), judges=["model"])[0], status="failed", error=f"Down {EVIL}"
    )
    Score.objects.create(judgement=failed, metric="faithfulness", error="The server is away.")
    page = admin.get(CHANGELIST).content.decode()
    assert "0.25, low" in page
    assert "ragsite-status-done" in page
    assert "ragsite-status-failed" in page
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(1)") == 2
    assert admin.get(CHANGELIST, {"status__exact": "failed"}).context["cl"].result_count == 1


def test_the_pages_of_a_judgement_and_of_its_answer_show_what_its_scores_are_made_of(admin, judgement):
    judgement.answer.text = "The pump weighs 3450 grams [1]. It was built in 1987 [1]."
    judgement.answer.save()
    judgements.judge_answer(judgement.pk)
    address = reverse("admin:evaluation_judgement_change", args=[judgement.pk])
    page = admin.get(address).content.decode()
    assert "It was built in 1987" in page
    assert "rules, version 1" in page
    assert 'name="_save"' not in page
    # The keyboard scrolls a table that is wider than a phone.
    assert '<div class="ragsite-inline" tabindex="0" role="group" aria-label="Scores">' in page
    finished(
        judgements.request_judgements(judgement.answer, judges=["model"])[0], status="failed", error="It was away."
    )
    page = admin.get(reverse("admin:chat_answer_change", args=[judgement.answer_id])).content.decode()
    assert "backed by its sources" in page
    assert "It was away." in page
    assert address in page


def test_an_admin_has_an_answer_judged_again(admin, judgement, django_capture_on_commit_callbacks):
    judgements.judge_answer(judgement.pk)
    with django_capture_on_commit_callbacks(execute=True):
        response = admin.post(CHANGELIST, {"action": "judge_again", "_selected_action": [judgement.pk]}, follow=True)
    assert [str(message) for message in response.context["messages"]] == ["1 answer will be judged again."]
    judgement.refresh_from_db()
    assert (judgement.status, judgement.attempts, judgement.scores.count()) == ("queued", 0, 0)
    assert judgement.enqueued_at is not None


def test_an_admin_has_answers_judged_that_were_not(admin, settings):
    settings.EVALUATE_WITH_MODEL, settings.JUDGE_SAMPLE_RATE = True, 0.0
    fresh, unfinished = completed_answer(), completed_answer(status="failed")
    response = admin.post(
        "/admin/chat/answer/", {"action": "judge_now", "_selected_action": [fresh.pk, unfinished.pk]}, follow=True
    )
    told = [str(message) for message in response.context["messages"]]
    assert told == ["1 answer will be judged now.", "1 answer is not complete and cannot be judged."]
    assert set(Judgement.objects.values_list("answer", "judge")) == {(fresh.pk, "offline"), (fresh.pk, "model")}


def test_who_may_only_look_cannot_have_judged(client, judgement):
    client.force_login(staff("view_judgement", "view_score"))
    assert "judge_again" not in client.get(CHANGELIST).content.decode()
    finished(judgement, status="failed")
    client.post(CHANGELIST, {"action": "judge_again", "_selected_action": [judgement.pk]})
    judgement.refresh_from_db()
    assert judgement.status == "failed"


@pytest.mark.parametrize("model", ["answer", "conversation"])
def test_what_visitors_wrote_can_be_deleted_though_it_was_judged(client, judgement, model):
    Score.objects.create(judgement=judgement, metric="groundedness", score=0.0)
    clerk = make_staff("clerk")
    names = [f"{verb}_{name}" for name in ("answer", "conversation") for verb in ("view", "delete")]
    names += ["delete_citation", "delete_feedback", "delete_streamedevent"]
    clerk.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="chat"))
    client.force_login(clerk)
    pk = judgement.answer_id if model == "answer" else judgement.answer.conversation_id
    assert client.post(reverse(f"admin:chat_{model}_delete", args=[pk]), {"post": "yes"}).status_code == 302
    assert Judgement.objects.count() == 0


def test_the_list_says_who_judges_and_what_is_left(admin, settings):
    assert "JUDGE_BASE_URL and JUDGE_MODEL are not set" in admin.get(CHANGELIST).content.decode()
    settings.JUDGE_BASE_URL, settings.JUDGE_MODEL = "http://judge/v1", "tiny-judge"
    settings.EVALUATE_WITH_MODEL, settings.JUDGE_SAMPLE_RATE = True, 0.2
    JudgeUsage.objects.create(day=timezone.localdate(), prompt_tokens=1000, completion_tokens=234)
    JudgeUsage.objects.create(day=timezone.localdate() - timedelta(days=1), prompt_tokens=77)
    settings.JUDGE_DAILY_BUDGET_TOKENS = 50_000
    page = admin.get(CHANGELIST).content.decode()
    assert "tiny-judge judges 20% of the answers. It has used 1,234 of its 50,000 tokens today." in page
    assert admin.get("/admin/evaluation/judgeusage/").status_code == 200


def panel(admin, answer):
    response = admin.get(reverse("chat:debug_scores", args=[answer.pk]))
    assert response.status_code == 200
    return response.content.decode()


def test_the_debug_panel_asks_again_until_the_scores_are_there(admin, judgement):
    before = panel(admin, judgement.answer)
    assert "pending" in before
    assert "hx-get" in before
    judgements.judge_answer(judgement.pk)
    after = panel(admin, judgement.answer)
    assert "backed by its sources (rules)" in after
    assert "pending" not in after
    assert "hx-trigger" not in after
    # The error of a metric is shown once, though the judgement repeats it.
    failed = finished(
        judgements.request_judgements(judgement.answer, judges=["model"])[0], status="failed", error="f: No claims."
    )
    Score.objects.create(judgement=failed, metric="faithfulness", error="No claims.")
    assert panel(admin, judgement.answer).count("No claims.") == 1
