"""Accounts of readers: signing in by name or address, signing up, invitations, passwords, mail."""

import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from core.key_limits import KeyScope
from ragsite.accounts.keys import compute_digest, issue_key
from ragsite.models.account import Invitation
from tests.integration.accounts.conftest import PASSWORD, is_signed_in
from tests.support.people import make_reader, make_staff, make_superuser

NEW = {"password1": "quite another one", "password2": "quite another one"}


def sign_in(client, name, password=PASSWORD, page="/accounts/login/", **fields):
    return client.post(page, {"username": name, "password": password, **fields})


@pytest.fixture
def reader():
    return make_reader("rita", "Rita@example.org", PASSWORD)


@pytest.fixture
def mail(settings, mailoutbox):
    settings.MAIL_IS_SENT = True
    return mailoutbox


@pytest.mark.parametrize("name", ["rita", "rita@example.org", "RITA@example.org"])
def test_a_reader_signs_in_by_name_or_address_and_goes_back_to_the_page(client, reader, settings, name):
    settings.CHAT_REQUIRES_LOGIN = True
    asked = client.get("/conversations/?q=pump")["Location"]
    assert asked == "/accounts/login/?next=/conversations/%3Fq%3Dpump"
    response = sign_in(client, name, page=asked, next="/conversations/?q=pump")
    assert (response.status_code, response["Location"]) == (302, "/conversations/?q=pump")
    assert client.get("/accounts/").status_code == 200


def test_failures_with_name_and_address_count_as_one(client, reader, settings):
    settings.SIGN_IN_FAILURES = 4
    for name in ("rita", "rita@example.org"):
        for _ in range(2):
            assert sign_in(client, name, "wrong").status_code == 200
    refused = sign_in(client, "rita@example.org")
    assert refused.status_code == 429
    assert "Too many failed attempts" in refused.content.decode()
    assert not is_signed_in(client)


def test_an_address_of_two_accounts_signs_in_neither(client, reader):
    make_reader("other", "rita@example.org", PASSWORD)
    assert sign_in(client, "rita@example.org").status_code == 200
    assert sign_in(client, "rita").status_code == 302


@pytest.mark.parametrize("ticked", [True, False])
def test_a_new_password_revokes_the_keys_unless_the_box_is_cleared(client, reader, mail, ticked):
    changed_by_form = issue_key(reader, "Laptop", [KeyScope.ASK])
    sign_in(client, "rita")
    page = client.get("/accounts/password/change/").content.decode()
    assert re.search(r'<input type="checkbox" name="revoke_keys"[^>]* checked', page)
    box = {"revoke_keys": "on"} if ticked else {}
    assert client.post("/accounts/password/change/", {"oldpassword": PASSWORD, **NEW, **box}).status_code == 302
    reset_by_mail = issue_key(reader, "Laptop", [KeyScope.ASK])
    client.logout()
    client.post("/accounts/password/reset/", {"email": "rita@example.org"})
    [link] = re.findall(r"http://testserver(/accounts/password/reset/key/\S+)", mail[-1].body)
    assert client.post(client.get(link)["Location"], NEW | box).status_code == 302
    assert "Bad Token" in Client().get(link).content.decode()
    assert sign_in(Client(), "rita", NEW["password1"]).status_code == 302
    for key in (changed_by_form, reset_by_mail):
        key.refresh_from_db()
        assert (key.revoked_at is not None) == ticked


def test_an_address_that_was_replaced_resets_nothing(client, reader, mail):
    EmailAddress.objects.create(user=reader, email="rita@example.org", verified=True, primary=True)
    reader.email = "new@example.org"
    reader.save()
    client.post("/accounts/password/reset/", {"email": "rita@example.org"})
    assert not any("/password/reset/key/" in message.body for message in mail)


