"""Wrong passwords: counted by account and address, and refused before a hash is computed."""

import threading
from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.db import connection
from django.test import RequestFactory
from django.utils import timezone

from ragsite.accounts import sign_in_limits
from ragsite.models import SignInCount
from tests.integration.sign_in.conftest import basic, form
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db
HERE, THERE = "203.0.113.7", "198.51.100.9"
RIGHT = "the right password"


def fail(client, times, name="ada", address=HERE):
    for _ in range(times):
        assert basic(client, name, "wrong", address).status_code == 401


@pytest.mark.parametrize("attempt", [basic, form])
def test_programs_and_people_are_refused_after_ten_wrong_passwords_without_another_hash(client, ada, hashes, attempt):
    statuses = {attempt(client, "ada", "wrong").status_code for _ in range(10)}
    assert statuses == {401 if attempt is basic else 200}
    hashes.reset()
    refused = attempt(client, "ada", RIGHT)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 900
    assert "Too many failed attempts to sign in. Please try again in 15 minutes." in refused.content.decode()
    assert hashes.begun == 0
    assert "_auth_user_id" not in client.session


def test_the_owner_signs_in_from_elsewhere_and_others_here_meanwhile(client, ada):
    make_reader("bob", password="another password")
    # Capitals do not begin a new count, nor does the page.
    fail(client, 5)
    fail(client, 5, name="ADA")
    assert form(client, "ada", RIGHT).status_code == 429
    assert form(client, "ada", RIGHT, THERE).status_code == 302
    assert basic(client, "bob", "another password").status_code == 200


def test_the_right_password_begins_the_count_again(client, ada):
    fail(client, 9)
    assert basic(client, "ada", RIGHT).status_code == 200
    fail(client, 9)
    assert basic(client, "ada", RIGHT).status_code == 200


def test_the_refusal_ends_with_its_window(client, ada):
    fail(client, 10)
    assert basic(client, "ada", RIGHT).status_code == 429
    SignInCount.objects.update(since=timezone.now() - sign_in_limits.WINDOW - timedelta(seconds=1))
    assert basic(client, "ada", RIGHT).status_code == 200


def test_an_address_that_tries_many_accounts_is_refused_for_all_but_those_it_is_known_for(client, ada):
    assert basic(client, "ada", RIGHT).status_code == 200
    for number in range(sign_in_limits.ADDRESS_FAILURES):
        fail(client, 1, name=f"guess{number}")
    assert basic(client, "guess", "wrong").status_code == 429
    assert basic(client, "ada", RIGHT).status_code == 200
    assert basic(client, "ada", RIGHT, THERE).status_code == 200


def test_an_account_that_is_attacked_from_everywhere_is_slowed_where_it_is_unknown_and_never_refused(client, ada):
    assert basic(client, "ada", RIGHT, "192.0.2.1").status_code == 200
    for number in range(sign_in_limits.ACCOUNT_FAILURES):
        fail(client, 1, address=f"198.51.100.{number}")
    fail(client, 1, address="198.51.100.101")
    slowed = basic(client, "ada", "wrong", "198.51.100.102")
    assert (slowed.status_code, slowed["Retry-After"]) == (429, "5")
    assert basic(client, "ada", RIGHT, "192.0.2.1").status_code == 200
    SignInCount.objects.filter(kind="account").update(admitted_at=timezone.now() - sign_in_limits.ACCOUNT_PAUSE)
    assert basic(client, "ada", RIGHT, "198.51.100.103").status_code == 200


def test_an_address_behind_a_proxy_is_the_one_the_proxy_saw_and_else_nobody_chooses_one(client, ada, settings):
    for number in range(10):
        basic(client, "ada", "wrong", **{"X-Forwarded-For": f"10.0.0.{number}"})
    assert basic(client, "ada", RIGHT, **{"X-Forwarded-For": "10.0.0.99"}).status_code == 429
    SignInCount.objects.all().delete()
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    for number in range(10):
        seen = basic(client, "ada", "wrong", **{"X-Forwarded-For": f"10.0.0.{number}, {HERE}"})
        assert seen.status_code == 401
    assert basic(client, "ada", RIGHT, **{"X-Forwarded-For": HERE}).status_code == 429
    assert basic(client, "ada", RIGHT, **{"X-Forwarded-For": THERE}).status_code == 200


def test_the_addresses_of_one_ipv6_network_count_together(client, ada):
    for number in range(10):
        fail(client, 1, address=f"2001:db8:1:2::{number}")
    assert basic(client, "ada", RIGHT, "2001:db8:1:2:ffff::1").status_code == 429
    assert basic(client, "ada", RIGHT, "2001:db8:1:3::1").status_code == 200


