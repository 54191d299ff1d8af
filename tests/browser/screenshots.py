"""The pictures of the README, made anew: `python -m pytest tests/browser/screenshots.py` (no test, so never run along).

They show the demo documents, answered without a language model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from django.conf import LazySettings
from playwright.sync_api import Page, expect

from bench import with_constants
from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask
from tests.browser.test_evaluation_pages import begin, busy_site, own_site  # noqa: F401  # two of them are fixtures

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
LARGEST_BYTES = 250_000

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
BROKEN_SENSOR = "At what speed does the pump run while the sensor wire is broken?"
ADD_VAR = "What is the difference between addVar and setVar?"
VISITING_HOURS = "Wat zijn de bezoekuren op de afdeling cardiologie?"


def keep(page: Page, name: str) -> None:
    # Fonts, and pictures of the moment such as a pressed button, need a moment.
    page.wait_for_timeout(300)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")
    assert path.stat().st_size < LARGEST_BYTES, f"{path.name} has {path.stat().st_size} bytes"


def test_chat(site: Site, page: Page) -> None:
    page.goto(site.url)
    for question in (VISITING_HOURS, ADD_VAR):
        ask(page, question)
        page.goto(site.url)
    ask(page, SEAL_KIT)
    keep(page, "chat")
    page.locator(".cite a").first.hover()
    keep(page, "citation")


def test_phone(site: Site, visitor: Callable[..., Page]) -> None:
    page = visitor(**PHONE)
    page.goto(site.url)
    ask(page, ADD_VAR)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    keep(page, "phone")


def test_source_viewer(site: Site, page: Page) -> None:
    page.goto(site.url)
    ask(page, VISITING_HOURS)
    page.locator(".cite a").first.click()
    expect(page.locator("#passage")).to_be_in_viewport()
    keep(page, "source")


def test_debug_panel(site: Site, page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 1200})
    site.sign_in(page)
    turn = ask(page, BROKEN_SENSOR)
    turn.locator(".debug summary").click()
    expect(turn.locator(".candidates")).to_be_visible()
    turn.locator(".debug").evaluate("node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 16)")
    keep(page, "debug-panel")


def test_dashboard(busy_site: Site, page: Page) -> None:  # noqa: F811
    busy_site.sign_in(page)
    page.set_viewport_size({"width": 1440, "height": 1150})
    page.goto(f"{busy_site.url}/admin/evaluation/dashboard/")
    expect(page.locator("svg.chart-drawing")).to_have_count(7)
    page.evaluate("document.activeElement.blur()")
    keep(page, "dashboard")


def test_answers_run(own_site: Site, page: Page, settings: LazySettings) -> None:  # noqa: F811
    from evaluation.models import EvaluationQuestion, EvaluationSet
    from retrieval.models import Collection

    demo = json.loads((settings.BASE_DIR / "demo" / "questions.json").read_text())
    with own_site.data():
        made = EvaluationSet.objects.create(slug="parts", name="Parts", collection=Collection.objects.get(slug="parts"))
        for one in [one for one in demo["questions"] if one["collection"] == "parts"]:
            EvaluationQuestion.objects.create(evaluation_set=made, text=one["question"], expected_answer=one["answer"])
        for one in demo["unanswerable"][:10]:
            EvaluationQuestion.objects.create(evaluation_set=made, text=one["question"], expects_refusal=True)
    own_site.sign_in(page)
    page.set_viewport_size({"width": 1440, "height": 1150})
    page.goto(f"{own_site.url}/admin/evaluation/evaluationset/{made.pk}/change/")
    with page.expect_navigation():
        page.get_by_role("button", name="Run answers").click()
    own_site.work()
    expect(page.locator("#run .ragsite-status-ready")).to_have_text("done")
    page.evaluate("document.activeElement.blur()")
    keep(page, "answers-run")


def test_draft(own_site: Site, page: Page) -> None:  # noqa: F811
    from evaluation.models import EvaluationSet, GatePolicy
    from retrieval.models import Collection, Document, Draft

    with own_site.data():
        parts = Collection.objects.get(slug="parts")
        made = EvaluationSet.objects.get(slug="demo-parts")
        policy = GatePolicy.objects.create(evaluation_set=made, required_for_documents=True)
    own_site.sign_in(page)
    page.set_viewport_size({"width": 1440, "height": 700})
    begin(own_site, page, parts.pk)
    with own_site.data():
        draft = Draft.objects.get()
        for document in Document.objects.filter(collection__draft=draft).order_by("pk")[:3]:
            document.delete()
    page.goto(f"{own_site.url}/admin/evaluation/gatepolicy/{policy.pk}/drafts/{draft.pk}/")
    with page.expect_navigation():
        page.get_by_role("button", name="Run now").click()
    own_site.work()
    expect(page.locator("#gate")).to_contain_text("significantly worse")
    page.goto(f"{own_site.url}/admin/retrieval/draft/{draft.pk}/change/")
    expect(page.locator(".ragsite-draft")).to_contain_text("significantly worse")
    page.evaluate("document.activeElement.blur()")
    keep(page, "draft")


def test_experiment(start_site: Callable[..., Site], page: Page, settings: LazySettings) -> None:
    from django.contrib.auth.models import User

    from evaluation.arms import Arm
    from tests.support.experiments import simulate, started

    settings.EVALUATE_ANSWERS = False
    site = start_site(**with_constants(EVALUATE_ANSWERS=False))
    site.sign_in(page)
    with site.data():
        experiment = started(User.objects.get(username="admin"))
        simulate(experiment, 300, lambda arm: 0.85 if arm is Arm.TREATMENT else 0.55)
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"{site.url}/admin/evaluation/experiment/{experiment.pk}/change/")
    expect(page.locator(".experiment-primary")).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    keep(page, "experiment")
