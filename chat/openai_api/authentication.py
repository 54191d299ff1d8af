from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

# What people and clients write where a key is demanded and none is needed. Any other unknown key is refused: a mistyped
# or withdrawn one must not quietly ask fewer documents than its owner may read.
PLACEHOLDERS = frozenset(
    {
        *("-", "anonymous", "dummy", "empty", "none", "not-needed"),
        *("no-key", "no-key-required", "sk-no-key", "sk-no-key-required"),
    }
)


class BearerAuthentication(BaseAuthentication):
    """The user whose API key is sent as `Authorization: Bearer KEY` (or `Token KEY`); nobody for a placeholder.

    Raises: AuthenticationFailed for a key that is neither, and for another kind of credentials.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        header = get_authorization_header(request).decode("latin-1").strip()
        scheme, _space, key = header.partition(" ")
        if not header:
            return None
        if scheme.lower() not in ("bearer", "token"):
            raise AuthenticationFailed("Send the key as `Authorization: Bearer KEY`.")
        if not key.strip() or key.strip().lower() in PLACEHOLDERS:
            return None
        credentials: tuple[Any, Any] = _site_authentication().authenticate_key(key.strip())
        return credentials

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _site_authentication() -> Any:
    """How the rest of the API recognises keys."""
    return import_string(settings.API_KEY_AUTHENTICATION)()


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = BearerAuthentication
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
