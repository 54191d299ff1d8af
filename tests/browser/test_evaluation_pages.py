"""An administrator's pages of evaluation, profiles and drafts: live updates and looks.

`tests/integration` tests the forms.
"""

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, WIDE
from tests.browser.pages import ask, is_too_wide, too_wide, violations

NUMBER = 8
# The folder, if set, gets pictures of the pages.
PICTURES = os.environ.get("RAGSITE_TEST_PICTURES", "")


def look(page, name):
    """Assert that the page keeps the rules that a program can check, and fits its window."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True, caret="initial")
    # In Django's admin, links differ from their text by colour alone, and boxes to delete a row have no label. The
    # frame is alike on all pages of the admin, and the dashboard's test checks it.
    assert violations(page, "#content", exclude="td.delete", without=["link-in-text-block"]) == []
    assert not is_too_wide(page)


@pytest.fixture
def library(site):
    """Yield a small collection, with as many documents as a set has questions."""
    from retrieval.documents import submission
    from retrieval.models import Collection, Document, Draft

    with site.data():
        made = Collection.objects.create(slug="shelf", name="Shelf", visibility="public")
        for fruit in ("apple", "cherry", "damson", "elder", "fig", "grape", "medlar", "plum"):
            text = (
                f"# {fruit.title()}\n\n## How do you prune the {fruit}?\n\nThe {fruit} is pruned in winter, by hand.\n"
            )
            submission.submit(made, f"{fruit}.md", text.encode(), enqueue=False)
    site.work()
    yield made.pk
    with site.data():
        Draft.objects.all().delete()
        Document.objects.filter(collection__slug__startswith="shelf").delete()
        Collection.objects.filter(slug__startswith="shelf").delete()


def add_set(site, library, name):
    """Add a set with a question to each document; return its address."""
    from retrieval.models import Collection, Document
    from tests.support.evaluation_sets import set_of

    with site.data():
        titles = Document.objects.filter(collection=library).values_list("title", "source")
        asked = {f"How do you prune the {title.lower()}?": source for title, source in titles}
        made = set_of(Collection.objects.get(pk=library), name.lower(), asked)
    return f"{site.url}/admin/evaluation/evaluationset/{made.pk}/change/"


def begin(site, page, collection):
    """Begin a draft on the collection's page; returns that one's address and the draft's, once all is copied."""
    address = f"{site.url}/admin/retrieval/collection/{collection}/change/"
    page.goto(address)
    page.get_by_role("button", name="Begin a draft").click()
    expect(page.locator(".messagelist")).to_contain_text("Started: ")
    site.work()
    # It says so by itself.
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("open")
    expect(page.get_by_text("No changes yet")).to_be_visible()
    return address, page.url


def test_a_set_is_run_and_the_result_arrives_by_itself(site, library, visitor):
    page = visitor(**WIDE)
    site.sign_in(page)
    address = add_set(site, library, "Fruit")
    page.goto(address)
    page.select_option("#id_profile", "built-in")
    page.get_by_role("button", name=f"Run search ({NUMBER})").click()
    expect(page.locator("#run")).to_contain_text(f"0 / {NUMBER}")
    site.work()
    expect(page.locator("#run")).to_contain_text(f"{NUMBER} / {NUMBER}")
    expect(page.locator("#run .ragsite-status-done")).to_have_text("done")
    expect(page.locator("#results tbody tr")).to_have_count(NUMBER)
    expect(page.locator("#run table")).to_contain_text("nDCG@10")
    look(page, "run")
    phone = visitor(**PHONE)
    site.sign_in(phone)
    phone.goto(address)
    expect(phone.locator("figure#trend svg")).to_be_visible()
    look(phone, "phone-set")


