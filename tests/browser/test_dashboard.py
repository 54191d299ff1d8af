"""The admin's dashboard, looked at and clicked through."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Site
from tests.browser.pages import ask, is_too_wide, violations

QUESTION = "Which seal kit fits the MX-9920-W?"


@pytest.fixture(scope="module")
def busy_site(site: Site) -> Site:
    """The site with three weeks of answers, good and bad, and no others."""
    from chat.models import Conversation

    with site.data():
        Conversation.objects.all().delete()
        _three_weeks()
    return site


def _three_weeks() -> None:
    from django.utils import timezone

    from chat.models import Citation, Feedback
    from evaluation.models import Judgement, Score
    from retrieval.models import Document
    from tests.support.judged_answers import completed_answer

    document = Document.objects.order_by("pk").first()
    assert document is not None
    wordings = ("How do I reset the coffee machine?", "How can I reset a coffee machine?", "Which plants may I keep?")
    for number in range(63):
        refused = number % 7 == 0
        made = completed_answer(
            question=wordings[number // 7 % 3] if refused else f"How heavy is pump {number}?",
            refused=refused,
            completed_at=timezone.now() - timedelta(hours=8 * number),
            timings_ms={"first_token": 120 + 5 * (number % 9), "total": 700 + 90 * (number % 11)},
            degraded=["vector"] if number % 13 == 0 else [],
            sources=[{"chunk_id": 1, "document": {"id": document.pk}}],
        )
        if refused:
            continue
        Citation.objects.create(
            answer=made,
            marker=1,
            marker_start=0,
            marker_end=3,
            document=document,
            document_title=str(document),
            quote="3450 grams",
            start=0,
            end=10,
        )
        if number % 3 == 0:
            Feedback.objects.create(answer=made, helpful=number % 9 != 0, reason="" if number % 9 else "wrong")
        judgement = Judgement.objects.create(answer=made, judge=Judgement.Judge.OFFLINE, status="done")
        for metric, score in (("groundedness", 1 - (number % 10) / 11), ("answer_relevancy", 0.4 + (number % 6) / 10)):
            Score.objects.create(judgement=judgement, metric=metric, score=score, threshold=0.5, reason="Counted.")
    Score.objects.update(created_at=timezone.now())


def test_the_dashboard_is_a_click_from_the_admins_home(busy_site: Site, page: Page) -> None:
    busy_site.sign_in(page)
    page.goto(f"{busy_site.url}/admin/")
    page.locator(".dashboard-entry a").click()
    expect(page.get_by_role("heading", name="Dashboard", exact=True)).to_be_visible()
    drawings = page.locator("svg.chart-drawing")
    expect(drawings).to_have_count(7)
    for screen in (WIDE, PHONE):
        page.set_viewport_size(screen["viewport"])
        for drawing in drawings.all():
            box = drawing.bounding_box()
            assert box is not None
            assert box["width"] > 250
            # The letters stay readable where the drawing shrinks.
            assert drawing.locator("text").first.evaluate("node => node.getBoundingClientRect().height") > 10
        assert not is_too_wide(page)
        assert violations(page) == []


def test_a_chart_can_be_read_as_a_table_and_leads_to_its_answers(busy_site: Site, page: Page) -> None:
    busy_site.sign_in(page)
    page.goto(f"{busy_site.url}/admin/evaluation/dashboard/?days=7")
    table = page.locator("#questions details")
    table.locator("summary").click()
    expect(table.locator("tbody tr")).to_have_count(7)
    number = int(table.locator("tbody tr").nth(5).locator("td").first.inner_text())
    page.locator("#questions svg a").nth(5).locator("rect").first.click()
    expect(page).to_have_url(re.compile("/admin/chat/answer/"))
    assert number > 0
    expect(page.locator("#result_list tbody tr")).to_have_count(number)


def test_from_a_bad_answer_two_clicks_lead_to_what_mends_it(busy_site: Site, page: Page) -> None:
    busy_site.sign_in(page)
    dashboard = f"{busy_site.url}/admin/evaluation/dashboard/"

    page.goto(dashboard)
    page.locator("#worst").get_by_role("link", name="Least supported by the documents").click()
    expect(page).to_have_url(re.compile("kind=groundedness"))
    for screen in (WIDE, PHONE):
        page.set_viewport_size(screen["viewport"])
        assert violations(page) == []
        assert not is_too_wide(page)
    page.locator(".dashboard-mend").first.get_by_role("link", name="Trace").click()
    expect(page).to_have_url(re.compile("/debug/$"))

    page.goto(dashboard)
    page.locator("#worst tbody th a").first.click()
    mend = page.locator(".field-documents a").first
    title = mend.inner_text()
    mend.click()
    expect(page.locator("#content")).to_contain_text(title)
    expect(page).to_have_url(re.compile("/admin/retrieval/document/"))

    page.goto(dashboard)
    page.locator("#worst tbody th a").first.click()
    page.get_by_role("button", name="Make a test case").click()
    expect(page).to_have_url(re.compile("/admin/evaluation/evaluationquestion/"))
    expect(page.locator(".messagelist")).to_contain_text(re.compile("A draft|a test case already"))


def test_gaps_are_grouped(busy_site: Site, page: Page) -> None:
    busy_site.sign_in(page)
    page.goto(f"{busy_site.url}/admin/evaluation/dashboard/")
    page.locator("#gaps h2 a").click()
    rows = page.locator(".dashboard-gaps tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("reset the coffee machine")
    expect(rows.first).to_contain_text("reset a coffee machine")
    assert violations(page) == []


def test_a_complaint_in_the_chat_arrives_on_the_dashboard(busy_site: Site, page: Page) -> None:
    busy_site.sign_in(page)
    turn = ask(page, QUESTION)
    turn.get_by_role("button", name="Not helpful", exact=True).click()
    expect(page.locator("#live")).to_have_text("Thank you, your judgement is saved.")
    page.goto(f"{busy_site.url}/admin/evaluation/dashboard/?days=7")
    expect(page.locator("#worst tbody tr").first).to_contain_text(QUESTION)
