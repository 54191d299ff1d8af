"""API keys: issue them, authenticate with them, and limit their rate.

The owner sees a key once; the site stores its SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import get_random_string
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from core.key_limits import KeyLimits, KeyScope, set_limits
from ragsite.accounts import sign_in_limits
from ragsite.accounts.claims import has_stale_sign_in
from ragsite.models import ApiKey
from retrieval.api.throttling import FixedWindowThrottle
from retrieval.models import Collection, Source

# Clients of OpenAI's protocol send one of these texts if the user entered no key, so they count as no key.
PLACEHOLDERS = frozenset(
    [
        *("", "-", "anonymous", "dummy", "dummy-key", "dummy_key", "empty", "fake", "lm-studio", "none", "not-needed"),
        *("no-key", "no-key-required", "ollama", "sk-no-key", "sk-no-key-required"),
    ]
)
PREFIX = "rs_"
PUBLIC_CHARACTERS = 8
# 43 characters out of 62 letters and digits have 256 random bits.
SECRET_CHARACTERS = 43


def compute_digest(secret: str) -> str:
    """Return the hash to store. The secret is long and random, so it needs no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def issue_key(
    user: User,
    name: str,
    scopes: Iterable[KeyScope],
    *,
    collections: Iterable[Collection] | None = None,
    source: Source | None = None,
    expires_at: datetime | None = None,
    rate: str = "",
    lists_sources: bool = False,
) -> ApiKey:
    """Create an API key for ``user``. Its ``secret`` can be read only from the returned object.

    None for ``collections`` means all collections that the user may use. A key for a ``source`` (an import of
    documents) may only write documents into the source's collection; ``scopes`` and ``collections`` are then ignored.
    """
    if source is not None:
        scopes, collections = [KeyScope.DOCUMENTS_WRITE], [source.collection]
    public_id = f"{PREFIX}{get_random_string(PUBLIC_CHARACTERS)}"
    secret = f"{public_id}_{get_random_string(SECRET_CHARACTERS)}"
    key = ApiKey.objects.create(
        user=user,
        name=name,
        public_id=public_id,
        digest=compute_digest(secret),
        scopes=sorted(scopes),
        is_limited=collections is not None,
        source=source,
        expires_at=expires_at,
        rate=rate,
        lists_sources=lists_sources,
    )
    if collections is not None:
        key.collections.set(collections)
    key.secret = secret
    return key


LAST_USE_KEPT_FOR = timedelta(minutes=1)


class KeyAuthentication(BaseAuthentication):
    """Authenticates `Authorization: Bearer KEY` or `Token KEY`, and applies the limits of the key.

    ``is_only`` is for views that accept no other credentials.
    """

    def __init__(self, *, is_only: bool = False) -> None:
        self.is_only = is_only

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, _space, secret = get_authorization_header(request).decode("latin-1").strip().partition(" ")
        if scheme.lower() not in ("bearer", "token"):
            if scheme and self.is_only:
                raise AuthenticationFailed("Send the key as `Authorization: Bearer KEY`.")
            return None
        if self.is_only and secret.strip().lower() in PLACEHOLDERS:
            return None
        return self.authenticate_key(request, secret.strip())

    def authenticate_key(self, request: Request, secret: str) -> tuple[Any, ApiKey]:
        """Return the owner of a secret, and the key.

        Raises: AuthenticationFailed for an invalid key or an inactive user; SignInRefused after too many wrong keys.
        """
        caller = sign_in_limits.build_sign_in_caller(request, secret, is_name=False)
        allowance = sign_in_limits.load_token_allowance(caller)
        sign_in_limits.raise_if_limited(allowance.wait_seconds, "tokens")
        key = ApiKey.objects.select_related("user").filter(digest=compute_digest(secret)).first()
        refusal = "This API key is not known." if key is None else _find_reason_to_refuse(key)
        if key is None or refusal:
            sign_in_limits.record_token_failure(caller)
            raise AuthenticationFailed(refusal)
        if not allowance.is_clean:
            sign_in_limits.record_sign_in_success(caller)
        _note_use(key)
        set_limits(key.user, key.limits())
        return key.user, key

    def load_limits(self, public_id: str) -> KeyLimits | None:
        key = ApiKey.objects.select_related("user").filter(public_id=public_id).first()
        return None if key is None or _find_reason_to_refuse(key) else key.limits()

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _find_reason_to_refuse(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "This API key was revoked."
    if key.is_expired:
        return "This API key has expired."
    if not key.user.is_active:
        return "The account of this API key is not active."
    if has_stale_sign_in(key.user):
        return "The account of this API key has not signed in for long: its owner must sign in with the provider."
    return ""


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    long_ago = now - LAST_USE_KEPT_FOR
    if key.last_used_at is None or key.last_used_at < long_ago:
        unnoted = ApiKey.objects.filter(Q(last_used_at=None) | Q(last_used_at__lt=long_ago), pk=key.pk)
        unnoted.update(last_used_at=now)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = KeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class KeyRateThrottle(FixedWindowThrottle):
    def __init__(self) -> None:
        """Skip DRF's initializer, which sets one rate for all. Each key has its own rate."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, ApiKey) or not request.auth.rate:
            return True
        self.rate = request.auth.rate
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return super().allow_request(request, view)

    def get_cache_key(self, request: Request, view: Any) -> str:
        return f"throttle_key_{request.auth.pk}"
