from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from allauth.account import views
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from requests import RequestException

from chat.budgets import find_budget
from chat.conversations.following import list_followed_answers
from core.key_limits import KeyScope
from core.users import get_account, is_staff_with
from ragsite.accounts import invitations
from ragsite.accounts.adapters import AccountAdapter
from ragsite.accounts.keys import issue_key
from ragsite.accounts.people import LastAdministratorError, erase_person, export_person
from ragsite.accounts.sign_in import has_second_factor, list_connected_programs, may_use_password
from ragsite.models import ApiKey
from ragsite.models.api_key import SCOPE_LABELS
from retrieval.models import Collection, Source
from retrieval.models.pushed import list_push_sources

logger = logging.getLogger(__name__)

MOST_USABLE_KEYS = 50


class SignInView(views.LoginView):
    def get_context_data(self, **kwargs: Any) -> dict[str, object]:
        kwargs["sign_up_is_open"] = AccountAdapter(self.request).is_open_for_signup(self.request)
        kwargs["local_passwords"] = settings.LOCAL_PASSWORDS
        context: dict[str, object] = super().get_context_data(**kwargs)
        return context


class PasswordResetView(views.PasswordResetView):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.MAIL_IS_SENT:
            return render(request, "account/no_mail.html")
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response


@login_required
def show_account_overview(request: HttpRequest) -> HttpResponse:
    user = get_account(request)
    return render(
        request,
        "account/overview.html",
        {
            "has_password": user.has_usable_password() and may_use_password(user),
            "has_second_factor": has_second_factor(user),
            "groups": user.groups.order_by("name"),
            "budget": find_budget(user),
            "programs": list_connected_programs(user),
            "followed": list_followed_answers(user),
        },
    )


@login_required
def explain_provider_password(request: HttpRequest) -> HttpResponse:
    return render(request, "account/password_elsewhere.html", {"provider": settings.OIDC_NAME})


def _catch_provider_errors(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Make ``view`` show an error page if the identity provider's response is missing or invalid."""

    @wraps(view)
    def call_view(request: HttpRequest, provider_id: str) -> HttpResponseBase:
        try:
            return view(request, provider_id)
        except (RequestException, OAuth2Error) as error:
            logger.warning("The provider could not be asked: %s", error)
            return render(request, "socialaccount/authentication_error.html", status=502)

    return call_view


sso_login = _catch_provider_errors(openid_connect.login)
sso_callback = _catch_provider_errors(openid_connect.callback)


def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Store the invitation in the session, and redirect to the page for signing up.

    The secret token is part of this address only, so the server's log contains it only once.
    """
    found = invitations.find_invitation(token)
    if found is None:
        return render(request, "account/invitation_closed.html", status=404)
    if request.user.is_authenticated:
        return render(request, "account/already_signed_in.html", status=409)
    request.session[invitations.SESSION_KEY] = found.pk
    return redirect("account_signup")


class KeyForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What you will use it for, and where."))
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        choices=list(SCOPE_LABELS.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=[KeyScope.SEARCH.value, KeyScope.ASK.value],
        help_text=_("Never more than your account itself may do."),
    )
    collections = forms.ModelMultipleChoiceField(
        label=_("Only these collections"),
        queryset=Collection.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: all collections that you may read."),
    )
    source = forms.ModelChoiceField(
        label=_("Only to send documents to this source"),
        queryset=Source.objects.none(),
        required=False,
        empty_label=_("no source"),
        help_text=_("The key may then do nothing else, whatever is chosen above."),
    )
    lists_sources = forms.BooleanField(
        label=_("list of sources"), required=False, help_text=ApiKey._meta.get_field("lists_sources").help_text
    )
    days = forms.TypedChoiceField(
        label=_("Expires"),
        choices=[(30, _("in 30 days")), (90, _("in 90 days")), (365, _("in a year")), (0, _("never"))],
        coerce=int,
        initial=90,
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        readable = Collection.objects.readable_by(user).in_service()
        self.fields["collections"].queryset = readable  # type: ignore[attr-defined]
        may_send = is_staff_with(user, "retrieval.add_document")
        sources = list_push_sources(user) if may_send else Source.objects.none()
        if sources.exists():
            self.fields["source"].queryset = sources  # type: ignore[attr-defined]
        else:
            del self.fields["source"]

    def clean(self) -> dict[str, object]:
        if ApiKey.objects.usable().filter(user=self._user).count() >= MOST_USABLE_KEYS:
            raise forms.ValidationError(_("You have too many keys: revoke one that you no longer use."))
        return super().clean() or {}


@never_cache
@login_required
@sensitive_variables("issued")
@require_http_methods(["GET", "POST"])
def manage_api_keys(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    form = KeyForm(request.POST or None, user=request.user)
    issued = None
    if request.method == "POST" and form.is_valid():
        wanted = form.cleaned_data
        issued = issue_key(
            request.user,
            wanted["name"],
            [KeyScope(scope) for scope in wanted["scopes"]],
            collections=list(wanted["collections"]) or None,
            source=wanted.get("source"),
            expires_at=timezone.now() + timedelta(days=wanted["days"]) if wanted["days"] else None,
            lists_sources=wanted["lists_sources"],
        )
        form = KeyForm(user=request.user)
    own = ApiKey.objects.filter(user=request.user).select_related("source").prefetch_related("collections")
    # The new key can be shown only now, so there is no redirect.
    return render(request, "account/keys.html", {"form": form, "keys": own, "issued": issued})


@login_required
@require_POST
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    get_object_or_404(ApiKey, pk=key_id, user=request.user).revoke()
    return redirect("account_keys")


class EraseForm(forms.Form):
    name = forms.CharField(label=_("Your account's name, to confirm"))

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self._user.get_username():
            raise forms.ValidationError(_("This is not the name of your account."))
        return name


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def manage_own_data(request: HttpRequest) -> HttpResponse:
    form = EraseForm(request.POST or None, user=get_account(request))
    if request.method == "POST" and form.is_valid():
        try:
            erase_person(get_user_model()._default_manager.get(username=request.user.get_username()))
        except LastAdministratorError as error:
            form.add_error(None, str(error))
        else:
            request.session.flush()
            return render(request, "account/erased.html")
    return render(request, "account/data.html", {"form": form})


@never_cache
@login_required
@require_GET
def export_own_data(request: HttpRequest) -> HttpResponse:
    return export_person(get_account(request), "my-data.json")
