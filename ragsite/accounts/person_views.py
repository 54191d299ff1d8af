"""The pages on which people export and erase their own data."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from ragsite.accounts.people import LastAdministrator, erase_person, person_file


class EraseForm(forms.Form):
    """The account's name must be typed, to prevent erasing by mistake."""

    name = forms.CharField(label=_("Your account's name, to confirm"))

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
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
def data(request: HttpRequest) -> HttpResponse:
    """What is kept, and the form that erases it."""
    assert request.user.is_authenticated
    form = EraseForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        person = get_user_model()._default_manager.get(pk=request.user.pk)
        try:
            erase_person(person)
        except LastAdministrator as error:
            form.add_error(None, str(error))
        else:
            request.session.flush()
            return render(request, "account/erased.html")
    return render(request, "account/data.html", {"form": form})


@never_cache
@login_required
@require_GET
def export(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    return person_file(request.user, "my-data.json")
