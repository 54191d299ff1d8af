from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch):
    return lambda value: monkeypatch.setenv("VARIABLE", value)


def test_pairs(variable) -> None:
    variable("8f0c=Engineers, /hr/pay = Pay roll")
    assert env.pairs("VARIABLE") == {"8f0c": "Engineers", "/hr/pay": "Pay roll"}
    variable("")
    assert env.pairs("VARIABLE") == {}
    variable("8f0c=Engineers, hr=")
    with pytest.raises(ImproperlyConfigured, match="hr="):
        env.pairs("VARIABLE")


def test_a_choice_is_one_of_those_offered(variable) -> None:
    variable("Domain")
    assert env.choice("VARIABLE", "off", ("off", "domain")) == "domain"
    variable("everybody")
    with pytest.raises(ImproperlyConfigured, match="off, domain"):
        env.choice("VARIABLE", "off", ("off", "domain"))


@pytest.mark.parametrize("value", ["https://id.example/realms/a/", "http://localhost:9400", "http://127.0.0.1:1/x", ""])
def test_an_address_that_is_believed_is_encrypted_or_here(variable, value: str) -> None:
    variable(value)
    assert env.https_url("VARIABLE") == value.rstrip("/")


@pytest.mark.parametrize(
    "value", ["http://id.example", "http://localhost.evil.example", "http://localhost@evil.example", "id.example"]
)
def test_other_addresses_are_refused(variable, value: str) -> None:
    variable(value)
    with pytest.raises(ImproperlyConfigured, match="https://"):
        env.https_url("VARIABLE")


def test_passwords_are_sent_encrypted_or_to_this_machine(variable) -> None:
    for value in ("ldap://dc.example", "ldap://localhost@dc.example", "https://dc.example", "dc.example", "ldaps://"):
        variable(value)
        with pytest.raises(ImproperlyConfigured, match="ldaps://"):
            env.ldap_url("VARIABLE", is_encrypted_later=False)
    for value, is_encrypted_later in (("ldaps://dc.example:636/", False), ("ldap://dc.example", True), ("", True)):
        variable(value)
        assert env.ldap_url("VARIABLE", is_encrypted_later=is_encrypted_later) == value.rstrip("/")
    variable("ldaps://dc.example")
    with pytest.raises(ImproperlyConfigured, match="LDAP_START_TLS"):
        env.ldap_url("VARIABLE", is_encrypted_later=True)
