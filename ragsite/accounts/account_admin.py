"""Invitations, and admin pages for allauth's tables."""

from __future__ import annotations

import logging
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ragsite.accounts import invitations
from ragsite.models.account import Invitation, users_with
from retrieval.admin.base import ReadOnlyAdmin
from retrieval.models.collection import is_superuser

logger = logging.getLogger(__name__)


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].strip().lower()
        if users_with(email):
            raise ValidationError(_t("There is an account with this address."))
        return email


@admin.register(Invitation)
class InvitationAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = InvitationForm
    fields = ["email", "groups", "expires_at"]
    filter_horizontal = ["groups"]
    list_display = ["email", "state", "created_by", "created_at", "expires_at", "accepted_by"]
    search_fields = ["email"]

    @admin.display(description=_("state"))
    def state(self, invitation: Invitation) -> str:
        if invitation.accepted_at:
            return _t("accepted")
        return _t("expired") if invitation.expires_at <= timezone.now() else _t("open")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        # Groups carry rights: who may not give them to an account may not give them with an invitation.
        if not request.user.has_perm("auth.change_user"):
            kwargs["queryset"] = Group.objects.none()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        token, obj.token_hash = invitations.new_token()
        obj.created_by = request.user
        super().save_model(request, obj, form, change)
        link = request.build_absolute_uri(reverse("account_invitation", args=[token]))
        if settings.MAIL_IS_SENT:
            text = _t("You are invited to make an account on Ragsite. This link does it, once, until %(date)s:")
            text %= {"date": date_format(obj.expires_at)}
            try:
                send_mail(_t("An invitation to Ragsite"), f"{text}\n\n{link}\n", None, [obj.email])
            except OSError:
                logger.exception("An invitation could not be sent.")
                self.message_user(
                    request, _t("The mail could not be sent. Hand over the link yourself."), messages.ERROR
                )
            else:
                self.message_user(request, _t("The link was sent to %(email)s.") % {"email": obj.email})
        self.message_user(
            request,
            format_html("{} <code>{}</code>", _t("This link makes the account, once. It is not shown again:"), link),
            messages.WARNING,
        )
        if settings.SIGN_UP == "off" or not settings.LOCAL_PASSWORDS:
            self.message_user(request, _t("The link does not work while SIGN_UP is off."), messages.ERROR)


# Providers are set in the environment, tokens are not kept, and an account's address stands in the account.
for model in (SocialApp, SocialToken, EmailAddress, Authenticator, SocialAccount):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class _RemovableAdmin(ReadOnlyAdmin):
    """Rows that an administrator can view, without their secrets, and delete."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_above = obj is not None and obj.user.is_superuser and not is_superuser(request.user)
        return admin.ModelAdmin.has_delete_permission(self, request, obj) and not is_above


@admin.register(Authenticator)
class AuthenticatorAdmin(_RemovableAdmin):
    """Second factors. Deleting one lets a person who lost a phone sign in again."""

    list_display = ["user", "type", "created_at", "last_used_at"]
    fields = ["user", "type", "created_at", "last_used_at"]


@admin.register(SocialAccount)
class SocialAccountAdmin(_RemovableAdmin):
    list_display = ["user", "provider", "uid", "last_login", "date_joined"]
    fields = ["user", "provider", "uid", "last_login", "date_joined"]
    search_fields = ["uid", "user__username", "user__email"]
