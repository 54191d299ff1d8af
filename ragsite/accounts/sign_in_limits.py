"""Limit failed sign-ins, counted by account and by address.

After failures at many addresses, an account is only slowed, so that strangers cannot lock out its owner.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rest_framework.exceptions import APIException, Throttled

from core.api.callers import find_address
from core.metrics import get_counter
from core.slots import ProcessSemaphore
from ragsite.models import SignInCount

logger = logging.getLogger(__name__)

Kind = SignInCount.Kind

WINDOW = timedelta(minutes=15)
ADDRESS_FAILURES = 50
# A busy site refuses some attempts without checking the password. After this many of them, an address must wait. The
# pupils of a class who sign in together cause fewer.
BUSY_TRIES = 200
ACCOUNT_FAILURES = 30
TOKEN_FAILURES = 30
# After ACCOUNT_FAILURES failures, an account accepts one attempt in this time. Attempts from addresses where the
# account has signed in before do not count.
ACCOUNT_PAUSE = timedelta(seconds=5)
KNOWN_FOR = timedelta(days=30)
_KNOWN_AGAIN_AFTER = timedelta(days=1)
# A caller waits up to this time for its turn to hash a password. A hash takes some tenths of a second, so several
# callers get their turn.
WAIT_SECONDS = 2.0
BUSY_SECONDS = 2
# One password at a time is hashed, so that the other processor cores stay free for pages. The second slot is for
# accounts at addresses where they have signed in before.
_slots, _kept_slots = ProcessSemaphore(1), ProcessSemaphore(1)

REFUSALS = get_counter(
    "ragsite_sign_in_refusals",
    "Tries to sign in that were refused unread.",
    reason=("account", "failures", "codes", "tokens", "busy"),
)

_COUNT = """
    INSERT INTO ragsite_signincount AS counted (key, kind, failures, since) VALUES (%s, %s, 1, %s)
    ON CONFLICT (key) DO UPDATE SET
        failures = CASE WHEN counted.since <= %s THEN 1 ELSE counted.failures + 1 END,
        since = CASE WHEN counted.since <= %s THEN EXCLUDED.since ELSE counted.since END
    RETURNING failures
