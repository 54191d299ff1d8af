"""An experiment in the admin: written down, started, asked within, looked at, and its winner published."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.conf import LazySettings
from django.utils import timezone
from playwright.sync_api import Page, expect

from chat.models import Answer
from evaluation.arms import Arm
from evaluation.experiments import arm_of
from evaluation.models import Experiment
from retrieval.models import SearchProfile
from retrieval.search import profiles
from tests.browser.conftest import PHONE, WIDE, Complaints, Site
from tests.browser.pages import ask, is_too_wide, violations
from tests.support.experiments import LONG_AGO, simulate, versions

# Its answer is not kept from another test.
QUESTION = "Which seal kit belongs to the MX-9920-W?"


@pytest.fixture
def own_site(site: Site, settings: LazySettings) -> Iterator[Site]:
    """The site, on which experiments are made: until the end of the test."""
    # The answers of simulated visitors are not judged.
    settings.EVALUATE_ANSWERS = False
    yield site
    with site.data():
        profiles.withdraw()
        Experiment.objects.all().delete()
        SearchProfile.objects.all().delete()


def begin_long_ago() -> Experiment:
    """As if the running experiment had begun long ago, so that the visitors to be simulated came within it."""
    Experiment.objects.filter(state="running").update(started_at=timezone.now() - LONG_AGO)
    return Experiment.objects.get(state="running")


def test_an_experiment_from_its_plan_to_its_winner(
    own_site: Site, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    # Axe tries both in the admin, and the policy keeps it from them; the other test hears what the pages do.
    complaints.expected += ["Applying inline style", "preload assets"]
    page = visitor()
    own_site.sign_in(page)
    with own_site.data():
        control, treatment = versions()
    page.goto(f"{own_site.url}/admin/evaluation/experiment/add/")
    page.fill("#id_name", "More passages")
    page.select_option("#id_control", str(control.pk))
    page.select_option("#id_treatment", str(treatment.pk))
    page.click("[name=_save]")
    expect(page.locator(".experiment")).to_contain_text("You may look at the result whenever you like")
    assert violations(page) == []
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator(".experiment-verdict")).to_contain_text("No decision yet")

    asker = visitor()
    asker.goto(own_site.url)
    ask(asker, QUESTION)
    with own_site.data():
        answer = Answer.objects.select_related("conversation").latest("created_at")
        is_treated = arm_of(Experiment.objects.get(), answer.conversation.subject) is Arm.TREATMENT
        assert answer.profile_version_id == (treatment if is_treated else control).pk
        simulate(begin_long_ago(), 300, lambda arm: 0.85 if arm is Arm.TREATMENT else 0.4)
    page.reload()
    expect(page.locator(".experiment-verdict")).to_contain_text("The treatment is better")
    rows = page.locator(".experiment-table tbody tr")
    expect(rows.filter(has_text="treatment").first).to_contain_text(str(treatment))
    expect(rows.filter(has_text="primary metric")).to_contain_text("pp to +")
    for screen in (WIDE, PHONE):
        page.set_viewport_size(screen["viewport"])
        assert not is_too_wide(page)
    assert violations(page) == []

    page.get_by_role("button", name="End", exact=True).click()
    page.get_by_role("button", name=f"Publish {treatment}").click()
    expect(page.locator(".messagelist")).to_contain_text(f"In force: {treatment}.")
    expect(page.locator(".experiment-actions button")).to_have_count(0)
    with own_site.data():
        assert profiles.published_version() == treatment
