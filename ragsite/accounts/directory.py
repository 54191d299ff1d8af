"""Accounts of people from an LDAP directory. They follow the rules of single sign-on, and have no password here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.dispatch import receiver
from django.http import HttpRequest

from ragsite.accounts.claims import Claims, read_claims
from ragsite.accounts.ldap_directory import Person
from ragsite.accounts.rights import apply_claims
from ragsite.models.account import users_with

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
    if not settings.OIDC_CREATES_ACCOUNTS:
        raise AccountRefused("there is no account, and OIDC_CREATES_ACCOUNTS is false")
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