"""


@dataclass(frozen=True, slots=True)
class Caller:
    address: str
    secret: str

    def build_counter_key(self, kind: Kind) -> str:
        secret = "" if kind in (Kind.ADDRESS, Kind.TOKENS, Kind.BUSY) else self.secret
        address = "" if kind is Kind.ACCOUNT else self.address
        return salted_hmac(f"ragsite.sign_in.{kind}", f"{secret}\0{address}", algorithm="sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Allowance:
    """The decision whether a caller may try to sign in now.

    ``is_known``: the account or token has succeeded at this network address. ``is_clean``: a success was stored in the
    last day, and no failure after it, so that a success now need not be stored.
    """

    wait_seconds: int
    is_known: bool
    is_clean: bool


def build_sign_in_caller(request: Any, secret: str, *, is_name: bool = True) -> Caller:
    return Caller(find_address(request), secret.casefold() if is_name else secret)


def load_password_allowance(caller: Caller) -> Allowance:
    limits = {Kind.PAIR: settings.SIGN_IN_FAILURES, Kind.ADDRESS: ADDRESS_FAILURES, Kind.BUSY: BUSY_TRIES}
    return _load_sign_in_allowance(caller, limits, exempt_when_known={Kind.ADDRESS, Kind.BUSY})


def load_token_allowance(caller: Caller) -> Allowance:
    """Return whether the caller may try a token.

    A caller whose token was accepted before at the same IP address, within KNOWN_FOR, may always try.
    """
    return _load_sign_in_allowance(caller, {Kind.TOKENS: TOKEN_FAILURES}, exempt_when_known={Kind.TOKENS})


def find_second_factor_wait_seconds(caller: Caller) -> int:
    """Return the seconds until the caller may try a second factor again; 0 if at once."""
    limits = {Kind.PAIR: settings.SIGN_IN_FAILURES, Kind.ACCOUNT: ACCOUNT_FAILURES}
    return _load_sign_in_allowance(caller, limits, exempt_when_known=set()).wait_seconds


def admit_account_or_find_wait_seconds(caller: Caller, *, is_known: bool) -> int:
    """Return the seconds until the account may sign in; 0 if it may now.

    The account never waits at a network address where it signed in before (``is_known``).
    """
    now = timezone.now()
    account = SignInCount.objects.filter(
        key=caller.build_counter_key(Kind.ACCOUNT), failures__gte=ACCOUNT_FAILURES, since__gt=now - WINDOW
    )
    if is_known or not account.exists():
        return 0
    may_pass = Q(admitted_at=None) | Q(admitted_at__lte=now - ACCOUNT_PAUSE)
    return 0 if account.filter(may_pass).update(admitted_at=now) else _round_up_seconds(ACCOUNT_PAUSE)


def record_sign_in_failure(caller: Caller) -> None:
    for kind, limit in (
        (Kind.PAIR, settings.SIGN_IN_FAILURES),
        (Kind.ADDRESS, ADDRESS_FAILURES),
        (Kind.ACCOUNT, ACCOUNT_FAILURES),
    ):
        _increment_failures(caller, kind, limit)


def record_attempt_while_busy(caller: Caller) -> None:
    _increment_failures(caller, Kind.PAIR, settings.SIGN_IN_FAILURES)
    _increment_failures(caller, Kind.BUSY, BUSY_TRIES)


def record_token_failure(caller: Caller) -> None:
    _increment_failures(caller, Kind.TOKENS, TOKEN_FAILURES)


def record_sign_in_success(caller: Caller) -> None:
    delete_failure_count(caller)
    known = SignInCount(key=caller.build_counter_key(Kind.KNOWN), kind=Kind.KNOWN, since=timezone.now())
    SignInCount.objects.bulk_create([known], update_conflicts=True, unique_fields=["key"], update_fields=["since"])


def delete_failure_count(caller: Caller) -> None:
    SignInCount.objects.filter(key=caller.build_counter_key(Kind.PAIR)).delete()


def delete_expired_counts() -> int:
    now = timezone.now()
    old = Q(since__lte=now - WINDOW) & ~Q(kind=Kind.KNOWN) | Q(since__lte=now - KNOWN_FOR)
    return SignInCount.objects.filter(old).delete()[0]


def _load_sign_in_allowance(caller: Caller, limits: dict[Kind, int], *, exempt_when_known: set[Kind]) -> Allowance:
    now = timezone.now()
    kinds = {caller.build_counter_key(kind): kind for kind in (*limits, Kind.KNOWN)}
    counted = {kinds[row.key]: row for row in SignInCount.objects.filter(key__in=kinds)}
    known = counted.get(Kind.KNOWN)
    is_known = known is not None and known.since > now - KNOWN_FOR
    waits = [
        _round_up_seconds(row.since + WINDOW - now)
        for kind, limit in limits.items()
        if (row := counted.get(kind)) is not None
        and row.failures >= limit
        and row.since > now - WINDOW
        and not (is_known and kind in exempt_when_known)
    ]
    is_clean = known is not None and known.since > now - _KNOWN_AGAIN_AFTER and Kind.PAIR not in counted
    return Allowance(max(waits, default=0), is_known, is_clean)


def _increment_failures(caller: Caller, kind: Kind, limit: int) -> None:
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [caller.build_counter_key(kind), kind.value, now, now - WINDOW, now - WINDOW])
        failures = cursor.fetchone()[0]
    if failures == limit:
        logger.warning("Signing in failed %d times from %s; limited by %s.", failures, caller.address, kind.value)


def _round_up_seconds(duration: timedelta) -> int:
    return max(1, math.ceil(duration.total_seconds()))


class SignInRefused(Throttled):
    """An error: the sign-in is refused for ``wait`` seconds. The password was not checked."""

    def __init__(self, wait_seconds: int, sentence: str) -> None:
        # DRF's own initializer would append the seconds to the message.
        APIException.__init__(self, sentence)
        self.wait = wait_seconds


class SignInBusy(SignInRefused):
    status_code = 503


def raise_if_limited(wait_seconds: int, reason: str) -> None:
    """Raise SignInRefused if the caller must wait, and count the refusal with the label ``reason``."""
    if wait_seconds:
        REFUSALS.labels(reason=reason).inc()
        minutes = math.ceil(wait_seconds / 60)
        sentence = ngettext(
            "Too many failed attempts to sign in. Please try again in %(minutes)d minute.",
            "Too many failed attempts to sign in. Please try again in %(minutes)d minutes.",
            minutes,
        )
        raise SignInRefused(wait_seconds, sentence % {"minutes": minutes})


@contextmanager
def wait_for_hashing_slot(*, is_known: bool = False) -> Iterator[None]:
    """Wait until a password may be hashed, and run the ``with`` block, which hashes the password.

    ``is_known``: the account has signed in at this address. Raises: SignInBusy after WAIT_SECONDS.
    """
    with ExitStack() as held:
        try:
            slots = _kept_slots if is_known else _slots
            held.enter_context(slots.take(lambda waited_seconds: waited_seconds < WAIT_SECONDS))
        except TimeoutError:
            REFUSALS.labels(reason="busy").inc()
            sentence = _("Too many people are signing in at this moment. Please try again.")
            raise SignInBusy(BUSY_SECONDS, sentence) from None
        yield
