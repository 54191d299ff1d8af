from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.models import Answer, Conversation
from core.admin_base import ReadOnlyAdmin, render_badge
from core.users import is_superuser
from ragsite import site_identity  # noqa: F401  (it registers its page)
from ragsite.accounts.claims import find_local_administrators, is_last_local_administrator
from ragsite.accounts.keys import compute_digest
from ragsite.accounts.people import LastAdministratorError, erase_person, export_person
from ragsite.models import ApiKey, AuditEntry
from ragsite.models.account import Invitation, find_users_by_email
from ragsite.operations.audit_log import json_lines, may_read_object_labels, record_action

logger = logging.getLogger(__name__)


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].strip().lower()
        if find_users_by_email(email):
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
        # An invitation can add a person to groups, so it needs the right to change users.
        if not request.user.has_perm("auth.change_user"):
            kwargs["queryset"] = Group.objects.none()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        token = secrets.token_urlsafe(32)
        obj.token_hash = compute_digest(token)
        obj.created_by = request.user
        super().save_model(request, obj, form, change)
        link = request.build_absolute_uri(reverse("account_invitation", args=[token]))
        if settings.MAIL_IS_SENT:
            text = _t("You are invited to make an account on Ragsite. This link does it, once, until %(date)s:")
            text %= {"date": date_format(obj.expires_at)}
            try:
                send_mail(_t("An invitation to Ragsite"), f"{text}\n\n{link}\n", None, [obj.email])
                self.message_user(request, _t("The link was sent to %(email)s.") % {"email": obj.email})
            except OSError:
                logger.exception("An invitation could not be sent.")
                sentence = _t("The mail could not be sent. Hand over the link yourself.")
                self.message_user(request, sentence, messages.ERROR)
        self.message_user(
            request,
            format_html("{} <code>{}</code>", _t("This link makes the account, once. It is not shown again:"), link),
            messages.WARNING,
        )
        if settings.SIGN_UP == "off" or not settings.LOCAL_PASSWORDS:
            self.message_user(request, _t("The link does not work while SIGN_UP is off."), messages.ERROR)


