"""An administrator measures search: runs sets, compares the runs, and meets a gate."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Complaints, Site
from tests.browser.pages import is_too_wide, violations

NUMBER = 8
# Where pictures of the pages are kept, when somebody wants to look at them.
PICTURES = os.environ.get("RAGSITE_TEST_PICTURES", "")


def look(page: Page, name: str) -> None:
    """The page as it is keeps the rules that a program can check, and fits its window."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True, caret="initial")
    # In Django's admin, links differ from their text by colour alone, and boxes to delete a row have no label.
    # What stands around it is alike on all pages of the admin, and looked at on the dashboard.
    assert violations(page, "#content", exclude="td.delete", without=["link-in-text-block"]) == []
    assert not is_too_wide(page)


@pytest.fixture
def own_site(site: Site) -> Iterator[Site]:
    """The site, on which sets, gates and profiles are made: until the end of the test."""
    from evaluation.models import EvaluationSet, GatePolicy
    from retrieval.models import SearchProfile
    from retrieval.search import profiles

    yield site
    with site.data():
        GatePolicy.objects.all().delete()
        EvaluationSet.objects.all().delete()
        profiles.withdraw()
        SearchProfile.objects.all().delete()


@pytest.fixture
def library(own_site: Site) -> Iterator[int]:
    """A small collection, with as many documents as a set has questions; it is gone after the test."""
    from retrieval.documents import submission
    from retrieval.models import Collection, Document, Draft

    with own_site.data():
        made = Collection.objects.create(slug="shelf", name="Shelf", visibility="public")
        for fruit in ("apple", "cherry", "damson", "elder", "fig", "grape", "medlar", "plum"):
            text = (
                f"# {fruit.title()}\n\n## How do you prune the {fruit}?\n\nThe {fruit} is pruned in winter, by hand.\n"
            )
            submission.submit(made, f"{fruit}.md", text.encode(), enqueue=False)
    own_site.work()
    yield made.pk
    with own_site.data():
        Draft.objects.all().delete()
        Document.objects.filter(collection__slug__startswith="shelf").delete()
        Collection.objects.filter(slug__startswith="shelf").delete()


def add_set(own_site: Site, library: int, name: str) -> str:
    """A set with a question to each document; returns its address."""
    from retrieval.models import Collection, Document
    from tests.support.evaluation_sets import set_of

    with own_site.data():
        titles = Document.objects.filter(collection=library).values_list("title", "source")
        asked = {f"How do you prune the {title.lower()}?": source for title, source in titles}
        made = set_of(Collection.objects.get(pk=library), name.lower(), asked)
    return f"{own_site.url}/admin/evaluation/evaluationset/{made.pk}/change/"


def test_a_set_is_run_and_the_result_arrives_by_itself(
    own_site: Site, library: int, visitor: Callable[..., Page]
) -> None:
    page = visitor(**WIDE)
    own_site.sign_in(page)
    address = add_set(own_site, library, "Fruit")
    page.goto(address)
    look(page, "set-empty")
    page.select_option("#id_profile", "built-in")
    expect(page.get_by_role("button", name="Run answers")).to_have_count(0)
    expect(page.locator("section .help")).to_contain_text("has an expected answer, or words that an answer must hold")
    page.get_by_role("button", name=f"Run search ({NUMBER})").click()
    expect(page.locator("#run")).to_contain_text(f"0 / {NUMBER}")
    own_site.work()
    # It says so by itself.
    expect(page.locator("#run")).to_contain_text(f"{NUMBER} / {NUMBER}")
    expect(page.locator("#run .ragsite-status-ready")).to_have_text("done")
    run = page.url
    expect(page.locator("#results tbody tr")).to_have_count(NUMBER)
    expect(page.locator("#run table")).to_contain_text("nDCG@10")
    look(page, "run")
    page.get_by_role("link", name="Explain").first.click()
    expect(page.locator(".ragsite-hits").first).to_be_visible()
    page.goto(address)
    expect(page.locator("figure#trend svg")).to_be_visible()
    page.get_by_role("link", name="hit@10").click()
    expect(page.locator("figure#trend")).to_contain_text("hit@10 over time")
    phone = visitor(**PHONE)
    own_site.sign_in(phone)
    for name, place in (("set", address), ("run", run)):
        phone.goto(place)
        look(phone, f"phone-{name}")


