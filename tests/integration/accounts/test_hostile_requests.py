"""Hostile requests to the pages of accounts: refused on a page, never with a server error."""

import pytest
from django.test import Client

from tests.integration.accounts.conftest import PASSWORD

GETS = [
    "/accounts/oidc/sso/login/callback/",
    "/accounts/oidc/sso/login/callback/?code=x&state=y",
    "/accounts/oidc/sso/login/callback/?error=access_denied",
    "/accounts/oidc/sso/login/?process=redirect&next=https://evil.example/",
    "/accounts/oidc/sso/login/?process=\0&next=\0",
    "/accounts/oidc/sso/login/?auth_params=a%3Db&scope=x",
    "/accounts/oidc/other/login/",
    "/accounts/oidc/other/login/callback/",
    "/accounts/sso/signup/",
    "/accounts/confirm-email/garbage/",
    "/accounts/confirm-email/",
    "/accounts/password/reset/key/1-x/",
    "/accounts/password/reset/key/zzzzzzzzzzzzzzzz-set-password/",
    "/accounts/password/reset/key/done/",
    "/accounts/2fa/authenticate/",
    "/accounts/2fa/recovery-codes/download/",
    "/accounts/2fa/totp/deactivate/",
    "/accounts/reauthenticate/",
    "/accounts/invitation/%00/",
    "/accounts/invitation/..%2f..%2f/",
    "/accounts/login/?next=%00",
    "/accounts/login/?next=//evil.example",
    "/accounts/email/",
    "/accounts/inactive/",
    "/accounts/login/code/confirm/",
]


@pytest.mark.parametrize("signed_in", [False, True])
def test_addresses_that_nobody_links_to(provider, administrator, signed_in):
    client = Client(raise_request_exception=False)
    for path in GETS:
        if signed_in:
            client.force_login(administrator)
        for response in (client.get(path), client.post(path, {"code": "x", "password": "x"})):
            assert response.status_code < 500, path
            assert "evil.example" not in response.get("Location", ""), path


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "a\0b", "password": "x"},
        {"username": "a\0b@example.org", "password": "x"},
        {"username": "x" * 100_000, "password": "x" * 100_000},
        {"username": "\ud7ff\u202e@\u0131.example", "password": "x"},
        {"username": ["a", "b"], "password": ["c", "d"]},
        {"username": "admin", "password": PASSWORD, "next": "https://evil.example/"},
        {"username": "admin", "password": PASSWORD, "next": "/\\evil.example"},
        {},
    ],
)
def test_odd_names_and_passwords(administrator, fields):
    client = Client(raise_request_exception=False)
    for headers in ({}, {"X-Requested-With": "XMLHttpRequest", "Accept": "application/json"}):
        response = client.post("/accounts/login/", fields, headers=headers)
        assert response.status_code < 500
        assert "evil.example" not in response.get("Location", "") + str(response.content)
        client.logout()


def test_a_sign_in_without_the_forms_token_is_refused(administrator):
    client = Client(enforce_csrf_checks=True)
    for path in ("/accounts/login/", "/accounts/logout/", "/accounts/signup/", "/accounts/password/reset/"):
        response = client.post(path, {"username": "admin", "password": PASSWORD, "email": "a@example.org"})
        assert response.status_code == 403