def test_names_that_do_not_exist_cost_a_hash_as_others_do(client, ada, hashes):
    hashes.reset()
    fail(client, 1, name="nobody")
    unknown = hashes.begun
    hashes.reset()
    fail(client, 1)
    assert unknown == hashes.begun == 1


def test_what_was_typed_is_not_kept_and_what_is_old_is_forgotten(client, ada):
    fail(client, 1, name="my secret password")
    assert basic(client, "ada", RIGHT).status_code == 200
    assert "secret" not in str(list(SignInCount.objects.values()))
    SignInCount.objects.update(since=timezone.now() - sign_in_limits.WINDOW)
    assert sign_in_limits.delete_expired_counts() == 3
    assert [row.kind for row in SignInCount.objects.all()] == ["known"]
    SignInCount.objects.update(since=timezone.now() - sign_in_limits.KNOWN_FOR)
    assert sign_in_limits.delete_expired_counts() == 1


@pytest.mark.django_db(transaction=True)
def test_sixteen_wrong_passwords_at_once_are_hashed_one_at_a_time(ada, hashes, monkeypatch):
    monkeypatch.setattr(sign_in_limits, "WAIT_SECONDS", 60.0)
    hashes.reset(seconds=0.02)
    outcomes = []
    together = threading.Barrier(16)

    def attempt(number):
        request = RequestFactory().post("/", REMOTE_ADDR=f"198.51.100.{number}")
        together.wait()
        try:
            outcomes.append(authenticate(request, username="ada", password="wrong"))
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [None] * 16
    assert (hashes.begun, hashes.most) == (16, 1)


def test_who_waits_too_long_for_a_hash_is_told_to_come_back(client, ada, hashes, monkeypatch):
    monkeypatch.setattr(sign_in_limits, "WAIT_SECONDS", 0.01)
    hashes.reset()
    with sign_in_limits.wait_for_hashing_slot():
        program, person = basic(client, "ada", RIGHT), form(client, "ada", RIGHT)
    assert (program.status_code, program["Retry-After"]) == (503, "2")
    assert "Too many people" in program.json()["detail"]
    assert (person.status_code, person["Retry-After"]) == (503, "2")
    assert "Too many people" in person.content.decode()
    assert hashes.begun == 0
    assert basic(client, "ada", RIGHT).status_code == 200


def test_who_signed_in_here_before_does_not_wait_behind_strangers_and_who_floods_is_refused(
    client, ada, hashes, monkeypatch
):
    monkeypatch.setattr(sign_in_limits, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(sign_in_limits, "BUSY_TRIES", 12)
    assert basic(client, "ada", RIGHT).status_code == 200
    with sign_in_limits.wait_for_hashing_slot():
        assert {basic(client, "ada", RIGHT).status_code for _ in range(12)} == {200}
        # Tries that were not looked at count too: for the account with the address, and for the address.
        assert [basic(client, "ada", RIGHT, THERE).status_code for _ in range(11)] == [503] * 10 + [429]
        assert [basic(client, f"guess{n}", "wrong", THERE).status_code for n in range(3)] == [503, 503, 429]
    assert basic(client, "guess", "wrong", THERE).status_code == 429
    assert basic(client, "guess", "wrong", "198.51.100.10").status_code == 401
    with sign_in_limits.wait_for_hashing_slot(is_known=True):
        assert basic(client, "ada", RIGHT).status_code == 503
    assert basic(client, "ada", RIGHT).status_code == 200


def test_those_who_waited_for_a_hash_are_counted_again_before_theirs(ada, hashes, settings, monkeypatch):
    """Ten guesses sent at once are not ten free guesses."""
    settings.SIGN_IN_FAILURES = 1
    request = RequestFactory().post("/", REMOTE_ADDR=HERE)
    caller = sign_in_limits.build_sign_in_caller(request, "ada")
    real = sign_in_limits.wait_for_hashing_slot

    def slot_after_anothers_failure(*, is_known):
        sign_in_limits.record_sign_in_failure(caller)
        return real(is_known=is_known)

    monkeypatch.setattr(sign_in_limits, "wait_for_hashing_slot", slot_after_anothers_failure)
    hashes.reset()
    with pytest.raises(sign_in_limits.SignInRefused, match="Too many failed attempts"):
        authenticate(request, username="ada", password=RIGHT)
    assert hashes.begun == 0