for model in (SocialApp, SocialToken, EmailAddress, Authenticator, SocialAccount, User):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class _RemovableAdmin(ReadOnlyAdmin):
    """Base class of admin pages on which rows can be viewed without their secrets, and deleted, but not changed."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_above = obj is not None and obj.user.is_superuser and not is_superuser(request.user)
        return admin.ModelAdmin.has_delete_permission(self, request, obj) and not is_above


@admin.register(Authenticator)
class AuthenticatorAdmin(_RemovableAdmin):
    """The admin of second factors. Staff delete one if its owner has lost the phone."""

    list_display = ["user", "type", "created_at", "last_used_at"]
    fields = ["user", "type", "created_at", "last_used_at"]


@admin.register(SocialAccount)
class SocialAccountAdmin(_RemovableAdmin):
    list_display = ["user", "provider", "uid", "last_login", "date_joined"]
    fields = ["user", "provider", "uid", "last_login", "date_joined"]
    search_fields = ["uid", "user__username", "user__email"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """The admin of API keys. They can be viewed and revoked; the command `create_key` creates keys for programs."""

    list_display = ["name", "user", "public_id", "state", "scope_list", "last_used_at", "expires_at", "created_at"]
    list_filter = ["created_at", "last_used_at", "expires_at", "revoked_at"]
    list_select_related = ["user"]
    search_fields = ["name", "public_id", "user__username"]
    fields = [
        *("user", "name", "scopes", "is_limited", "collections", "source", "expires_at", "rate", "lists_sources"),
        *("public_id", "state", "created_at", "last_used_at", "revoked_at"),
    ]
    actions = ["revoke"]

    @admin.action(description=_("Revoke the chosen keys"), permissions=["act"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        for key in keys:
            key.revoke()
        self.message_user(request, _t("The keys are refused from now on."))

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> SafeString:
        if key.revoked_at is not None:
            return render_badge("failed", _t("revoked"))
        return render_badge("failed", _t("expired")) if key.is_expired else render_badge("ready", _t("in use"))

    @admin.display(description=_("scopes"))
    def scope_list(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)


def _get_last_administrator_message() -> str:
    return _t("This is the last administrator who can sign in with a password. Make another one first.")


class AccountForm(UserChangeForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or self.cleaned_data
        is_administrator = all(cleaned.get(name, True) for name in ("is_active", "is_staff", "is_superuser"))
        if not is_administrator and is_last_local_administrator(self.instance):
            raise ValidationError(_get_last_administrator_message())
        return cleaned


class AccountPasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or self.cleaned_data
        if cleaned.get("set_usable_password") is False and is_last_local_administrator(self.user):
            raise ValidationError(_get_last_administrator_message())
        return cleaned


@admin.register(User)
class AccountAdmin(UserAdmin):  # type: ignore[type-arg]
    """The admin of users. Only superusers may change superusers, and export or erase a person's data."""

    actions = ["export_person", "erase_person"]
    form = AccountForm
    change_password_form = AccountPasswordForm

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        fields = list(super().get_readonly_fields(request, obj))
        return fields if is_superuser(request.user) else [*fields, "is_superuser", "user_permissions"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_change_or_delete(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_change_or_delete(request, obj)

    def get_deleted_objects(
        self, objs: QuerySet[User] | Sequence[User], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Return the accounts to delete, and counts of their conversations and answers.

        Questions are not listed, because the user may lack the right to read them.
        """
        users = list(objs)
        counts = {
            str(User._meta.verbose_name_plural): len(users),
            str(Conversation._meta.verbose_name_plural): Conversation.objects.filter(owner__in=users).count(),
            str(Answer._meta.verbose_name_plural): Answer.objects.filter(conversation__owner__in=users).count(),
        }
        may = all(self.has_delete_permission(request, user) for user in users)
        missing = set() if may else {str(User._meta.verbose_name)}
        keys = [user.pk for user in users]
        administrators = find_local_administrators()
        is_last = administrators.filter(pk__in=keys).exists() and not administrators.exclude(pk__in=keys).exists()
        return [str(user) for user in users], counts, missing, [_get_last_administrator_message()] if is_last else []

    def has_superuser_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @admin.action(description=_("Export the person's data (JSON)"), permissions=["superuser"])
    def export_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._get_one(request, users)
        return None if user is None else export_person(user, f"person-{user.pk}.json")

    @admin.action(description=_("Erase the person and their data"), permissions=["superuser"])
    def erase_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._get_one(request, users)
        if user is None:
            return None
        if user.pk == request.user.pk:
            self.message_user(request, _t("Erase your own account on its own page."), messages.ERROR)
            return None
        if not request.POST.get("confirmed"):
            context = {
                **self.admin_site.each_context(request),
                "title": _t("Erase the person and their data"),
                "opts": self.opts,
                "person": user,
            }
            return TemplateResponse(request, "admin/ragsite/erase_person.html", context)
        try:
            erase_person(user)
        except LastAdministratorError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, _t("The person is erased."))
        return None

    def _get_one(self, request: HttpRequest, users: QuerySet[User]) -> User | None:
        chosen = list(users[:2])
        if len(chosen) == 1:
            return chosen[0]
        self.message_user(request, _t("Choose one person."), messages.ERROR)
        return None


def _may_change_or_delete(request: HttpRequest, user: User | None) -> bool:
    return user is None or not user.is_superuser or is_superuser(request.user)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "action", "actor", "object_label", "object_person", "key", "via", "address"]
    list_filter = ["at", "action", "via"]
    list_select_related = ["actor", "object_person"]
    list_per_page = 100
    date_hierarchy = "at"
    search_fields = ["=action", "actor__name", "object_person__name", "object_label", "=object_id", "=key", "=address"]
    search_help_text = _("An action such as document.deleted, a person, an object, a key, or an address.")
    actions = ["export"]

    def get_list_display(self, request: HttpRequest) -> Any:
        is_open = may_read_object_labels(request.user)
        return [name if is_open or name != "object_label" else "object_id" for name in self.list_display]

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [name for name in self.search_fields if name != "object_label" or may_read_object_labels(request.user)]

    def get_fields(self, request: HttpRequest, obj: AuditEntry | None = None) -> Any:
        hidden = () if may_read_object_labels(request.user) else ("object_label", "details")
        return [name for name in super().get_fields(request, obj) if name not in hidden]

    @admin.action(description=_("Export the chosen entries as JSON lines"), permissions=["view"])
    def export(self, request: HttpRequest, entries: QuerySet[AuditEntry]) -> HttpResponse:
        lines = "".join(json_lines(entries, with_labels=may_read_object_labels(request.user)))
        record_action("audit.exported", entries=lines.count("\n"))
        attachment = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
        return HttpResponse(lines, content_type="application/x-ndjson", headers=attachment)
