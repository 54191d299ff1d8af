"""A person's own keys: listed, made, revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from ragsite.accounts.keys import issue_key
from ragsite.models import ApiKey
from ragsite.models.api_key import SCOPE_LABELS
from retrieval.key_limits import Scope
from retrieval.models import Collection

MOST_USABLE_KEYS = 50


class KeyForm(forms.Form):
    """A new key of one's own."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What you will use it for, and where."))
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        choices=list(SCOPE_LABELS.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.SEARCH.value, Scope.ASK.value],
        help_text=_("Never more than your account itself may do."),
    )
    collections = forms.ModelMultipleChoiceField(
        label=_("Only these collections"),
        queryset=Collection.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: all collections that you may read."),
    )
    days = forms.TypedChoiceField(
        label=_("Expires"),
        choices=[(30, _("in 30 days")), (90, _("in 90 days")), (365, _("in a year")), (0, _("never"))],
        coerce=int,
        initial=90,
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        readable = Collection.objects.readable_by(user).in_service()
        self.fields["collections"].queryset = readable  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        if ApiKey.objects.usable().filter(user=self._user).count() >= MOST_USABLE_KEYS:
            raise forms.ValidationError(_("You have too many keys: revoke one that you no longer use."))
        return super().clean() or {}


@never_cache
@login_required
@sensitive_variables("issued")
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    form = KeyForm(request.POST or None, user=request.user)
    issued = None
    if request.method == "POST" and form.is_valid():
        days = form.cleaned_data["days"]
        issued = issue_key(
            request.user,
            form.cleaned_data["name"],
            [Scope(scope) for scope in form.cleaned_data["scopes"]],
            collections=list(form.cleaned_data["collections"]) or None,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
        )
        form = KeyForm(user=request.user)
    own = ApiKey.objects.filter(user=request.user).prefetch_related("collections")
    # The key is in this response and nowhere else: after a redirect it could not be shown.
    return render(request, "account/keys.html", {"form": form, "keys": own, "issued": issued})


@login_required
@require_POST
def revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    get_object_or_404(ApiKey, pk=key_id, user=request.user).revoke()
    return redirect("account_keys")
