"""Signing in with a provider, the code flow over HTTP: accounts, groups, rights, refusals."""

import pytest
from allauth.core.exceptions import ImmediateHttpResponse
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.test import Client

from ragsite.accounts import claims
from ragsite.accounts.adapters import AccountAdapter
from ragsite.accounts.claims import SignInClaims
from ragsite.models.account import ClaimedRights
from retrieval.models import CollectionGrant
from tests.integration.accounts.conftest import PASSWORD, is_signed_in
from tests.support.people import make_reader, make_superuser


def groups_of(name):
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


def test_an_account_is_made_with_its_groups_and_the_page_that_was_wanted_opens(client, provider, sign_in_at):
    provider.knows("ada", groups=["engineers", "/hr"], name="Ada Lovelace")
    response = sign_in_at(client, "ada", "/conversations/?q=pump")
    assert (response.status_code, response["Location"]) == (302, "/conversations/?q=pump")
    ada = User.objects.get()
    assert (ada.username, ada.email, ada.get_full_name()) == ("ada", "ada@example.org", "Ada Lovelace")
    assert (ada.has_usable_password(), ada.is_staff, ada.is_superuser) == (False, False, False)
    assert groups_of("ada") == {"engineers", "hr"}
    assert client.session.get_expiry_age() <= 12 * 3600


def test_no_request_prolongs_a_session_of_the_provider(client, provider, sign_in_at):
    provider.knows("ada")
    sign_in_at(client, "ada")
    ends_at = Session.objects.get(session_key=client.session.session_key).expire_date
    session = client.session
    session["anything"] = "saved"
    session.save()
    assert client.get("/accounts/").status_code == 200
    assert Session.objects.get(session_key=client.session.session_key).expire_date == ends_at


def test_groups_follow_the_claim_at_each_sign_in_and_what_was_given_by_hand_stays(client, provider, sign_in_at):
    provider.knows("bea", groups=["engineers", "writers"])
    sign_in_at(client, "bea")
    by_hand = Group.objects.create(name="by hand")
    User.objects.get(username="bea").groups.add(by_hand)
    provider.knows("bea", groups=["writers", "by hand"])
    sign_in_at(Client(), "bea")
    assert groups_of("bea") == {"writers", "by hand"}
    provider.knows("bea")
    sign_in_at(Client(), "bea")
    assert groups_of("bea") == {"by hand"}
    assert User.objects.count() == 1


def test_a_claim_gives_a_group_with_permissions_only_when_the_mapping_names_it(client, provider, sign_in_at, settings):
    Group.objects.create(name="curators").permissions.add(Permission.objects.get(codename="add_document"))
    provider.knows("cal", groups=["curators", "readers"])
    sign_in_at(client, "cal")
    assert groups_of("cal") == {"readers"}
    settings.OIDC_GROUPS = {"curators": "curators"}
    sign_in_at(Client(), "cal")
    assert groups_of("cal") == {"curators"}


def test_a_named_group_makes_staff_until_it_is_taken_away(client, provider, sign_in_at, settings, administrator):
    settings.OIDC_STAFF_GROUP = "site-staff"

    def is_staff(*groups):
        provider.knows("dee", groups=list(groups))
        sign_in_at(Client(), "dee")
        return User.objects.get(username="dee").is_staff

    assert not is_staff()
    assert is_staff("site-staff")
    assert not is_staff()
    User.objects.filter(username="dee").update(is_staff=True)
    assert is_staff(), "given by hand"


def test_a_claim_gives_no_group_that_changes_a_collection(settings, collection):
    settings.OIDC_GROUPS = {}
    for name, role in (("law", CollectionGrant.Role.CURATOR), ("care", CollectionGrant.Role.READER)):
        CollectionGrant.objects.create(collection=collection, group=Group.objects.create(name=name), role=role)
    user = make_reader("eve")
    claims.apply_claims(user, SignInClaims("", frozenset(["law", "care"]), groups_left_out=False, is_one_subject=True))
    assert list(user.groups.values_list("name", flat=True)) == ["care"]


def test_the_last_administrator_with_a_password_keeps_the_rights(client, provider, sign_in_at, settings, administrator):
    settings.OIDC_STAFF_GROUP, settings.OIDC_JOIN_BY_EMAIL = "site-staff", True
    claimed = ClaimedRights.objects.create(user=administrator, is_staff=True)
    assert claims.is_last_local_administrator(administrator)
    provider.knows("boss", email="admin@example.org")
    assert sign_in_at(client, "boss").status_code == 302
    administrator.refresh_from_db()
    assert (administrator.is_superuser, administrator.is_staff, administrator.is_active) == (True, True, True)
    assert administrator.check_password(PASSWORD)
    # The claims count again once there is a second superuser.
    make_superuser("second", password=PASSWORD)
    sign_in_at(Client(), "boss")
    administrator.refresh_from_db()
    claimed.refresh_from_db()
    assert (administrator.is_staff, claimed.is_staff) == (False, False)


def test_superusers_without_a_password_do_not_count_as_local_administrators(administrator):
    make_superuser("from-elsewhere")
    User.objects.create_superuser("gone", password=PASSWORD, is_active=False)
    assert claims.is_last_local_administrator(administrator)
    assert not claims.is_last_local_administrator(User.objects.get(username="from-elsewhere"))


def test_a_username_is_never_an_address(client, provider, sign_in_at):
    """Entra sends an address as username. It could belong to another account, which signs in with it."""
    make_reader("bob", "bob@example.org", PASSWORD)
    provider.knows("eve", preferred_username="bob@example.org", email_verified=False)
    assert sign_in_at(client, "eve").status_code == 302
    assert not User.objects.filter(username__contains="@").exists()
    assert Client().post("/accounts/login/", {"username": "bob@example.org", "password": PASSWORD}).status_code == 302


