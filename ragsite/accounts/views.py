from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from requests import RequestException

from chat.budgets import budget_of
from ragsite.accounts import invitations
from ragsite.accounts.adapters import AccountAdapter
from ragsite.accounts.sign_in import has_second_factor, may_use_password

logger = logging.getLogger(__name__)


class SignInView(views.LoginView):
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs["sign_up_is_open"] = AccountAdapter(self.request).is_open_for_signup(self.request)
        kwargs["local_passwords"] = settings.LOCAL_PASSWORDS
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context


class PasswordResetView(views.PasswordResetView):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.MAIL_IS_SENT:
            return render(request, "account/no_mail.html")
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response


@login_required
def overview(request: HttpRequest) -> HttpResponse:
    """The account of the one who asks."""
    user: Any = request.user
    programs: Any = ()
    if settings.MCP_SIGN_IN:
        # Its tables are there with this setting alone.
        from ragsite.accounts.mcp_sign_in import programs_of

        programs = programs_of(user)
    return render(
        request,
        "account/overview.html",
        {
            "has_password": user.has_usable_password() and may_use_password(user),
            "has_second_factor": has_second_factor(user),
            "groups": user.groups.order_by("name"),
            "budget": budget_of(user),
            "programs": programs,
        },
    )


@login_required
def password_elsewhere(request: HttpRequest) -> HttpResponse:
    """For accounts without a password here: none is set, because the provider keeps it."""
    return render(request, "account/password_elsewhere.html", {"provider": settings.OIDC_NAME})


def _with_provider(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A sign-in page with an error, if the provider does not answer or sends an invalid response."""

    @wraps(view)
    def asked(request: HttpRequest, provider_id: str) -> HttpResponseBase:
        try:
            return view(request, provider_id)
        except (RequestException, OAuth2Error) as error:
            logger.warning("The provider could not be asked: %s", error)
            return render(request, "socialaccount/authentication_error.html", status=502)

    return asked


sso_login = _with_provider(openid_connect.login)
sso_callback = _with_provider(openid_connect.callback)


def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Remember the invitation and redirect, so that its address does not appear in the log lines of later requests."""
    found = invitations.find(token)
    if found is None:
        return render(request, "account/invitation_closed.html", status=404)
    if request.user.is_authenticated:
        return render(request, "account/already_signed_in.html", status=409)
    request.session[invitations.SESSION_KEY] = found.pk
    return redirect("account_signup")
