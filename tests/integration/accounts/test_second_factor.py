"""A second factor: asked at every way to sign in, guessed only so often, demanded of staff by a setting."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.test import Client

from ragsite.accounts import sign_in_limits
from tests.integration.accounts.conftest import PASSWORD, is_signed_in
from tests.support.people import make_reader


def code_of(secret):
    # The code of the present step is still valid when the next step begins.
    _before, now, _next = yield_hotp_counters_from_time()
    return str(format_hotp_value(hotp_value(secret, now)))


@pytest.fixture
def secret(administrator):
    secret = str(generate_totp_secret())
    TOTP.activate(administrator, secret)
    return secret


def sign_in(client, page="/accounts/login/"):
    return client.post(page, {"username": "admin", "password": PASSWORD})


def test_a_code_is_asked_after_the_password(client, secret):
    assert sign_in(client)["Location"] == "/accounts/2fa/authenticate/"
    assert not is_signed_in(client)
    assert client.post("/accounts/2fa/authenticate/", {"code": "000000"}).status_code == 200
    assert client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)}).status_code == 302
    assert is_signed_in(client)
    assert client.get("/admin/").status_code == 200


def test_a_password_alone_opens_nothing_elsewhere(client, secret):
    assert "needs more than a password" in sign_in(client, "/admin/login/").content.decode()
    assert not is_signed_in(client)
    basic = client.get("/api/v1/conversations/", headers={"Authorization": "Basic YWRtaW46YSBsb25nIGVub3VnaCBvbmU="})
    assert basic.status_code == 401
    assert "needs more than a password" in basic.json()["detail"]


def test_codes_are_guessed_only_so_often(client, secret, settings):
    settings.SIGN_IN_FAILURES = 3
    sign_in(client)
    for _ in range(3):
        assert client.post("/accounts/2fa/authenticate/", {"code": "000000"}).status_code == 200
    refused = client.post("/accounts/2fa/authenticate/", {"code": code_of(secret)})
    assert refused.status_code == 429
    assert "Too many failed attempts" in refused.content.decode()
    assert not is_signed_in(client)


def test_codes_are_guessed_only_so_often_from_all_addresses_together(secret, monkeypatch):
    monkeypatch.setattr(sign_in_limits, "ACCOUNT_FAILURES", 3)
    statuses = []
    for number in range(5):
        client = Client(REMOTE_ADDR=f"198.51.100.{number}")
        sign_in(client)
        statuses.append(client.post("/accounts/2fa/authenticate/", {"code": "000000"}).status_code)
    assert statuses == [200] * 3 + [429] * 2


def test_secrets_are_stored_encrypted(secret):
    assert secret not in str(list(Authenticator.objects.values()))


def test_the_admin_stays_closed_to_staff_without_a_second_factor_where_it_is_required(client, administrator, settings):
    assert sign_in(client).status_code == 302
    assert client.get("/admin/").status_code == 200
    settings.STAFF_REQUIRES_MFA = True
    response = client.get("/admin/retrieval/document/", follow=True)
    assert response.redirect_chain[-1][0] == "/accounts/2fa/"
    assert "Set up a second factor first" in response.content.decode()
    assert client.get("/").status_code == 200
    TOTP.activate(administrator, generate_totp_secret())
    assert client.get("/admin/retrieval/document/").status_code == 200


def test_a_reader_is_not_asked_for_one(client, settings):
    settings.STAFF_REQUIRES_MFA = True
    make_reader("rita", password=PASSWORD)
    assert client.post("/accounts/login/", {"username": "rita", "password": PASSWORD})["Location"] == "/"


def test_an_administrator_sees_no_secrets_and_may_remove_a_second_factor(client, administrator, secret):
    client.force_login(administrator)
    row = Authenticator.objects.get(type="totp")
    page = client.get(f"/admin/mfa/authenticator/{row.pk}/change/").content.decode()
    assert "secret" not in page
    assert row.data["secret"] not in page
    assert client.post(f"/admin/mfa/authenticator/{row.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Authenticator.objects.filter(type="totp").exists()