def test_documents_change_in_a_draft_and_for_readers_all_at_once(site, library, visitor, tmp_path):
    from retrieval.models import Collection, Document, Draft

    question, text = "How much juice does the quince press give?", "The quince press gives eleven litres of juice."
    (tmp_path / "quince-press.md").write_text(f"# Quince press\n\n{text}\n")
    page, phone = visitor(**WIDE), visitor(**PHONE)
    site.sign_in(page)
    site.sign_in(phone)
    collection, draft = begin(site, page, library)
    page.get_by_role("link", name="Add documents").click()
    page.set_input_files("#id_file", tmp_path / "quince-press.md")
    expect(page.locator(".uploads li .ragsite-status")).to_be_visible()
    page.goto(draft)
    # A worker reads the document, and the page then shows it.
    expect(page.locator("[data-changes=added] .ragsite-status")).to_be_visible()
    site.work()
    expect(page.get_by_role("button", name="Publish")).to_be_visible()
    expect(page.locator("[data-changes=added] .ragsite-status")).to_have_count(0)
    with site.data():
        removed = Document.objects.get(collection=Collection.objects.get(draft=Draft.objects.get()), source="fig.md")
        removed.delete()
    for address in (draft, collection):
        phone.goto(address)
        look(phone, "draft-phone")
    page.goto(site.url)
    expect(ask(page, question)).not_to_contain_text("eleven litres")
    page.goto(draft)
    expect(page.locator("[data-changes=removed]")).to_contain_text("fig")
    page.get_by_role("button", name="Publish").click()
    site.work()
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("published")
    look(page, "draft-published")
    page.goto(site.url)
    expect(ask(page, question)).to_contain_text("eleven litres")


def test_two_profiles_in_the_playground(site, page):
    site.sign_in(page)
    page.goto(
        f"{site.url}/admin/retrieval/searchprofile/playground/"
        "?question=Which seal kit fits the MX-9920-W&a=built-in&b=built-in"
    )
    page.eval_on_selector_all("#content details", "nodes => nodes.forEach(node => node.open = true)")
    assert violations(page, "#content") == []
    assert [each for each in too_wide(page) if "at 320" not in each] == []
    widths = page.locator(".ragsite-side ol .ragsite-bar .bar").evaluate_all(
        "bars => bars.map(bar => bar.getBoundingClientRect().width)"
    )
    assert max(widths) > 10


@pytest.fixture(scope="module")
def busy_site(site):
    """Return the site with three weeks of answers, good and bad, and no others."""
    from chat.models import Conversation

    with site.data():
        Conversation.objects.all().delete()
        _three_weeks()
    return site


def _three_weeks():
    from django.utils import timezone

    from chat.models import Feedback
    from evaluation.models import Judgement, Score
    from tests.support.judged_answers import completed_answer

    for number in range(63):
        refused = number % 7 == 0
        made = completed_answer(
            question=f"How heavy is pump {number}?",
            refused=refused,
            completed_at=timezone.now() - timedelta(hours=8 * number),
            timings_ms={"first_token": 120 + 5 * (number % 9), "total": 700 + 90 * (number % 11)},
            degraded=["vector"] if number % 13 == 0 else [],
        )
        if refused:
            continue
        if number % 3 == 0:
            Feedback.objects.create(answer=made, helpful=number % 9 != 0, reason="" if number % 9 else "wrong")
        judgement = Judgement.objects.create(answer=made, judge=Judgement.Judge.OFFLINE, status="done")
        for metric, score in (("groundedness", 1 - (number % 10) / 11), ("answer_relevancy", 0.4 + (number % 6) / 10)):
            Score.objects.create(judgement=judgement, metric=metric, score=score, threshold=0.5, reason="Counted.")


def test_the_dashboard_draws_its_charts(busy_site, page):
    busy_site.sign_in(page)
    page.goto(f"{busy_site.url}/admin/")
    page.locator(".dashboard-cards").get_by_role("link", name=re.compile("^Dashboard")).click()
    expect(page.get_by_role("heading", name="Dashboard", exact=True)).to_be_visible()
    drawings = page.locator("svg.chart-drawing")
    expect(drawings).to_have_count(5)
    for screen in (WIDE, PHONE):
        page.set_viewport_size(screen["viewport"])
        for drawing in drawings.all():
            assert drawing.bounding_box()["width"] > 250
            # The letters stay readable where the drawing shrinks.
            assert drawing.locator("text").first.evaluate("node => node.getBoundingClientRect().height") > 10
        assert not is_too_wide(page)
        assert violations(page) == []
