"""Accounts in the browser: a passkey, and the look of the pages."""

import pytest
from playwright.sync_api import expect

from tests.browser.pages import in_all_looks
from tests.support.demo import PASSWORD


@pytest.fixture(autouse=True)
def reader(site):
    """Yield an account of staff with the administrator's password, hashed as the server does."""
    from django.contrib.auth.models import User

    with site.data():
        made = User.objects.create_user("reader", "reader@example.org", is_staff=True)
        made.password = User.objects.get(username="admin").password
        made.save()
    yield
    with site.data():
        made.delete()


def test_a_passkey_is_added_and_signs_in(site, page):
    """The site is on localhost, because browsers give no passkeys to bare addresses."""
    url = site.url.replace("127.0.0.1", "localhost")
    key = page.context.new_cdp_session(page)
    key.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    key.send("WebAuthn.addVirtualAuthenticator", {"options": options})

    page.goto(f"{url}/accounts/login/?next=/accounts/2fa/webauthn/add/")
    page.fill("#id_username", "reader")
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


def test_the_pages_are_accessible_and_fit(site, page):
    found = []

    def look(path):
        page.goto(f"{site.url}{path}")
        found.extend(in_all_looks(page))

    for path in ("/accounts/login/", "/accounts/password/reset/", "/admin/login/"):
        look(path)
    page.goto(f"{site.url}/accounts/login/")
    page.fill("#id_username", "reader")
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{site.url}/")
    for path in ("/accounts/", "/accounts/password/change/", "/accounts/2fa/", "/account/keys/", "/account/data/"):
        look(path)
    look("/accounts/2fa/totp/activate/")
    page.fill("#id_password", PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    expect(page.locator(".qr")).to_be_visible()
    found += in_all_looks(page)
    assert found == []
