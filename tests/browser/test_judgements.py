"""What judges say of an answer, on the pages: a real worker, a real judge over HTTP, and nobody presses a button."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import ask, violations
from tests.browser.test_debug_panel import open_panel
from tests.support.databases import url_of
from tests.support.judge_server import judge_server
from tests.support.site import SiteProcess

QUESTION = "Which seal kit fits the MX-9920-W?"
WORKER = (
    "celery --app ragsite worker --loglevel INFO --concurrency 1 --without-gossip --without-mingle --without-heartbeat"
)
# A worker starts, and reads DeepEval and the embedder, on a machine that does other things as well.
ARRIVE_MILLISECONDS = 90_000


def test_scores_arrive_in_the_panel_and_in_the_admin(
    start_site: Callable[..., Site], visitor: Callable[..., Page], tmp_path: Path
) -> None:
    with judge_server() as judge:
        # Of one metric the judge says nothing: it is shown as an error beside the others' scores.
        judge.judged["Statements"] = {"statements": []}
        described = {"JUDGE_BASE_URL": judge.url, "JUDGE_MODEL": "tiny-judge", "JUDGE_ATTEMPTS": "1"}
        judge.judged["FaithfulnessVerdict"] = {"verdicts": [{"verdict": "yes", "reason": None}] * 2}
        site = start_site(**described)
        page = visitor()
        site.sign_in(page)
        scores = open_panel(ask(page, QUESTION)).locator("section.scores")
        expect(scores).to_contain_text("pending")
        log = tmp_path / "worker.log"
        worker = SiteProcess(WORKER.split(), log, DATABASE_URL=url_of(site.database), **described)
        try:
            expect(scores).to_contain_text("faithfulness (language model)", timeout=ARRIVE_MILLISECONDS)
            expect(scores).not_to_contain_text("pending", timeout=ARRIVE_MILLISECONDS)
        finally:
            worker.stop()
        rows = {row.locator("th").inner_text(): row.locator("td") for row in scores.locator("tbody tr").all()}
        assert float(rows["groundedness (rules)"].first.inner_text()) > 0.9
        assert rows["faithfulness (language model)"].first.inner_text() == "1.00"
        assert rows["answer relevancy (language model)"].first.inner_text() == "✕ failed"
        assert "named no statements" in rows["answer relevancy (language model)"].last.inner_text()

        page.goto(f"{site.url}/admin/evaluation/judgement/")
        expect(page.locator("#content")).to_contain_text("tiny-judge judges 100% of the answers")
        expect(page.locator("#result_list .field-state")).to_contain_text(["failed", "judged"])
        assert violations(page) == []
        page.locator("#result_list tbody tr", has_text="named no statements").locator("th a").click()
        expect(page.locator(".inline-group")).to_contain_text("named no statements")
        page.get_by_role("link", name=QUESTION).first.click()
        expect(page.locator("#judgements-group")).to_contain_text("named no statements")
