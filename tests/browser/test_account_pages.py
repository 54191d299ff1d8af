"""One's keys and one's data, on a wide screen and on a phone."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import in_all_looks, is_too_wide, violations


def test_a_key_is_made_used_and_revoked(site: Site, page: Page) -> None:
    site.sign_in(page)
    page.locator("a.foot-link[href='/accounts/']").click()
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("ask: ask questions").uncheck()
    page.get_by_label("Handbook", exact=True).check()
    page.get_by_role("button", name="Make the key").click()
    secret = page.locator(".secret").text_content()
    assert secret is not None
    found = in_all_looks(page)
    assert not is_too_wide(page)

    def answer_to(method: str, path: str, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        options: dict[str, Any] = {"data": body} if body else {}
        return page.context.request.fetch(f"{site.url}{path}", method=method, headers=headers, **options)

    with site.data():
        from ragsite.models import AuditEntry

        entry = AuditEntry.objects.filter(action="key.added").latest("pk")
        assert (str(entry.actor), entry.via, entry.address) == ("admin", "page", "127.0.0.1")
    listed = answer_to("GET", "/api/v1/collections/").json()
    assert [row["slug"] for row in listed["results"]] == ["handbook"]
    assert answer_to("POST", "/api/v1/ask/", question="What is it?").status == 403

    row = page.get_by_role("listitem").filter(has_text="Laptop")
    row.get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("Revoked on")
    assert secret not in page.content()
    assert answer_to("GET", "/api/v1/collections/").status == 401

    page.get_by_role("link", name="Your data").click()
    expect(page.get_by_role("heading", name="Erase your account")).to_be_visible()
    found += in_all_looks(page)
    assert not is_too_wide(page)
    assert found == []


def test_a_person_erases_their_account(site: Site, page: Page) -> None:
    from django.contrib.auth.models import User

    with site.data():
        User.objects.create_user("reader")
    site.sign_in(page, "reader")
    page.goto(f"{site.url}/account/data/")
    page.get_by_label("Your account's name").fill("reader")
    page.get_by_role("button", name="Erase my account").click()
    expect(page.get_by_role("heading", name="Your account is erased")).to_be_visible()
    assert violations(page) == []
    page.goto(f"{site.url}/account/keys/")
    expect(page).to_have_url(f"{site.url}/accounts/login/?next=/account/keys/")
