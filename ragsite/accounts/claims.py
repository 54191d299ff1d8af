"""Give an account the rights that its identity provider claims for it, at each sign-in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from ragsite.models.account import ClaimedRights
from retrieval.models import CollectionGrant

logger = logging.getLogger(__name__)


GROUP_NAME_MAX_CHARACTERS = 150


@dataclass(frozen=True, slots=True)
class SignInClaims:
    """What an identity provider says about a person who signs in.

    ``email`` is empty if the provider has not verified it. ``groups_left_out`` is true if the list of groups is
    incomplete.
    """

    email: str
    groups: frozenset[str]
    groups_left_out: bool
    is_one_subject: bool


def read_claims(data: Mapping[str, Any], *, groups_claim: str, trust_email: bool) -> SignInClaims:
    """Return what a provider says about a person in two responses, the userinfo and the ID token."""
    userinfo, id_token = data.get("userinfo") or {}, data.get("id_token") or {}
    said = userinfo or id_token
    email = said.get("email")
    # Some providers send the text "false", which counts as true in Python.
    is_verified = trust_email or said.get("email_verified") in (True, "true")
    groups = _find_claim_value(userinfo, groups_claim)
    if groups is None:
        groups = _find_claim_value(id_token, groups_claim)
    left_out = any(groups_claim in (part.get("_claim_names") or {}) for part in (userinfo, id_token))
    return SignInClaims(
        email=email.strip().lower() if isinstance(email, str) and is_verified else "",
        groups=_read_group_names(groups),
        groups_left_out=left_out,
        is_one_subject=not userinfo or not id_token or userinfo.get("sub") == id_token.get("sub"),
    )


def convert_saml_attributes(attributes: Mapping[str, list[Any]], email_attribute: str) -> dict[str, object]:
    """Convert SAML attributes to claims. The e-mail address never counts as verified."""
    email = (attributes.get(email_attribute) or [None])[0]
    return {"userinfo": {**attributes, "email": email, "email_verified": False}}


def map_groups(claimed: frozenset[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the site's groups for the provider's group names.

    ``mapping`` maps the provider's names to the site's names. Names that are not in it are dropped. If it is empty, the
    site's names equal the provider's.
    """
    names = {mapping[name] for name in claimed if name in mapping} if mapping else claimed
    return frozenset(name for name in names if len(name) <= GROUP_NAME_MAX_CHARACTERS)


def _find_claim_value(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _read_group_names(value: Any) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(
        name
        for each in names
        if isinstance(each, str) and "\0" not in each and (name := each.strip().removeprefix("/"))
    )


def find_local_administrators() -> QuerySet[Any]:
    users = get_user_model()._default_manager
    unusable = {"password__startswith": UNUSABLE_PASSWORD_PREFIX}
    return users.filter(is_active=True, is_superuser=True).exclude(password="").exclude(**unusable)


def is_last_local_administrator(user: User) -> bool:
    administrators = find_local_administrators()
    return administrators.filter(pk=user.pk).exists() and not administrators.exclude(pk=user.pk).exists()


def has_stale_sign_in(user: User) -> bool:
    """Return whether an account without a password has not signed in at its provider for OIDC_KEY_DAYS.

    Its keys are refused then, because providers do not report people who left.
    """
    if not settings.OIDC_KEY_DAYS or user.has_usable_password():
        return False
    long_ago = timezone.now() - timedelta(days=settings.OIDC_KEY_DAYS)
    seen_at = user.last_login or user.date_joined
    return bool(seen_at < long_ago) and SocialAccount.objects.filter(user=user).exists()


def apply_claims(user: User, claims: SignInClaims) -> None:
    """Give ``user`` the rights in ``claims``, and remove rights that only the claims of an earlier sign-in gave."""
    with transaction.atomic():
        # All superusers are locked, because the last two could lose the role at the same time.
        list(get_user_model()._default_manager.filter(is_superuser=True).order_by("pk").select_for_update())
        user = get_user_model()._default_manager.select_for_update().get(pk=user.pk)
        given, _created = ClaimedRights.objects.get_or_create(user=user)
        _apply_groups(user, given, claims)
        _apply_staff_flag(user, given, claims)


def _apply_groups(user: User, given: ClaimedRights, claims: SignInClaims) -> None:
    if claims.groups_left_out:
        logger.warning("The provider left out the groups of %s; those that came from it are taken away.", user)
    wanted = _find_or_create_groups(map_groups(claims.groups, settings.OIDC_GROUPS))
    had = set(user.groups.all())
    came_from_claims = set(given.groups.all())
    user.groups.add(*(wanted - had))
    user.groups.remove(*(came_from_claims - wanted))
    given.groups.set((wanted - had) | (came_from_claims & wanted))


def _find_or_create_groups(names: frozenset[str]) -> set[Group]:
    if not settings.OIDC_GROUPS:
        with_permissions = Group.permissions.through.objects.filter(group_id=OuterRef("pk"))
        managing = CollectionGrant.objects.filter(group_id=OuterRef("pk")).exclude(role=CollectionGrant.Role.READER)
        chosen = Group.objects.filter(Exists(with_permissions) | Exists(managing), name__in=names)
        names -= set(chosen.values_list("name", flat=True))
    Group.objects.bulk_create([Group(name=name) for name in sorted(names)], ignore_conflicts=True)
    return set(Group.objects.filter(name__in=names))


def _apply_staff_flag(user: User, given: ClaimedRights, claims: SignInClaims) -> None:
    # An empty setting equals no group's name, so no user is made staff.
    wanted = settings.OIDC_STAFF_GROUP in claims.groups
    if wanted and not user.is_staff:
        user.is_staff = given.is_staff = True
    elif given.is_staff and not wanted:
        if is_last_local_administrator(user):
            logger.warning("%s stays staff: nobody else could administer the site with a password.", user)
            return
        user.is_staff = given.is_staff = False
    user.save(update_fields=["is_staff"])
    given.save()
