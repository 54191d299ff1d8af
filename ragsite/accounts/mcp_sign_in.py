"""Programs at /mcp that people let in by signing in (OAuth 2.1), in place of a key that they copy.

allauth's provider registers the programs, asks the person, and issues the tokens; this module limits their rights. A
token has the person's own rights, narrowed to the scopes, at /mcp alone.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from allauth.idp.oidc import views
from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from allauth.idp.oidc.contrib.rest_framework.authentication import TokenAuthentication
from allauth.idp.oidc.models import Client, Token
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from chat.api.mcp import McpView
from ragsite.accounts.claims import is_forgotten
from ragsite.accounts.keys import PREFIX, KeyAuthentication
from ragsite.operations.audit_log import record
from retrieval.key_limits import KeyLimits, Scope, set_limits

SCOPES = (Scope.SEARCH, Scope.ASK)
_GRANTS = {Client.GrantType.AUTHORIZATION_CODE, Client.GrantType.REFRESH_TOKEN}


class Adapter(DefaultOIDCAdapter):
    scope_display = {
        Scope.SEARCH: _("Find and read the documents that you may read"),
        Scope.ASK: _("Ask questions in your name"),
    }

    def validate_client_registration(self, *, client: Client, **_options: Any) -> None:
        """Raises: ValidationError for a program that wants more than to be let in, or codes sent in the clear."""
        if not _GRANTS.issuperset(client.get_grant_types()) or client.get_response_types() != ["code"]:
            raise ValidationError("Programs are let in by the authorization code grant alone.")
        for address in map(urlsplit, client.get_redirect_uris()):
            if address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
                raise ValidationError("A redirect address must be https, or on the program's own machine.")
        client.set_scopes(list(SCOPES))
        client.set_default_scopes(list(SCOPES))

    def populate_server_metadata(self, data: dict[str, Any]) -> None:
        data["scopes_supported"] = list(SCOPES)
        data["grant_types_supported"] = sorted(_GRANTS)
        data["response_types_supported"] = ["code"]

    def validate_resource_uris(self, *, uris: list[str], **_options: Any) -> None:
        if any(uri.rstrip("/") not in (self.get_issuer(), self.get_issuer() + reverse("mcp")) for uri in uris):
            raise ValidationError("Tokens are for /mcp of this site alone.")


class AuthorizationView(views.AuthorizationView):
    """The page that asks whether the program is let in."""

    template_name = "account/let_in.html"

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().dispatch(request, *args, **options)
        # Its form leads on to the program.
        response._csp_replace = {"form-action": None}  # type: ignore[attr-defined]
        return response

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        redirect = self._request_info.get("redirect_uri") or ""
        return {**super().get_context_data(**context), "leads_to": urlsplit(redirect).netloc or redirect}


def programs_of(user: Any) -> QuerySet[Client]:
    """The programs that the user has let in, by name; ``used_at`` is when the newest token of each was issued."""
    let_in = Client.objects.filter(token__in=Token.objects.valid().filter(user=user))
    programs: QuerySet[Client] = let_in.annotate(used_at=Max("token__created_at")).order_by("name", "pk")
    return programs


def revoke_for(user: Any, client_id: str) -> None:
    """Refuse the program to the user from its next request on."""
    if Token.objects.filter(user=user, client_id=client_id).delete()[0]:
        record("program.revoked", user, client=client_id)


@login_required
@require_POST
def revoke_program(request: HttpRequest, client_id: str) -> HttpResponse:
    revoke_for(request.user, client_id)
    return redirect("account_overview")


class TokenOrKey(KeyAuthentication):
    """The user whose key is sent, or who has let the program in."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        secret = request.headers.get("Authorization", "").partition(" ")[2]
        found = TokenAuthentication().authenticate(request) if secret and not secret.startswith(PREFIX) else None
        if found is None:
            return super().authenticate(request)
        user, token = found
        if is_forgotten(user):
            raise AuthenticationFailed("The account has not signed in for long: sign in again.")
        set_limits(user, KeyLimits("", frozenset(SCOPES) & frozenset(map(Scope, token.get_scopes()))))
        return user, token


class SignedInMcpView(McpView):
    """As McpView, but anonymous requests are refused, so that programs offer to sign in."""

    permission_classes = [IsAuthenticated]

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [TokenOrKey(is_only=True)]
