"""Who sends a key, for Django REST Framework."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from ragsite.accounts.providers.rights import is_forgotten
from ragsite.keys.issuing import digest_of
from ragsite.models import ApiKey
from retrieval.rights.key_limits import KeyLimits, set_limits

# A request writes the time of the last use when the one that is stored is older than this.
LAST_USE_KEPT_FOR = timedelta(minutes=1)


class KeyAuthentication(BaseAuthentication):
    """The user whose key is sent as `Authorization: Bearer KEY`, or `Token KEY`, with the key's limits upon them."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        scheme, _space, secret = get_authorization_header(request).decode("latin-1").strip().partition(" ")
        if scheme.lower() not in ("bearer", "token"):
            return None
        return self.authenticate_key(secret.strip())

    def authenticate_key(self, secret: str) -> tuple[Any, ApiKey]:
        """Raises: AuthenticationFailed for a key that is unknown, revoked or expired, and for an inactive user."""
        key = ApiKey.objects.select_related("user").filter(digest=digest_of(secret)).first()
        if key is None:
            raise AuthenticationFailed("This API key is not known.")
        if refusal := _refusal(key):
            raise AuthenticationFailed(refusal)
        _note_use(key)
        set_limits(key.user, key.limits())
        return key.user, key

    def limits_now(self, public_id: str) -> KeyLimits | None:
        """The present limits of a key that was good when its request began; None for one that is refused by now."""
        key = ApiKey.objects.select_related("user").filter(public_id=public_id).first()
        return None if key is None or _refusal(key) else key.limits()

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _refusal(key: ApiKey) -> str:
    """Why the key is refused at this moment; empty for one that is good."""
    if key.revoked_at is not None:
        return "This API key was revoked."
    if key.is_expired:
        return "This API key has expired."
    if not key.user.is_active:
        return "The account of this API key is not active."
    if is_forgotten(key.user):
        return "The account of this API key has not signed in for long: its owner must sign in with the provider."
    return ""


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    long_ago = now - LAST_USE_KEPT_FOR
    if key.last_used_at is None or key.last_used_at < long_ago:
        unnoted = ApiKey.objects.filter(Q(last_used_at=None) | Q(last_used_at__lt=long_ago), pk=key.pk)
        unnoted.update(last_used_at=now)


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = KeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
