"""Signing in with an LDAP directory, over TCP: accounts, groups, refusals, and a directory that does not answer."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.test import Client

from ragsite.accounts import directory
from ragsite.accounts.claims import is_forgotten
from ragsite.models import AuditEntry
from retrieval.models import Collection, CollectionGrant
from retrieval.models.collection import Visibility
from tests.integration.accounts import conftest as local
from tests.support.ldap_server import BASE, GROUPS, PASSWORD, PEOPLE, READER, READER_PASSWORD, LdapServer, ldap_server


@pytest.fixture(scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    with ldap_server(tmp_path_factory.mktemp("ldap")) as running:
        yield running


@pytest.fixture
def ldap(_server: LdapServer, settings: Any) -> LdapServer:
    """A directory that the site signs in with, as it is at first."""
    settings.LDAP_URL = _server.url
    settings.LDAP_BIND_DN, settings.LDAP_BIND_PASSWORD = READER, READER_PASSWORD
    # A busy machine may be slow to answer itself.
    settings.LDAP_SEARCH_BASE, settings.LDAP_TIMEOUT_SECONDS = BASE, 60
    for name in ("ada", "bob"):
        _server.says(name, memberOf=[], uid=[name])
    return _server


def sign_in(name: str, password: str = PASSWORD, page: str = "/accounts/login/", client: Client | None = None) -> Any:
    return (client or Client()).post(page, {"username": name, "password": password})


def groups_of(name: str) -> set[str]:
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


def test_a_person_gets_an_account_whose_groups_and_collections_follow_the_directory(
    ldap: LdapServer, settings: Any, client: Client, collection: Collection
) -> None:
    settings.LDAP_GROUP_BASE, settings.OIDC_TRUST_EMAIL = GROUPS, True
    collection.visibility = Visibility.GRANTED
    collection.save()
    hr = Group.objects.create(name="HR, Payroll")
    CollectionGrant.objects.create(collection=collection, group=hr, role=CollectionGrant.Role.READER)
    # Whoever may make groups somewhere else in the directory does not make those of the site.
    ldap.says("ada", memberOf=[rf"CN=HR\2C Payroll,{GROUPS.upper()}", f"cn=board,{PEOPLE}"])
    assert sign_in("ada", client=client).status_code == 302
    ada = User.objects.get()
    assert (ada.username, ada.email, ada.get_full_name()) == ("ada", "ada@example.org", "Ada Lovelace")
    assert (ada.has_usable_password(), ada.is_staff) == (False, False)
    assert groups_of("ada") == {"HR, Payroll"}
    assert collection in Collection.objects.readable_by(ada)
    assert client.session.get_expiry_age() <= 12 * 3600
    assert AuditEntry.objects.filter(action="single_sign_on.added", details__provider="ldap").exists()
    assert "You sign in with LDAP" in client.get("/accounts/password/change/", follow=True).content.decode()
    assert not is_forgotten(ada)
    User.objects.update(last_login="2020-01-01T00:00:00Z")
    assert is_forgotten(User.objects.get()), "its keys"

    # The name changes with a marriage, and the account stays the same.
    ldap.says("ada", memberOf=[], uid=["ada.king"])
    assert sign_in("ada.king").status_code == 302
    assert User.objects.get() == ada
    assert groups_of("ada") == set()
    assert collection not in Collection.objects.readable_by(User.objects.get())


def test_wrong_and_empty_passwords_and_filters_for_names_open_nothing_and_are_counted(
    ldap: LdapServer, settings: Any
) -> None:
    settings.SIGN_IN_FAILURES = 3
    for name, password in (("bob", "wrong"), ("bob", ""), ("*", PASSWORD), ("bob)(uid=*", PASSWORD), ("b*", PASSWORD)):
        assert sign_in(name, password).status_code == 200
        basic = Client().get("/api/v1/documents/", headers=local_basic(name, password))
        assert basic.status_code == 401, name
    # Directories know a name by several spellings, which are not so many accounts to guess at.
    ldap.says("ada", uid=["ada", "Ada L."])
    answers = [sign_in(name, "wrong").status_code for name in ("Ada L.", "ada l.", "ADA L.", "ada", "aDa L.")]
    assert answers == [200, 200, 200, 429, 429]
    assert not directory.is_password_right(directory.find("bob"), "")  # type: ignore[arg-type]
    assert not User.objects.exists()


def test_an_account_that_was_here_before_is_not_taken_over(
    ldap: LdapServer, administrator: User, caplog: pytest.LogCaptureFixture
) -> None:
    bob = User.objects.create_user("bob", password=local.PASSWORD)
    assert sign_in("bob").status_code == 200
    assert sign_in("bob", local.PASSWORD).status_code == 302
    # Neither by a name in capitals, nor where it has no password.
    for name in ("BOB", "bob"):
        ldap.says("bob", uid=[name])
        assert "This account cannot sign in" in sign_in(name).content.decode()
        assert "another account has the name" in caplog.text
        bob.set_unusable_password()
        bob.save()
    assert not SocialAccount.objects.exists()


def test_a_group_opens_the_admin_and_a_second_factor_closes_what_a_password_opens(
    ldap: LdapServer, settings: Any
) -> None:
    settings.OIDC_STAFF_GROUP = "site-staff"
    settings.LOCAL_PASSWORDS = False
    ldap.says("ada", memberOf=[f"cn=site-staff,{GROUPS}"])
    client = Client()
    assert sign_in("ada", page="/admin/login/?next=/admin/", client=client)["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200
    assert client.session.get_expiry_age() <= 12 * 3600
    assert Client().get("/api/v1/documents/", headers=local_basic("ada", PASSWORD)).status_code != 401
    Authenticator.objects.create(user=User.objects.get(), type=Authenticator.Type.TOTP, data={"secret": "x"})
    assert "needs more than a password" in sign_in("ada", page="/admin/login/").content.decode()
    assert Client().get("/api/v1/documents/", headers=local_basic("ada", PASSWORD)).status_code == 401
    assert sign_in("ada")["Location"].startswith("/accounts/2fa/authenticate/")


def test_groups_are_searched_for_where_a_filter_is_named(ldap: LdapServer, settings: Any) -> None:
    settings.LDAP_GROUP_BASE, settings.LDAP_GROUP_FILTER = PEOPLE, "(&(objectClass=inetOrgPerson)(uid={name}))"
    person = directory.find("ada")
    assert person is not None
    assert person.groups == {"ada"}


@pytest.mark.parametrize("answers", [False, True], ids=["nobody listens", "says nothing"])
def test_without_the_directory_local_accounts_go_on_and_others_are_told(
    ldap: LdapServer, settings: Any, administrator: User, caplog: pytest.LogCaptureFixture, answers: bool
) -> None:
    settings.LDAP_TIMEOUT_SECONDS = 1
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if answers:
            silent.listen()
        settings.LDAP_URL = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
        refused = sign_in("ada")
        basic = Client().get("/api/v1/documents/", headers=local_basic("ada", PASSWORD))
    assert (refused.status_code, basic.status_code) == (503, 503)
    assert "does not answer at this moment" in refused.content.decode()
    assert "The LDAP directory could not be asked" in caplog.text
    assert 'ragsite_sign_in_refusals_total{reason="directory"}' in Client().get("/metrics").content.decode()
    assert sign_in("admin", local.PASSWORD).status_code == 302


def test_a_directory_that_sends_single_bytes_is_left(ldap: LdapServer, settings: Any) -> None:
    settings.LDAP_TIMEOUT_SECONDS = 1
    is_left = threading.Event()

    def drip() -> None:
        accepted, _address = slow.accept()
        with accepted:
            try:
                # The head of a long answer.
                accepted.sendall(b"\x30\x82\xff\xff")
                for _byte in range(300):
                    accepted.sendall(b"\x02")
                    is_left.wait(0.2)
            except OSError:
                is_left.set()

    with socket.create_server(("127.0.0.1", 0)) as slow:
        settings.LDAP_URL = f"ldap://127.0.0.1:{slow.getsockname()[1]}"
        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(directory.DirectoryFailed):
            directory.find("ada")
        dripping.join()
    assert is_left.is_set()


def test_passwords_go_only_to_a_server_whose_certificate_is_trusted(
    ldap: LdapServer, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for url, start_tls in ((ldap.tls_url, False), (ldap.url, True)):
        settings.LDAP_URL, settings.LDAP_START_TLS = url, start_tls
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        caplog.clear()
        assert sign_in("ada").status_code == 503
        assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
        monkeypatch.setenv("SSL_CERT_FILE", str(ldap.ca_file))
        assert sign_in("ada").status_code == 302
        # The certificate is good, and not for this address.
        settings.LDAP_URL = url.replace("localhost", "127.0.0.1")
        assert sign_in("ada").status_code == 503
        assert "match" in caplog.text


def local_basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}
