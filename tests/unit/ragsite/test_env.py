import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env, gone
from tests.support.fresh_settings import fresh_settings


@pytest.fixture
def variable(monkeypatch):
    return lambda value: monkeypatch.setenv("VARIABLE", value)


def test_pairs(variable):
    variable("8f0c=Engineers, /hr/pay = Pay roll")
    assert env.read_pairs("VARIABLE") == {"8f0c": "Engineers", "/hr/pay": "Pay roll"}
    variable("")
    assert env.read_pairs("VARIABLE") == {}
    variable("8f0c=Engineers, hr=")
    with pytest.raises(ImproperlyConfigured, match="hr="):
        env.read_pairs("VARIABLE")


def test_two_numbers(variable):
    variable("1.5, 0")
    assert env.read_two_numbers("VARIABLE", 1.2, 0.75) == (1.5, 0)
    variable("")
    assert env.read_two_numbers("VARIABLE", 1.2, 0.75) == (1.2, 0.75)
    for wrong in ("1", "1,2,3", "a,b", "-1,0", "nan,0", "inf,0"):
        variable(wrong)
        with pytest.raises(ImproperlyConfigured, match="two numbers"):
            env.read_two_numbers("VARIABLE", 1.2, 0.75)


@pytest.mark.parametrize("value", ["https://id.example/realms/a/", "http://localhost:9400", "http://127.0.0.1:1/x", ""])
def test_an_address_that_is_believed_is_encrypted_or_here(variable, value):
    variable(value)
    assert env.read_https_url("VARIABLE") == value.rstrip("/")


@pytest.mark.parametrize(
    "value", ["http://id.example", "http://localhost.evil.example", "http://localhost@evil.example", "id.example"]
)
def test_other_addresses_are_refused(variable, value):
    variable(value)
    with pytest.raises(ImproperlyConfigured, match="https://"):
        env.read_https_url("VARIABLE")


def test_settings_are_explained_and_few_and_none_of_them_went():
    text = (env.BASE_DIR / ".env.example").read_text()
    explained = set(re.findall(r"^#?([A-Z0-9_]+)=", text, re.MULTILINE))
    read = set()
    for path in (env.BASE_DIR / "ragsite" / "settings").glob("*.py"):
        read |= set(re.findall(r"\b(?:env\.\w+|read_string)\(\s*\"([A-Z0-9_]+)\"", path.read_text()))
    read.remove("AWS_ENDPOINT_URL_S3")  # Amazon's own
    assert explained == read | {"HOST", "PORT"}
    assert not explained & set(gone.GONE)
    assert len(read) <= 80
    assert len(text.splitlines()) <= 120


@pytest.mark.parametrize(
    ("value", "server"),
    [
        ("", ("", 587, "", "")),
        ("smtp://mail.example:25", ("mail.example", 25, "", "")),
        ("smtp://me%40a.example:p%3Aw@mail.example", ("mail.example", 587, "me@a.example", "p:w")),
    ],
)
def test_a_mail_server(variable, value, server):
    variable(value)
    assert env.read_mail_server("VARIABLE") == server


@pytest.mark.parametrize("value", ["mail.example:25", "https://a:secret@mail.example", "smtp://a:secret@mail:port"])
def test_an_address_that_is_no_mail_servers_is_refused_without_its_password(variable, value):
    variable(value)
    with pytest.raises(ImproperlyConfigured, match="smtp://") as refused:
        env.read_mail_server("VARIABLE")
    assert "secret" not in str(refused.value)


def test_what_is_derived_from_a_setting():
    found = fresh_settings(SIGN_UP="Example.org, b.example", EMAIL_URL="smtp://m.example", ASK_RATE="7/h")
    assert (found.SIGN_UP, found.SIGN_UP_DOMAINS) == ("domain", ["example.org", "b.example"])
    assert found.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]["search"] == "14/h"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SIGN_UP", "domain", "SIGN_UP must be off, invitation, or domains, not 'domain'"),
        ("ASK_RATE", "often", "ASK_RATE must be a rate such as 60/min, not 'often'"),
        ("BM25", "1.2,2", "BM25 must be k1 above 0 and b from 0 to 1"),
        ("LOG_FORMAT", "xml", "LOG_FORMAT must be text or json, not 'xml'"),
        ("QUICK_SECONDS", "2", "QUICK_SECONDS is no longer a setting: it has a fixed value. Remove it"),
        ("AUDIT_DAYS", "1.5", "AUDIT_DAYS must be a whole number, not '1.5'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(name, value, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        fresh_settings(**{name: value})
