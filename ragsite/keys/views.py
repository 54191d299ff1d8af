"""One's own keys: listed, made, revoked."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from ragsite.keys.forms import KeyForm
from ragsite.keys.issuing import issue_key
from ragsite.models import ApiKey
from retrieval.rights.key_limits import Scope


@never_cache
@login_required
@sensitive_variables("issued")
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    form = KeyForm(request.POST or None, user=request.user)
    issued = None
    if request.method == "POST" and form.is_valid():
        issued = issue_key(
            request.user,
            form.cleaned_data["name"],
            [Scope(scope) for scope in form.cleaned_data["scopes"]],
            collections=form.chosen_collections,
            expires_at=form.expires_at,
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
