"""Let people connect programs to /mcp by signing in (OAuth 2.1), instead of copying an API key.

A token is valid only at /mcp, with the person's rights.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from allauth.core.internal.httpkit import add_query_params
from allauth.idp.oidc import app_settings, views
from allauth.idp.oidc.adapter import DefaultOIDCAdapter, get_adapter
from allauth.idp.oidc.contrib.rest_framework.authentication import TokenAuthentication
from allauth.idp.oidc.internal.clientkit import is_redirect_uri_allowed
from allauth.idp.oidc.internal.resources import get_resources
from allauth.idp.oidc.models import Client, Token
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, ValidationError
from django.db import DataError, transaction
from django.db.models import Max, QuerySet
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path, re_path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from chat.api.mcp import McpView
from core.job_queue import sweeping
from core.key_limits import KeyLimits, KeyScope, set_limits
from core.users import get_account
from ragsite.accounts.claims import has_stale_sign_in
from ragsite.accounts.keys import PREFIX, KeyAuthentication
from ragsite.operations.audit_log import record_action

logger = logging.getLogger(__name__)

SCOPES = (KeyScope.SEARCH, KeyScope.ASK)
_GRANTS = {Client.GrantType.AUTHORIZATION_CODE, Client.GrantType.REFRESH_TOKEN}
REGISTRATION_BYTES = 8 * 1024
_KEPT = ("client_name", "redirect_uris", "grant_types", "response_types", "token_endpoint_auth_method")
_NUL = re.compile(rb"\0|%00|\\u0000")
# A browser would open an address with one of these schemes itself, so the program would not get the authorization code.
_REFUSED_SCHEMES = ("", "about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source")
KEPT_WITHOUT_TOKEN = timedelta(days=1)


class McpSignInAdapter(DefaultOIDCAdapter):
    def generate_client_secret(self) -> str:
        """Return a secret without characters that programs percent-encode (RFC 6749, 2.3.1)."""
        return secrets.token_urlsafe(48)

    scope_display = {
        KeyScope.SEARCH: _("Find and read the documents that you may read"),
        KeyScope.ASK: _("Ask questions in your name"),
    }

    def validate_client_registration(self, *, client: Client, **_options: Any) -> None:
        """Accept only grants that the site offers, and redirect addresses that are safe for the authorization code.

        An address is safe if it is https, leads to the program's own machine, or has the scheme of an app. Raises:
        ValidationError.
        """
        if not _GRANTS.issuperset(client.get_grant_types()) or client.get_response_types() != ["code"]:
            raise ValidationError("Programs are let in by the authorization code grant alone.")
        for address in map(urlsplit, client.get_redirect_uris()):
            is_elsewhere = address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1")
            if is_elsewhere or address.scheme in _REFUSED_SCHEMES:
                raise ValidationError("A redirect address must be https, or lead to a program on its own machine.")
        client.set_scopes(list(SCOPES))
        client.set_default_scopes(list(SCOPES))

    def validate_resource_uris(self, *, uris: list[str], **_options: Any) -> None:
        if any(uri.rstrip("/") not in (self.get_issuer(), self.get_issuer() + reverse("mcp")) for uri in uris):
            raise ValidationError("Tokens are for /mcp of this site alone.")


class AuthorizationView(views.AuthorizationView):
    template_name = "account/let_in.html"

    def get(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Show the page on which a person allows a program to connect.

        Raises: BadRequest if the program has not registered the redirect address.
        """
        address = request.GET.get("redirect_uri", "")
        client = Client.objects.filter(pk=request.GET.get("client_id", "")).first()
        own = client.get_redirect_uris() if client and urlsplit(address).scheme not in _REFUSED_SCHEMES else []
        # `port` raises ValueError if it is invalid.
        if not is_redirect_uri_allowed(address, own, False) or urlsplit(address).port == 0:
            raise BadRequest("The program is not known, or the address is none of its own.")
        get_resources(request)
        if any(len(values) > 1 for name, values in request.GET.lists() if name != "resource"):
            raise BadRequest("A parameter occurs twice.")
        if "none" in request.GET.get("prompt", "").split():
            raise BadRequest("The person is always asked: prompt=none is not offered.")
        if not request.GET.get("code_challenge") or request.GET.get("code_challenge_method") != "S256":
            problem = {"error": "invalid_request", "error_description": "PKCE with S256 is required."}
            if state := request.GET.get("state"):
                problem["state"] = state
            response: HttpResponse = views._ClientHttpResponseRedirect(add_query_params(address, problem))
        else:
            response = super().get(request, *args, **options)
        return response

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().dispatch(request, *args, **options)
        # The form redirects to the program, which the content security policy would forbid.
        response._csp_replace = {"form-action": None}  # type: ignore[attr-defined]
        return response

    def get_context_data(self, **context: Any) -> dict[str, object]:
        redirect = self._request_info.get("redirect_uri") or ""
        return {**super().get_context_data(**context), "leads_to": urlsplit(redirect).netloc or redirect}


