"""Accounts in the browser: single sign-on, an invitation, a passkey, and the look of the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from bench import with_constants
from tests.browser.conftest import PHONE, Complaints, Site
from tests.browser.pages import ask, in_all_looks, is_too_wide
from tests.support.demo import PASSWORD
from tests.support.oidc_provider import Provider, oidc_provider

NAME = "Single sign-on"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with oidc_provider() as running:
        yield running


@pytest.fixture(autouse=True)
def _styles_of_the_provider(complaints: Complaints) -> None:
    """Its pages ask the internet for them."""
    complaints.expected.append("cdn.jsdelivr.net")


@pytest.fixture(scope="module")
def sso_site(start_site: Callable[..., Site], provider: Provider) -> Site:
    """A site for people whom the provider knows, and who were invited."""
    return start_site(
        CHAT_REQUIRES_LOGIN="true",
        OIDC_SERVER_URL=provider.url,
        OIDC_CLIENT_ID="ragsite",
        OIDC_CLIENT_SECRET="secret",
        SIGN_UP="invitation",
        **with_constants(MFA_SUPPORTED_TYPES=["totp", "recovery_codes", "webauthn"], MFA_PASSKEY_LOGIN_ENABLED=True),
    )


def sign_in_at_provider(page: Page, subject: str) -> None:
    """From the sign-in page to where it leads."""
    page.get_by_role("link", name=f"Sign in with {NAME}").click()
    page.fill("input[name=sub]", subject)
    page.get_by_role("button", name="Authorize").click()


def sign_out(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/accounts/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{site.url}/accounts/login/**")


def test_groups_come_and_go_with_single_sign_on(sso_site: Site, provider: Provider, page: Page) -> None:
    from django.contrib.auth.models import Group

    from retrieval.models import Collection, CollectionGrant, Visibility

    with sso_site.data():
        parts = Collection.objects.get(slug="parts")
        parts.visibility = Visibility.GRANTED
        parts.save()
        engineers = Group.objects.create(name="engineers")
        CollectionGrant.objects.create(collection=parts, group=engineers, role=CollectionGrant.Role.READER)
    provider.knows("ada", name="Ada Lovelace", groups=["engineers", "writers"])
    page.goto(sso_site.url)
    sign_in_at_provider(page, "ada")
    page.wait_for_url(f"{sso_site.url}/")
    expect(page.locator(".scope")).to_contain_text(parts.name)
    turn = ask(page, "Which seal kit fits the MX-9920-W?")
    expect(turn.locator(".answer")).to_contain_text("SK-9920-W")
    page.get_by_role("link", name=re.compile(r"ada\s*, your account")).click()
    expect(page.locator(".account-facts")).to_contain_text("engineers, writers")
    expect(page.locator(".account-facts")).to_contain_text("Ada Lovelace")
    sign_out(page, sso_site)

    provider.knows("ada", name="Ada Lovelace", groups=["writers"])
    sign_in_at_provider(page, "ada")
    page.goto(f"{sso_site.url}/accounts/")
    expect(page.locator(".account-facts")).to_contain_text("writers")
    expect(page.locator(".account-facts")).not_to_contain_text("engineers")
    # What the group opened is closed: the collection, and what was answered from it.
    page.goto(sso_site.url)
    expect(page.locator(".scope")).not_to_contain_text(parts.name)
    page.locator("#conversations a").first.click()
    expect(page.locator(".turn")).to_contain_text("documents that you may no longer read")
    expect(page.locator("main")).not_to_contain_text("SK-9920-W")


def test_whoever_was_asked_to_sign_in_goes_back_to_the_question(sso_site: Site, provider: Provider, page: Page) -> None:
    provider.knows("bea")
    page.goto(f"{sso_site.url}/?q=pump")
    sign_in_at_provider(page, "bea")
    page.wait_for_url(f"{sso_site.url}/?q=pump")


def test_an_invitation_is_followed_in_dutch_on_a_phone(sso_site: Site, visitor: Callable[..., Page]) -> None:
    from ragsite.accounts.invitations import new_token
    from ragsite.models.account import Invitation

    token, hashed = new_token()
    with sso_site.data():
        Invitation.objects.create(email="guest@example.com", token_hash=hashed)
    page = visitor(**PHONE, locale="nl-NL")
    page.goto(f"{sso_site.url}/accounts/invitation/{token}/")
    expect(page.locator("html")).to_have_attribute("lang", "nl")
    expect(page.locator("#id_email")).to_have_value("guest@example.com")
    page.fill("#id_password1", PASSWORD)
    page.fill("#id_password2", PASSWORD)
    page.locator("main [type=submit]").click()
    page.wait_for_url(f"{sso_site.url}/")
    page.goto(f"{sso_site.url}/accounts/")
    expect(page.get_by_role("heading", name="Uw account")).to_be_visible()
    expect(page.locator(".account-facts")).to_contain_text("guest@example.com")


def test_a_passkey_is_added_and_signs_in(sso_site: Site, page: Page) -> None:
    """On localhost, because browsers give no passkeys to bare addresses."""
    url = sso_site.url.replace("127.0.0.1", "localhost")
    key = page.context.new_cdp_session(page)
    key.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    key.send("WebAuthn.addVirtualAuthenticator", {"options": options})

    page.goto(f"{url}/accounts/login/?next=/accounts/2fa/webauthn/add/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery Codes")).to_be_visible()

    page.goto(f"{url}/accounts/")
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{url}/accounts/login/?next=/admin/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{url}/admin/")


def test_the_pages_are_accessible_and_fit(sso_site: Site, page: Page) -> None:
    from django.contrib.auth import get_user_model

    with sso_site.data():
        reader = get_user_model().objects.create_user("reader", "reader@example.org", is_staff=True)
        # Hashed as the server does, which is a process of its own.
        reader.password = get_user_model().objects.get(username="admin").password
        reader.save()
    found: list[str] = []

    def look(path: str) -> None:
        page.goto(f"{sso_site.url}{path}")
        found.extend(in_all_looks(page))
        assert not is_too_wide(page), path

    for path in ("/accounts/login/", "/accounts/password/reset/", "/accounts/signup/", "/admin/login/"):
        look(path)
    page.goto(f"{sso_site.url}/accounts/login/")
    page.fill("#id_username", "reader")
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{sso_site.url}/")
    for path in ("/accounts/", "/accounts/password/change/", "/accounts/2fa/"):
        look(path)
    look("/accounts/2fa/totp/activate/")
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    expect(page.locator(".qr")).to_be_visible()
    found += in_all_looks(page)
    assert found == []
