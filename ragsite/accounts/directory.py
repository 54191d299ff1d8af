"""Accounts of people from an LDAP directory: found by name, proven by a bind. They have no password here.

They follow the rules of single sign-on.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.dispatch import receiver
from django.http import HttpRequest

from ragsite.accounts.claims import Claims, apply_claims, read_claims
from ragsite.accounts.sign_in_limits import WAIT_SECONDS, HashingBusy
from ragsite.models.account import users_with

# People of an LDAP directory: found by a name, proven by a bind.
#
# ldap3 is imported when somebody is looked for, so that sites without LDAP do not load it.

# A directory that does not answer holds so many threads of the process, and no more.
ASKED_AT_ONCE = 4
# A connection lasts at most so many times LDAP_TIMEOUT_SECONDS.
CONNECTION_STEPS = 3
_ID_MAX_BYTES = 191
# What servers answer to a password that does not open: wrong, or locked, expired, not allowed at this hour.
_REFUSED = {19, 32, 48, 49, 50, 53}
_SUCCESS, _SIZE_LIMIT_EXCEEDED = 0, 4

_slots = threading.BoundedSemaphore(ASKED_AT_ONCE)


class DirectoryFailed(Exception):
    """The directory does not answer, or not with what its settings promise. For the log."""


@dataclass(frozen=True, slots=True)
class Person:
    """``uid`` outlives a change of the name. ``groups`` are first values of names: ``cn=hr,dc=example`` is hr."""

    dn: str
    uid: str
    name: str
    email: str
    first_name: str
    last_name: str
    groups: frozenset[str]
    groups_left_out: bool


@contextmanager
def slot() -> Iterator[None]:
    """The right to ask the directory. Raises: HashingBusy when none comes free in time."""
    if not _slots.acquire(timeout=WAIT_SECONDS):
        raise HashingBusy
    try:
        yield
    finally:
        _slots.release()


def find(name: str) -> Person | None:
    """The one person of this name; None where there is none, or more than one. Raises: DirectoryFailed."""
    from ldap3.utils.conv import escape_filter_chars

    attributes = [
        settings.LDAP_NAME_ATTRIBUTE,
        settings.LDAP_EMAIL_ATTRIBUTE,
        settings.LDAP_FIRST_NAME_ATTRIBUTE,
        settings.LDAP_LAST_NAME_ATTRIBUTE,
        settings.LDAP_GROUPS_ATTRIBUTE,
        *settings.LDAP_ID_ATTRIBUTES,
    ]
    with _connection(settings.LDAP_BIND_DN, settings.LDAP_BIND_PASSWORD) as connection:
        if (code := connection.result["result"]) != _SUCCESS:
            raise DirectoryFailed(f"LDAP_BIND_DN is refused ({code}, {connection.result['description']})")
        wanted = settings.LDAP_USER_FILTER.replace("{name}", escape_filter_chars(name))
        found = _search(connection, settings.LDAP_SEARCH_BASE, wanted, attributes, size_limit=2)
        if len(found) != 1 or not found[0]["dn"]:
            return None
        dn, values = found[0]["dn"], found[0]["raw_attributes"]
        groups = _texts(values, settings.LDAP_GROUPS_ATTRIBUTE)
        if settings.LDAP_GROUP_FILTER:
            wanted = settings.LDAP_GROUP_FILTER.replace("{dn}", escape_filter_chars(dn))
            wanted = wanted.replace("{name}", escape_filter_chars(_first(values, settings.LDAP_NAME_ATTRIBUTE)))
            groups = [group["dn"] for group in _search(connection, settings.LDAP_GROUP_BASE, wanted, ["1.1"])]
    return Person(
        dn=dn,
        uid=_lasting_id(values),
        name=_first(values, settings.LDAP_NAME_ATTRIBUTE),
        email=_first(values, settings.LDAP_EMAIL_ATTRIBUTE),
        first_name=_first(values, settings.LDAP_FIRST_NAME_ATTRIBUTE),
        last_name=_first(values, settings.LDAP_LAST_NAME_ATTRIBUTE),
        groups=frozenset(name for dn in groups if (name := group_name(dn, settings.LDAP_GROUP_BASE))),
        # Active Directory sends long lists in parts: memberOf;range=0-1499.
        groups_left_out=any(key.lower().startswith(f"{settings.LDAP_GROUPS_ATTRIBUTE.lower()};") for key in values),
    )


def is_password_right(person: Person, password: str) -> bool:
    """Whether the directory lets ``person`` in. Raises: DirectoryFailed."""
    if not password:
        # Servers take a bind without a password for an anonymous one, and let it in.
        return False
    with _connection(person.dn, password) as connection:
        code = connection.result["result"]
        if code not in {_SUCCESS, *_REFUSED}:
            raise DirectoryFailed(f"a bind was answered with {code}, {connection.result['description']}")
        return bool(code == _SUCCESS)


def group_name(dn: str, base: str) -> str:
    """The first value of a distinguished name; empty for what is none, or is not below ``base``."""
    from ldap3.core.exceptions import LDAPInvalidDnError

    try:
        parts, ending = _parts(dn), _parts(base) if base else []
    except LDAPInvalidDnError:
        return ""
    if len(parts) <= len(ending) or (ending and _fold(parts[-len(ending) :]) != _fold(ending)):
        return ""
    return _unescape(parts[0][1])


@contextmanager
def _connection(dn: str, password: str) -> Iterator[Any]:
    """A connection after a bind as ``dn``, or an anonymous one; ``result`` says how the bind ended."""
    from ldap3 import ANONYMOUS, NONE, SIMPLE, SYNC, Connection, Server, Tls
    from ldap3.core.exceptions import LDAPException

    connection = None
    # The timeout is for each part of an answer, and a server may send single bytes.
    end = threading.Timer(CONNECTION_STEPS * settings.LDAP_TIMEOUT_SECONDS, _cut)
    end.daemon = True
    try:
        tls = Tls(validate=ssl.CERT_REQUIRED)
        server = Server(settings.LDAP_URL, get_info=NONE, connect_timeout=settings.LDAP_TIMEOUT_SECONDS, tls=tls)
        tls.sni = server.host
        connection = Connection(
            server,
            user=dn or None,
            # As bytes, which ldap3 sends as they are: its preparation of text may leave nothing of a password.
            password=password.encode() if dn else None,
            authentication=SIMPLE if dn else ANONYMOUS,
            client_strategy=SYNC,
            auto_referrals=False,
            read_only=True,
            check_names=False,
            receive_timeout=settings.LDAP_TIMEOUT_SECONDS,
        )
        end.args = (connection,)
        end.start()
        connection.open()
        if settings.LDAP_START_TLS and not connection.start_tls():
            raise DirectoryFailed("StartTLS is refused")
        connection.bind()
        yield connection
    except (LDAPException, OSError) as error:
        raise DirectoryFailed(f"{type(error).__name__}: {error}") from error
    finally:
        end.cancel()
        if connection is not None:
            # Not `unbind`, which would open a connection that was never opened.
            connection.strategy.close()


def _cut(connection: Any) -> None:
    """End a connection that another thread waits for."""
    with suppress(AttributeError, OSError):
        connection.socket.shutdown(socket.SHUT_RDWR)


def _search(connection: Any, base: str, wanted: str, attributes: list[str], size_limit: int = 0) -> list[Any]:
    """Entries, without the places elsewhere that a server refers to."""
    connection.search(
        base, wanted, attributes=attributes, size_limit=size_limit, time_limit=settings.LDAP_TIMEOUT_SECONDS
    )
    code = connection.result["result"]
    if code not in (_SUCCESS, _SIZE_LIMIT_EXCEEDED):
        raise DirectoryFailed(f"a search was answered with {code}, {connection.result['description']}")
    return [entry for entry in connection.response or [] if entry["type"] == "searchResEntry"]


def _texts(values: Mapping[str, list[bytes]], attribute: str) -> list[str]:
    return [value.decode(errors="replace") for value in values.get(attribute) or []]


def _first(values: Mapping[str, list[bytes]], attribute: str) -> str:
    return next(iter(_texts(values, attribute)), "").replace("\0", "").strip()


def _lasting_id(values: Mapping[str, list[bytes]]) -> str:
    for attribute in settings.LDAP_ID_ATTRIBUTES:
        value = next(iter(values.get(attribute) or []), b"")
        if 0 < len(value) <= _ID_MAX_BYTES:
            # Active Directory's is a number of 16 bytes.
            return str(UUID(bytes_le=value)) if len(value) == 16 else value.decode(errors="replace").lower()
    raise DirectoryFailed(f"an entry has none of {', '.join(settings.LDAP_ID_ATTRIBUTES)} (LDAP_ID_ATTRIBUTES)")


def _parts(dn: str) -> list[tuple[str, str]]:
    from ldap3.utils.dn import parse_dn

    return [(attribute.strip(), value.strip()) for attribute, value, _separator in parse_dn(dn)]


def _fold(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(attribute.lower(), _unescape(value).casefold()) for attribute, value in parts]


def _unescape(value: str) -> str:
    r"""``Smith\, J`` and ``Smith\2C J`` are the same value (RFC 4514)."""
    raw = re.sub(
        rb"\\([0-9A-Fa-f]{2}|.)",
        lambda match: bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1],
        value.encode(),
    )
    return raw.decode(errors="replace")


PROVIDER = "ldap"


class AccountRefused(Exception):
    """The directory knows the person, and the site does not let this account in. The text is for the log."""


def is_directory_asked(username: str) -> bool:
    """Whether the directory, and no password here, decides about this name."""
    if not settings.LDAP_URL or "\0" in username:
        return False
    user = get_user_model()._default_manager.filter(username=username).first()
    return user is None or not user.has_usable_password()


def is_of_directory(user: Any) -> bool:
    return not user.has_usable_password() and SocialAccount.objects.filter(user=user, provider=PROVIDER).exists()


def account_of(person: Person) -> Any:
    """The account of ``person``, made where there is none, with the rights that the directory gives at this moment.

    None for an inactive one. An account that was there before is never taken over.
    Raises: AccountRefused.
    """
    claims = _claims(person)
    if settings.OIDC_DOMAINS and claims.domain not in settings.OIDC_DOMAINS:
        raise AccountRefused("no trusted e-mail address of an allowed domain")
    linked = SocialAccount.objects.filter(provider=PROVIDER, uid=person.uid).select_related("user").first()
    user = linked.user if linked is not None else _make_account(person, claims)
    if not user.is_active:
        return None
    apply_claims(user, claims)
    user.refresh_from_db()
    # For the pages that let nobody in whom a password here does not open.
    user.is_proven_by_directory = True
    return user


def end_session_early(request: HttpRequest, user: Any) -> None:
    """Rights follow the directory at each sign-in, so that a session must not last for weeks."""
    if settings.LDAP_URL and is_of_directory(user):
        # A number of seconds would begin anew whenever the session is saved.
        request.session.set_expiry(timedelta(hours=settings.OIDC_SESSION_HOURS))


@receiver(user_logged_in, dispatch_uid="accounts.end_session_early")
def _signed_in(request: HttpRequest, user: Any, **_: Any) -> None:
    end_session_early(request, user)


def _claims(person: Person) -> Claims:
    said = {
        "email": person.email,
        "groups": sorted(person.groups),
        "_claim_names": {"groups": ""} if person.groups_left_out else {},
    }
    return read_claims({"userinfo": said}, groups_claim="groups", trust_email=settings.OIDC_TRUST_EMAIL)


def _make_account(person: Person, claims: Claims) -> Any:
    users = get_user_model()
    # A username in the form of an address could be that of another account, which signs in with it too.
    username = person.name.partition("@")[0]
    if users._default_manager.filter(username__iexact=username).exists():
        raise AccountRefused("another account has the name")
    if claims.email and users_with(claims.email):
        raise AccountRefused("another account has the e-mail address")
    user = users(
        username=username,
        email=claims.email,
        first_name=person.first_name[:150],
        last_name=person.last_name[:150],
    )
    user.set_unusable_password()
    try:
        user.full_clean()
        with transaction.atomic():
            user.save()
            SocialAccount.objects.create(user=user, provider=PROVIDER, uid=person.uid)
    except ValidationError as error:
        raise AccountRefused(f"the directory's values make no account: {error.messages}") from error
    except IntegrityError as error:
        raise AccountRefused("another request made the account at the same moment") from error
    return user
