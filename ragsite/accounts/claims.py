"""Rights of an account that follow the claims of its provider, at each sign-in."""

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
class Claims:
    """The claims of an OpenID Connect provider about a person.

    ``email`` is empty unless verified. ``groups_left_out``: the provider did not send all groups, as Entra does for
    many.
    """

    email: str
    groups: frozenset[str]
    groups_left_out: bool
    is_one_subject: bool


def read_claims(data: Mapping[str, Any], *, groups_claim: str, trust_email: bool) -> Claims:
    """Read the claims of the userinfo endpoint and the ID token."""
    userinfo, id_token = data.get("userinfo") or {}, data.get("id_token") or {}
    said = userinfo or id_token
    email = said.get("email")
    # Some providers send the string "false", which is true in Python.
    is_verified = trust_email or said.get("email_verified") in (True, "true")
    groups = _find_claim(userinfo, groups_claim)
    if groups is None:
        groups = _find_claim(id_token, groups_claim)
    left_out = any(groups_claim in (part.get("_claim_names") or {}) for part in (userinfo, id_token))
    return Claims(
        email=email.strip().lower() if isinstance(email, str) and is_verified else "",
        groups=_read_names(groups),
        groups_left_out=left_out,
        is_one_subject=not userinfo or not id_token or userinfo.get("sub") == id_token.get("sub"),
    )


def saml_claims(attributes: Mapping[str, list[Any]], email_attribute: str) -> dict[str, object]:
    """Convert SAML attributes to claims; addresses are never verified."""
    email = (attributes.get(email_attribute) or [None])[0]
    return {"userinfo": {**attributes, "email": email, "email_verified": False}}


def wanted_groups(claimed: frozenset[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the site's groups; a mapping admits only the groups that it names."""
    names = {mapping[name] for name in claimed if name in mapping} if mapping else claimed
    return frozenset(name for name in names if len(name) <= GROUP_NAME_MAX_CHARACTERS)


def _find_claim(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _read_names(value: Any) -> frozenset[str]:
    """Return the names without the slash at the beginning of Keycloak's group paths."""
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(
        name
        for each in names
        if isinstance(each, str) and "\0" not in each and (name := each.strip().removeprefix("/"))
    )


def local_administrators() -> QuerySet[Any]:
    users = get_user_model()._default_manager
    unusable = {"password__startswith": UNUSABLE_PASSWORD_PREFIX}
    return users.filter(is_active=True, is_superuser=True).exclude(password="").exclude(**unusable)


def is_last_local_administrator(user: User) -> bool:
    administrators = local_administrators()
    return administrators.filter(pk=user.pk).exists() and not administrators.exclude(pk=user.pk).exists()


def is_stale(user: User) -> bool:
    """Return whether only the provider opens the account, and has not done so for OIDC_KEY_DAYS.

    Providers do not report removed people.
    """
    if not settings.OIDC_KEY_DAYS or user.has_usable_password():
        return False
    long_ago = timezone.now() - timedelta(days=settings.OIDC_KEY_DAYS)
    seen_at = user.last_login or user.date_joined
    return bool(seen_at < long_ago) and SocialAccount.objects.filter(user=user).exists()


def apply_claims(user: User, claims: Claims) -> None:
    """Give ``user`` the claimed rights, and remove rights of earlier claims that these lack."""
    with transaction.atomic():
        # The lock prevents two superusers from losing the role at once.
        list(get_user_model()._default_manager.filter(is_superuser=True).order_by("pk").select_for_update())
        user = get_user_model()._default_manager.select_for_update().get(pk=user.pk)
        given, _created = ClaimedRights.objects.get_or_create(user=user)
        _apply_groups(user, given, claims)
        _apply_staff(user, given, claims)


def _apply_groups(user: User, given: ClaimedRights, claims: Claims) -> None:
    if claims.groups_left_out:
        logger.warning("The provider left out the groups of %s; those that came from it are taken away.", user)
    wanted = _find_groups(wanted_groups(claims.groups, settings.OIDC_GROUPS))
    had = set(user.groups.all())
    came_from_claims = set(given.groups.all())
    user.groups.add(*(wanted - had))
    user.groups.remove(*(came_from_claims - wanted))
    given.groups.set((wanted - had) | (came_from_claims & wanted))


def _find_groups(names: frozenset[str]) -> set[Group]:
    """Return the groups with these names, creating missing groups.

    Unless OIDC_GROUPS is set, the provider's names must not choose permissions or managing roles here.
    """
    if not settings.OIDC_GROUPS:
        with_permissions = Group.permissions.through.objects.filter(group_id=OuterRef("pk"))
        managing = CollectionGrant.objects.filter(group_id=OuterRef("pk")).exclude(role=CollectionGrant.Role.READER)
        chosen = Group.objects.filter(Exists(with_permissions) | Exists(managing), name__in=names)
        names -= set(chosen.values_list("name", flat=True))
    Group.objects.bulk_create([Group(name=name) for name in sorted(names)], ignore_conflicts=True)
    return set(Group.objects.filter(name__in=names))


def _apply_staff(user: User, given: ClaimedRights, claims: Claims) -> None:
    # An empty setting matches no group.
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