def test_answers_are_run_and_two_runs_compared(own_site: Site, visitor: Callable[..., Page]) -> None:
    from django.conf import settings

    from evaluation.models import EvaluationQuestion, EvaluationSet
    from retrieval.models import Collection
    from retrieval.profile_settings import ProfileSettings
    from retrieval.types import SearchMethod
    from tests.support.evaluation_sets import version_of

    demo = json.loads((settings.BASE_DIR / "demo" / "questions.json").read_text())
    of_parts = [one for one in demo["questions"] if one["collection"] == "parts"][:8]
    with own_site.data():
        made = EvaluationSet.objects.create(slug="parts", name="Parts", collection=Collection.objects.get(slug="parts"))
        for one in of_parts:
            EvaluationQuestion.objects.create(evaluation_set=made, text=one["question"], expected_answer=one["answer"])
        for one in demo["unanswerable"][:3]:
            EvaluationQuestion.objects.create(evaluation_set=made, text=one["question"], expects_refusal=True)
        EvaluationQuestion.objects.create(
            evaluation_set=made,
            text="How much is the fish?",
            expected_answer="<b>Three</b> euros.",
            must=["<b>three</b> euros|3 euros"],
            longest=80,
        )
        # It finds nothing, because no passage reaches its threshold.
        blind = version_of(ProfileSettings(method=SearchMethod.LEXICAL, score_threshold=1000, reranker="none"), "blind")
    total = len(of_parts) + 4
    page = visitor(**WIDE)
    own_site.sign_in(page)
    address = f"{own_site.url}/admin/evaluation/evaluationset/{made.pk}/change/"
    runs = []
    for profile in (str(blind.pk), "built-in"):
        page.goto(address)
        page.select_option("#id_profile", profile)
        page.get_by_role("button", name=f"Run answers ({total})").click()
        expect(page.locator("#run")).to_contain_text(f"0 / {total}")
        own_site.work()
        expect(page.locator("#run .ragsite-status-ready")).to_have_text("done")
        expect(page.locator("#results tbody tr")).to_have_count(total)
        runs.append(page.url)
    expect(page.locator("#run table")).to_contain_text("agreement")
    expect(page.locator("#results")).to_contain_text("<b>Three</b> euros.")
    expect(page.locator("#results .ragsite-unmet")).to_contain_text("missing: <b>three</b> euros|3 euros")
    right = page.locator("#results .ragsite-status-ready").count()
    assert right > len(of_parts) / 2, "the demo's questions are about its documents"
    look(page, "answers-run")
    page.get_by_role("link", name="Wrong only").click()
    expect(page.locator("#results tbody tr")).to_have_count(total - right)
    expect(page.locator("#results .ragsite-status-ready")).to_have_count(0)
    page.locator(".ragsite-others a").first.click()
    expect(page.locator("#better tbody tr")).not_to_have_count(0)
    expect(page.locator("#better tbody tr").first).to_contain_text("The documents do not answer this question.")
    look(page, "answers-compared")
    compared = page.url
    page.goto(address)
    expect(page.locator("figure#trend")).to_contain_text("agreement over time")
    phone = visitor(**PHONE)
    own_site.sign_in(phone)
    for name, place in (("run", runs[1]), ("compared", compared), ("set", address)):
        phone.goto(place)
        look(phone, f"phone-answers-{name}")
    with own_site.data():
        refused = made.questions.filter(expects_refusal=True)[0].pk
    page.goto(f"{own_site.url}/admin/evaluation/evaluationquestion/{refused}/change/")
    expect(page.get_by_label("No answer expected")).to_be_checked()
    look(page, "question")


def test_a_gate_refuses_what_is_worse_and_an_override_is_kept(
    own_site: Site, library: int, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    from retrieval.profile_settings import ProfileSettings
    from retrieval.types import SearchMethod
    from tests.support.evaluation_sets import version_of

    # A refusal is answered with 409, which a browser reports.
    complaints.expected.append("409")
    page = visitor(**WIDE)
    own_site.sign_in(page)
    add_set(own_site, library, "Gate")
    with own_site.data():
        # It finds nothing, because no passage reaches its threshold.
        version = version_of(ProfileSettings(method=SearchMethod.LEXICAL, score_threshold=1000, reranker="none"))
    page.goto(f"{own_site.url}/admin/evaluation/gatepolicy/add/")
    page.locator(".select2-selection").click()
    page.locator(".select2-results__option", has_text="Gate").click()
    look(page, "gate")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto(f"{own_site.url}/admin/retrieval/searchprofile/{version.profile_id}/change/")
    page.get_by_role("button", name=re.compile("Publish")).click()
    expect(page.locator(".ragsite-announcement")).to_contain_text("have not both been measured")
    look(page, "refused")
    page.get_by_role("link", name="Look and measure").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Run now").click()
    own_site.work()
    expect(page.locator("#gate")).to_contain_text("is significantly worse than built-in")
    expect(page.locator("#worse tbody tr")).not_to_have_count(0)
    look(page, "gate-worse")
    page.get_by_role("button", name=re.compile("Publish")).click()
    page.fill("#override", "To see what happens.")
    look(page, "override")
    page.get_by_role("button", name="Publish all the same").click()
    expect(page.locator(".messagelist")).to_contain_text("In force: default v1")
    page.goto(f"{own_site.url}/admin/retrieval/searchprofile/{version.profile_id}/change/")
    history = page.locator("section", has_text="Published against objections").last
    expect(history).to_contain_text("To see what happens.")
    expect(history).to_contain_text("is significantly worse than built-in")
    expect(history).to_contain_text("admin")
    look(page, "history")
