"""The admin, closed to staff without a second factor where STAFF_REQUIRES_MFA asks for one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from ragsite import local_model
from ragsite.sign_in.backend import is_missing


class AccountsAdminSite(AdminSite):
    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and not is_missing(request.user)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        if settings.LOCAL_MODEL and not local_model.is_ready():
            messages.warning(
                request,
                _("The local language model does not run; answers are quoted from the documents."),
            )
        return super().index(request, extra_context)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if super().has_permission(request) and is_missing(request.user):
            messages.warning(request, _("Set up a second factor first: this site asks it of everybody on its staff."))
            return redirect("mfa_index")
        return super().login(request, extra_context)
