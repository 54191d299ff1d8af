"""What judges say of an answer, on the pages: in the panel as it arrives, and in the admin."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import ask, violations
from tests.browser.test_debug_panel import open_panel

QUESTION = "Which seal kit fits the MX-9920-W?"
UNUSABLE = "The judge named no statements."


def test_scores_arrive_in_the_panel_and_in_the_admin(site: Site, page: Page) -> None:
    from evaluation.judgements import judge
    from evaluation.models import Judgement, Score

    site.sign_in(page)
    turn = ask(page, QUESTION)
    with site.data():
        by_rules = Judgement.objects.get(answer=(turn.get_attribute("id") or "").removeprefix("answer-"))
        by_model = Judgement.objects.create(answer=by_rules.answer, judge=Judgement.Judge.MODEL)
    panel = open_panel(turn)
    rows = panel.locator(".scores tbody tr")
    expect(rows).to_contain_text(["pending", "pending"])
    panel.locator(".show-all").check()

    # A score, and an error beside another score.
    site.do(judge, by_rules.pk)
    expect(rows.filter(has_text="answer relevancy (rules)")).to_contain_text("1.00")
    expect(rows.filter(has_text="pending")).to_have_count(1)
    with site.data():
        Score.objects.create(judgement=by_model, metric=Score.Metric.FAITHFULNESS, score=0.93, reason="It is true.")
        Score.objects.create(judgement=by_model, metric=Score.Metric.ANSWER_RELEVANCY, error=UNUSABLE)
        by_model.end(Judgement.Status.FAILED, UNUSABLE)
    expect(rows.filter(has_text="faithfulness (language model)")).to_contain_text("0.93")
    failed = rows.filter(has_text="answer relevancy (language model)")
    expect(failed).to_contain_text("✕ failed")
    expect(failed).to_contain_text(UNUSABLE)
    expect(rows.filter(has_text="pending")).to_have_count(0)
    # Nothing else of the panel was drawn anew.
    expect(panel.locator(".show-all")).to_be_checked()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(4000)
    assert asked == []

    page.goto(f"{site.url}/admin/evaluation/judgement/?o=-1")
    expect(page.locator("#result_list .field-state")).to_contain_text(["failed", "judged"])
    assert violations(page) == []
    page.locator("#result_list tbody tr", has_text=UNUSABLE).locator("th a").click()
    expect(page.locator(".inline-group")).to_contain_text(UNUSABLE)
    page.get_by_role("link", name=QUESTION).first.click()
    expect(page.locator("#judgements-group")).to_contain_text(UNUSABLE)