def test_without_mail_the_page_says_so_and_nothing_is_written(client, reader, mailoutbox):
    for response in (
        client.get("/accounts/password/reset/"),
        client.post("/accounts/password/reset/", {"email": "rita@example.org"}),
    ):
        assert "This site cannot send e-mail" in response.content.decode()
    assert mailoutbox == []


def test_a_mail_server_that_does_not_answer_is_told(client, reader, mail, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    for address in ("rita@example.org", "nobody@example.org"):
        response = client.post("/accounts/password/reset/", {"email": address})
        assert response.status_code == 503
        assert "could not be sent" in response.content.decode()


def test_signing_up_is_off(client):
    assert "currently closed" in client.get("/accounts/signup/").content.decode()
    client.post("/accounts/signup/", {"email": "new@example.org", **NEW})
    assert not User.objects.exists()
    assert "Sign up" not in client.get("/accounts/login/").content.decode()


@pytest.fixture
def by_domain(settings, mail):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domain", ["example.org"]
    return mail


def test_an_address_of_the_domain_is_confirmed_before_anything_opens(client, by_domain):
    assert "/accounts/signup/" in client.get("/accounts/login/").content.decode()
    client.post("/accounts/signup/", {"email": "New@Example.org", **NEW})
    assert not is_signed_in(client)
    [message] = by_domain
    user = User.objects.get()
    assert (user.username, user.email) == ("new", "new@example.org")
    assert sign_in(client, "new", NEW["password1"])["Location"] == "/accounts/confirm-email/"
    assert not is_signed_in(client)
    # Ways that cannot ask for it.
    assert sign_in(client, "new", NEW["password1"], "/admin/login/").status_code == 200
    basic = {"Authorization": "Basic bmV3OnF1aXRlIGFub3RoZXIgb25l"}
    assert client.get("/api/v1/conversations/", headers=basic).status_code == 401
    [link] = re.findall(r"http://testserver(/accounts/confirm-email/\S+/)", message.body)
    client.get(link)
    client.post(link)
    assert sign_in(client, "new", NEW["password1"])["Location"] == "/"
    assert is_signed_in(client)
    assert Client().get("/api/v1/conversations/", headers=basic).status_code == 200


@pytest.mark.parametrize("email", ["new@example.com", "new@sub.example.org", "new@example.org.evil.example", "a@b"])
def test_other_addresses_are_refused(client, by_domain, email):
    client.post("/accounts/signup/", {"email": email, **NEW})
    assert not User.objects.exists()


def test_an_account_that_exists_is_not_told(client, by_domain, reader):
    there = client.post("/accounts/signup/", {"email": "rita@example.org", **NEW})
    fresh = Client().post("/accounts/signup/", {"email": "new@example.org", **NEW})
    assert (there.status_code, there["Location"]) == (fresh.status_code, fresh["Location"])
    assert not is_signed_in(client)


@pytest.fixture
def invited(settings, administrator):
    """Return the path of an invitation's link."""
    settings.SIGN_UP = "invitation"
    hashed = compute_digest("token")
    invitation = Invitation.objects.create(email="guest@example.com", token_hash=hashed, created_by=administrator)
    invitation.groups.add(Group.objects.create(name="guests"))
    return "/accounts/invitation/token/"


def test_an_invitation_makes_one_account_with_its_address_and_groups(client, invited):
    assert client.get(invited)["Location"] == "/accounts/signup/"
    assert "guest@example.com" in client.get("/accounts/signup/").content.decode()
    response = client.post("/accounts/signup/", {"email": "mallory@example.com", **NEW})
    assert (response.status_code, response["Location"]) == (302, "/")
    assert is_signed_in(client), "nothing is left to confirm"
    guest = User.objects.get(email="guest@example.com")
    assert [group.name for group in guest.groups.all()] == ["guests"]
    invitation = Invitation.objects.get()
    assert invitation.accepted_at is not None
    assert invitation.accepted_by == guest
    again = Client()
    assert again.get(invited).status_code == 404
    assert "currently closed" in again.get("/accounts/signup/").content.decode()


def test_two_visitors_with_one_link_make_one_account(invited):
    one, two = Client(), Client()
    for client in (one, two):
        client.get(invited)
    one.post("/accounts/signup/", {**NEW})
    two.post("/accounts/signup/", {**NEW})
    assert User.objects.filter(email="guest@example.com").count() == 1
    assert not is_signed_in(two)


@pytest.mark.parametrize("reason", ["expired", "unknown", "withdrawn", "off", "no passwords"])
def test_an_invitation_that_is_not_open_opens_nothing(client, invited, settings, reason):
    client.get(invited)
    if reason == "expired":
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif reason == "unknown":
        client = Client()
        invited = "/accounts/invitation/unknown/"
    elif reason == "withdrawn":
        Invitation.objects.all().delete()
    elif reason == "off":
        settings.SIGN_UP = "off"
    else:
        settings.LOCAL_PASSWORDS = False
    assert client.get(invited).status_code == 404
    client.post("/accounts/signup/", {"email": "guest@example.com", **NEW})
    assert not User.objects.filter(email="guest@example.com").exists()


def test_an_administrator_invites_and_sees_the_link_once(client, settings, administrator, mail):
    settings.SIGN_UP = "invitation"
    client.force_login(administrator)
    expires = timezone.now() + timedelta(days=2)
    response = client.post(
        "/admin/ragsite/invitation/add/",
        {"email": "Guest@example.com", "expires_at_0": expires.date().isoformat(), "expires_at_1": "12:00:00"},
        follow=True,
    )
    [link] = re.findall(r"http://testserver(/accounts/invitation/([^/]+)/)", response.content.decode())
    assert Invitation.objects.get().token_hash == compute_digest(link[1])
    assert link[1] not in str(Invitation.objects.values())
    assert link[1] not in client.get("/admin/ragsite/invitation/").content.decode()
    [message] = mail
    assert link[0] in message.body
    assert Client().get(link[0]).status_code == 302


def test_who_may_not_change_accounts_gives_no_groups_by_invitation(client, settings):
    settings.SIGN_UP = "invitation"
    helper = make_staff("helper", "add_invitation", "view_invitation")
    powerful = Group.objects.create(name="powerful")
    client.force_login(helper)
    expires = {"expires_at_0": "2099-01-01", "expires_at_1": "12:00:00"}
    refused = client.post("/admin/ragsite/invitation/add/", {"email": "a@b.example", "groups": powerful.pk, **expires})
    assert refused.status_code == 200
    assert not Invitation.objects.exists()
    assert client.post("/admin/ragsite/invitation/add/", {"email": "a@b.example", **expires}).status_code == 302


def test_nobody_is_invited_who_has_an_account(client, administrator, reader):
    client.force_login(administrator)
    fields = {"email": "rita@example.org", "expires_at_0": "2099-01-01", "expires_at_1": "12:00:00"}
    assert "There is an account" in client.post("/admin/ragsite/invitation/add/", fields).content.decode()


def test_the_last_administrator_with_a_password_stays_one_in_the_admin(client, administrator):
    client.force_login(administrator)
    make_superuser("from-elsewhere")
    page = f"/admin/auth/user/{administrator.pk}"
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}
    for kept in ({"is_active": "on", "is_staff": "on"}, {"is_staff": "on", "is_superuser": "on"}):
        refused = client.post(f"{page}/change/", {"username": "admin", **joined, **kept})
        assert "This is the last administrator" in refused.content.decode()
    client.post(f"{page}/delete/", {"post": "yes"})
    client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": administrator.pk, "post": "yes"})
    client.post(f"{page}/password/", {"usable_password": "false"})
    administrator.refresh_from_db()
    assert (administrator.is_active, administrator.is_superuser) == (True, True)
    assert administrator.check_password(PASSWORD)
    make_superuser("second", password=PASSWORD)
    assert client.post(f"{page}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="admin").exists()