class TokenView(views.TokenView):
    @transaction.atomic
    def post(self, request: HttpRequest) -> HttpResponse:
        """Issue tokens, only once for each code and each refresh token.

        If a code is used again, its tokens are revoked.
        """
        answer: HttpResponse
        if request.POST.get("grant_type") != Client.GrantType.AUTHORIZATION_CODE:
            # A second request with the same refresh token waits for the lock, and then finds the token replaced.
            hashed = get_adapter().hash_token(request.POST.get("refresh_token", ""))
            Token.objects.select_for_update().filter(type=Token.Type.REFRESH_TOKEN, hash=hashed).first()
            answer = super().post(request)
            return answer
        used, is_first = Token.objects.get_or_create(
            type=Token.Type.AUTHORIZATION_CODE,
            hash=get_adapter().hash_token(request.POST.get("code", "")),
            # A code is valid for a minute. If it is used again within a day, the program's tokens are deleted.
            defaults={"expires_at": timezone.now() + timedelta(days=1)},
        )
        if not is_first:
            Token.objects.filter(**used.data, created_at__gte=used.created_at).delete()
            return JsonResponse({"error": "invalid_grant"}, status=400)
        answer = super().post(request)
        if answer.status_code == 200:
            hashed = get_adapter().hash_token(json.loads(answer.content)["access_token"])
            issued = Token.objects.get(type=Token.Type.ACCESS_TOKEN, hash=hashed)
            used.data = {"client_id": issued.client_id, "user_id": issued.user_id}
            used.save()
        else:
            used.delete()
        return answer


class RegistrationView(views.ClientRegistrationView):
    def _get_client_metadata(self) -> dict[str, object] | None:
        if len(self.request.body) > REGISTRATION_BYTES:
            return None
        said = super()._get_client_metadata() or {}
        kept = {name: said[name] for name in _KEPT if name in said}
        # allauth would parse a string as JSON once more, so each value must be a list.
        lists = (kept.get(name, []) for name in ("redirect_uris", "grant_types", "response_types"))
        return kept if all(isinstance(each, list) for each in lists) else None


def server_metadata(request: HttpRequest) -> JsonResponse:
    names = {"authorization": "authorization", "token": "token", "revocation": "revoke"}
    names["registration"] = "client_registration"
    metadata = {
        "issuer": get_adapter().get_issuer(),
        **{f"{key}_endpoint": request.build_absolute_uri(reverse(f"idp:oidc:{name}")) for key, name in names.items()},
        "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": sorted(_GRANTS),
        "response_types_supported": ["code"],
        "scopes_supported": list(SCOPES),
        "token_endpoint_auth_methods_supported": app_settings.AUTH_METHODS,
    }
    return JsonResponse(metadata, headers={"Access-Control-Allow-Origin": "*"})


def _refuse_unreadable_requests(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Make ``view`` respond with 400 to text that a library or PostgreSQL cannot read, such as NUL or `http://[`."""

    @csrf_exempt
    def call_view_if_readable(request: HttpRequest) -> HttpResponseBase:
        try:
            if not _NUL.search(f"{request.META['QUERY_STRING']}&".encode() + request.body):
                return view(request)
        except (ValueError, RecursionError, ValidationError, DataError) as error:
            logger.info("%s was refused: %s.", request.path, type(error).__name__)
        return JsonResponse({"error": "invalid_request", "error_description": "It cannot be read."}, status=400)

    return call_view_if_readable


@receiver(sweeping, dispatch_uid="ragsite.delete_unused_programs")
def delete_unused_programs(**_options: Any) -> None:
    Token.objects.expired().delete()
    long_ago = timezone.now() - KEPT_WITHOUT_TOKEN
    Client.objects.filter(token=None, created_at__lt=long_ago, data__dcr=True).delete()


def list_authorized_programs(user: User) -> QuerySet[Client]:
    let_in = Client.objects.filter(token__in=Token.objects.valid().filter(user=user))
    programs: QuerySet[Client] = let_in.annotate(used_at=Max("token__created_at")).order_by("name", "pk")
    return programs


def revoke_tokens(user: User, client_id: str) -> None:
    if Token.objects.filter(user=user, client_id=client_id).delete()[0]:
        record_action("program.revoked", user, client=client_id)


@login_required
@require_POST
def revoke_program(request: HttpRequest, client_id: str) -> HttpResponse:
    revoke_tokens(get_account(request), client_id)
    return redirect("account_overview")


class TokenOrKey(KeyAuthentication):
    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        secret = request.headers.get("Authorization", "").partition(" ")[2]
        found = TokenAuthentication().authenticate(request) if secret and not secret.startswith(PREFIX) else None
        if found is None:
            return super().authenticate(request)
        user, token = found
        if has_stale_sign_in(user):
            raise AuthenticationFailed("The account has not signed in for long: sign in again.")
        set_limits(user, KeyLimits("", frozenset(SCOPES) & frozenset(map(KeyScope, token.get_scopes()))))
        return user, token


class SignedInMcpView(McpView):
    """The MCP endpoint for sites with MCP_SIGN_IN. Anonymous requests are refused, so that programs ask to sign in."""

    permission_classes = [IsAuthenticated]

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [TokenOrKey(is_only=True)]


_pages = [
    path("authorize", _refuse_unreadable_requests(AuthorizationView.as_view()), name="authorization"),
    path("api/token", _refuse_unreadable_requests(TokenView.as_view()), name="token"),
    path("api/revoke", _refuse_unreadable_requests(views.revoke), name="revoke"),
    path("api/clients", _refuse_unreadable_requests(RegistrationView.as_view()), name="client_registration"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("mcp", SignedInMcpView.as_view(), name="mcp"),
    path("mcp/", SignedInMcpView.as_view()),
    path("accounts/programs/<slug:client_id>/revoke/", revoke_program, name="account_program_revoke"),
    # Some programs look for the metadata only at OpenID Connect's address.
    re_path(r"^\.well-known/(?:oauth-authorization-server(?:/mcp)?|openid-configuration)/?$", server_metadata),
    path("identity/o/", include(([path("", include((_pages, "oidc")))], "idp"))),
]