def refused(response, caplog, reason):
    page = response.content.decode()
    return response.status_code == 403 and "You cannot be signed in" in page and reason in caplog.text


def test_an_account_is_joined_by_a_verified_address_where_the_setting_allows_it(
    client, provider, sign_in_at, settings, caplog
):
    eva = make_reader("eva-local", "Eva@example.org", PASSWORD)
    provider.knows("eva", groups=["engineers"])
    assert refused(sign_in_at(client, "eva"), caplog, "another account has the e-mail address")
    settings.OIDC_JOIN_BY_EMAIL = True
    assert sign_in_at(client, "eva").status_code == 302
    assert client.session["_auth_user_id"] == str(eva.pk)
    assert groups_of("eva-local") == {"engineers"}
    eva.refresh_from_db()
    assert eva.check_password(PASSWORD)
    # Joined for good, whatever address the provider says later.
    provider.knows("eva", email="moved@example.org")
    settings.OIDC_JOIN_BY_EMAIL = False
    other = Client()
    sign_in_at(other, "eva")
    assert other.session["_auth_user_id"] == str(eva.pk)


@pytest.mark.parametrize("verified", [False, "false", None])
def test_an_address_that_is_not_verified_joins_nothing_and_is_not_stored(
    client, provider, sign_in_at, settings, verified
):
    settings.OIDC_JOIN_BY_EMAIL = True
    make_reader("fay-local", "fay@example.org", PASSWORD)
    provider.knows("fay", email_verified=verified)
    assert sign_in_at(client, "fay").status_code == 302
    assert client.session["_auth_user_id"] == str(User.objects.get(username="fay").pk)
    assert User.objects.get(username="fay").email == ""


def test_other_domains_are_refused_at_each_sign_in(client, provider, sign_in_at, settings, caplog):
    provider.knows("gus")
    assert sign_in_at(client, "gus").status_code == 302
    settings.OIDC_DOMAINS = ["example.com"]
    other = Client()
    assert refused(sign_in_at(other, "gus"), caplog, "allowed domain")
    assert not is_signed_in(other)
    settings.OIDC_DOMAINS = ["example.org"]
    provider.knows("gus", email_verified=False)
    assert refused(sign_in_at(other, "gus"), caplog, "allowed domain")


def test_an_inactive_account_stays_outside(client, provider, sign_in_at):
    provider.knows("ira")
    sign_in_at(client, "ira")
    User.objects.update(is_active=False)
    other = Client()
    assert sign_in_at(other, "ira")["Location"] == "/accounts/inactive/"
    assert not is_signed_in(other)


def test_nothing_but_signing_in_is_begun_by_a_link(client, provider, sign_in_at, administrator, caplog):
    """Another site could lead an administrator through such a link, and so join its own account at the provider."""
    client.force_login(administrator)
    provider.knows("mallory")
    assert refused(sign_in_at(client, "mallory", process="connect"), caplog, "only signing in")
    assert not administrator.socialaccount_set.exists()


@pytest.mark.parametrize("target", ["//evil.example", "http://[bad"])
def test_nobody_is_sent_to_another_site(client, provider, sign_in_at, target):
    provider.knows("mia")
    assert sign_in_at(client, "mia", target)["Location"] == "/"


def test_what_goes_wrong_at_the_provider_is_said_on_a_page(client, provider, settings, caplog):
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["server_url"] = "http://localhost:1"
    response = client.get("/accounts/oidc/sso/login/", {"process": "login"})
    assert response.status_code == 502
    assert "Third-Party Login Failure" in response.content.decode()
    assert "could not be asked" in caplog.text


def test_without_local_passwords_administrators_alone_keep_theirs(client, settings, administrator):
    settings.LOCAL_PASSWORDS = False
    User.objects.create_user("kim", "kim@example.org", PASSWORD, is_staff=True)
    for page in ("/accounts/login/", "/admin/login/"):
        assert client.post(page, {"username": "kim", "password": PASSWORD}).status_code == 200
        assert not is_signed_in(client)
        assert client.post(page, {"username": "admin", "password": PASSWORD}).status_code == 302
        assert is_signed_in(client)
        client.logout()


def test_an_account_of_the_provider_gets_no_password_here(client, provider, sign_in_at, settings, mailoutbox):
    settings.MAIL_IS_SENT = True
    provider.knows("lea")
    sign_in_at(client, "lea")
    page = client.get("/accounts/password/change/", follow=True)
    assert "Your password is kept elsewhere" in page.content.decode()
    assert client.post("/accounts/password/set/", {"password1": PASSWORD, "password2": PASSWORD}).status_code == 200
    Client().post("/accounts/password/reset/", {"email": "lea@example.org"})
    assert not any("/password/reset/key/" in message.body for message in mailoutbox)
    assert not User.objects.get(username="lea").has_usable_password()


def test_a_passkey_signs_in_nobody_whom_the_provider_signs_in(client, provider, sign_in_at, settings, administrator):
    """A passkey would still work after the provider has removed the person."""

    def is_let_in(user):
        login = {"email_verification": "none", "signal_kwargs": None, "email": None, "signup": False}
        try:
            return AccountAdapter(request).pre_login(request, user, redirect_url=None, **login) is None
        except ImmediateHttpResponse:
            return False

    provider.knows("nora")
    sign_in_at(client, "nora")
    request = client.get("/").wsgi_request
    local = make_reader("olaf", password=PASSWORD)
    assert [is_let_in(user) for user in (User.objects.get(username="nora"), local)] == [False, True]
    settings.LOCAL_PASSWORDS = False
    assert [is_let_in(user) for user in (local, administrator)] == [False, True]
