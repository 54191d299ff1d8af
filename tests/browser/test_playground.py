"""An admin's way with search profiles: edit one, try it beside the one in force, publish it, roll it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints, Site
from tests.browser.pages import ask, in_all_looks
from tests.browser.test_accessibility import too_wide

PROFILES = "/admin/retrieval/searchprofile/"
QUESTION = "Which seal kit fits the MX-9920-W?"


@pytest.fixture(scope="module")
def own_site(site: Site) -> Iterator[Site]:
    """The site, whose searches change: until the end of the module."""
    from retrieval.models import SearchProfile
    from retrieval.search import profiles

    yield site
    with site.data():
        profiles.withdraw()
        SearchProfile.objects.all().delete()


@pytest.fixture
def two_versions(own_site: Site) -> tuple[int, int]:
    """A profile by words alone and then by vectors alone, as the ids of its versions; nothing is in force."""
    from retrieval.models import SearchProfile
    from retrieval.profile_settings import ProfileSettings
    from retrieval.search import profiles
    from retrieval.types import MetadataBoost, SearchMethod

    with own_site.data():
        SearchProfile.objects.all().delete()
        profile = SearchProfile.objects.create(slug="parts", name="Parts catalogue")
        boosts = (MetadataBoost("department", "service", 0.5),)
        words = ProfileSettings(method=SearchMethod.LEXICAL, top_k=6, metadata_boosts=boosts)
        meaning = ProfileSettings(method=SearchMethod.VECTOR, top_k=6)
        return (
            profiles.add_version(profile, words, note="by words alone, for part numbers").pk,
            profiles.add_version(profile, meaning, note="by meaning alone").pk,
        )


def test_edit_try_publish_roll_back(own_site: Site, page: Page) -> None:
    own_site.sign_in(page)
    page.goto(f"{own_site.url}{PROFILES}")
    expect(page.locator(".ragsite-in-force")).to_contain_text("No version is published")
    page.locator(".object-tools").get_by_role("link", name=re.compile("Add search profile")).click()
    page.locator("#id_name").press_sequentially("Words only")
    expect(page.locator("#id_slug")).to_have_value("words-only")
    page.select_option("#id_method", "lexical")
    page.fill("#id_top_k", "900")
    page.get_by_role("button", name="Save as version 1").click()
    expect(page.locator(".field-top_k .errorlist")).to_contain_text("less than or equal to 200")
    page.fill("#id_top_k", "3")
    page.get_by_label("Key, row 1").fill("department")
    page.get_by_label("Value, row 1").fill("service")
    page.get_by_label("Weight, row 1").fill("0.5")
    page.get_by_label("code, lexical").fill("0.9")
    page.fill("#id_note", "three passages, by words")
    page.get_by_role("button", name="Save as version 1").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Saved: words-only v1.")
    expect(page.get_by_label("Value, row 1")).to_have_value("service")
    expect(page.get_by_label("code, lexical")).to_have_value("0.9")

    page.locator(".ragsite-versions").get_by_text(re.compile(r"\d settings")).click()
    expect(page.locator(".ragsite-differences")).to_contain_text("Passages returned")
    page.get_by_role("link", name="Try words-only v1").click()
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_role("button", name="Search").click()
    sides = page.locator(".ragsite-side")
    expect(sides).to_have_count(2)
    expect(sides.nth(0).locator("h2")).to_contain_text("built-in")
    expect(sides.nth(1).locator("h2")).to_contain_text("words-only v1")
    expect(sides.nth(1).locator("ol > li")).to_have_count(3)
    expect(sides.nth(1)).to_contain_text("Ranked by lexical")
    expect(sides.nth(1).locator(".ragsite-terms").first).to_contain_text("mx9920w")
    widths = (
        sides.nth(1)
        .locator("ol .ragsite-bar .bar")
        .evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    )
    assert max(widths) > 10
    dropped = sides.nth(1).locator(".ragsite-dropped")
    dropped.locator("summary").click()
    expect(dropped).to_contain_text("not among the first 3")

    sides.nth(1).get_by_role("button", name="Publish").click()
    expect(page.locator(".messagelist .success")).to_contain_text("In force: words-only v1.")
    expect(sides.nth(0).locator("h2")).to_contain_text("words-only v1")
    sides.nth(1).locator("ol > li a").first.click()
    expect(page.locator("#passage")).to_be_visible()

    page.goto(own_site.url)
    turn = ask(page, QUESTION)
    turn.locator(".debug summary").first.click()
    expect(turn.locator(".debug")).to_contain_text("lexical")

    page.goto(f"{own_site.url}{PROFILES}")
    expect(page.locator(".ragsite-in-force")).to_contain_text("words-only v1")
    page.get_by_role("link", name="Words only").click()
    page.select_option("#id_method", "rrf")
    page.get_by_role("button", name="Save as new version").click()
    page.get_by_role("button", name="Publish words-only v2").click()
    expect(page.locator(".messagelist .success")).to_contain_text("In force: words-only v2.")
    page.get_by_role("button", name="Publish words-only v1").click()
    expect(page.locator(".messagelist .success")).to_contain_text("In force: words-only v1.")
    page.get_by_role("link", name="Start from it (words-only v1)").click()
    expect(page.locator("#id_method")).to_have_value("lexical")
    page.get_by_role("button", name="Back to the built-in profile").click()
    expect(page.locator(".messagelist .success")).to_contain_text("The built-in profile is in force.")


def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(
    own_site: Site, two_versions: tuple[int, int], page: Page, complaints: Complaints
) -> None:
    from retrieval.models import SearchProfileVersion
    from retrieval.search import profiles

    # Axe tries both in the admin, and the policy keeps it from them; the other test hears what the pages do.
    complaints.expected += ["Applying inline style", "preload assets"]
    words, meaning = two_versions
    with own_site.data():
        profiles.publish(SearchProfileVersion.objects.get(pk=words))
        profile = SearchProfileVersion.objects.get(pk=words).profile_id
    own_site.sign_in(page)
    found = []
    for address in (
        "",
        f"{profile}/change/?from=1",
        f"playground/?question={QUESTION.rstrip('?')}&a={words}&b={meaning}",
    ):
        page.goto(f"{own_site.url}{PROFILES}{address}")
        page.eval_on_selector_all("#content details", "nodes => nodes.forEach(node => node.open = true)")
        found += in_all_looks(page, "#content")
        if address.startswith(("playground", str(profile))):
            found += [each for each in too_wide(page) if "at 320" not in each]
    assert found == []
