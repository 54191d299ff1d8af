"""Users and groups in the admin: accounts, roles, and what an administrator does with a person's data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.models import Answer, Conversation
from ragsite.accounts.claims import is_last_local_administrator, local_administrators
from ragsite.accounts.people import LastAdministrator, erase_person, person_file
from retrieval.models.collection import is_superuser


def _last_administrator() -> str:
    return _("This is the last administrator who can sign in with a password. Make another one first.")


class AccountForm(UserChangeForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        is_administrator = all(cleaned.get(name, True) for name in ("is_active", "is_staff", "is_superuser"))
        # The form has put nothing into the row yet.
        if not is_administrator and is_last_local_administrator(self.instance):
            raise ValidationError(_last_administrator())
        return cleaned


class AccountPasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("set_usable_password") is False and is_last_local_administrator(self.user):
            raise forms.ValidationError(_last_administrator())
        return cleaned


class AccountAdmin(UserAdmin):  # type: ignore[type-arg]
    """Only superusers change or make superusers, and export or erase a person's data."""

    actions = ["export_person", "erase_person"]
    form = AccountForm
    change_password_form = AccountPasswordForm

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        fields = list(super().get_readonly_fields(request, obj))
        return fields if is_superuser(request.user) else [*fields, "is_superuser", "user_permissions"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_act_on(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_act_on(request, obj)

    def get_deleted_objects(
        self, objs: QuerySet[User] | Sequence[User], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """The numbers of objects to be deleted, without their texts: not everybody who may delete an account may read
        its questions.
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
        administrators = local_administrators()
        is_last = administrators.filter(pk__in=keys).exists() and not administrators.exclude(pk__in=keys).exists()
        return [str(user) for user in users], counts, missing, [_last_administrator()] if is_last else []

    def has_superuser_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @admin.action(description=gettext_lazy("Export the person's data (JSON)"), permissions=["superuser"])
    def export_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._one(request, users)
        if user is None:
            return None
        return person_file(user, f"person-{user.pk}.json")

    @admin.action(description=gettext_lazy("Erase the person and their data"), permissions=["superuser"])
    def erase_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._one(request, users)
        if user is None:
            return None
        if user.pk == request.user.pk:
            self.message_user(request, _("Erase your own account on its own page."), messages.ERROR)
            return None
        if not request.POST.get("confirmed"):
            context = {
                **self.admin_site.each_context(request),
                "title": _("Erase the person and their data"),
                "opts": self.opts,
                "person": user,
            }
            return TemplateResponse(request, "admin/ragsite/erase_person.html", context)
        try:
            erase_person(user)
        except LastAdministrator as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, _("The person is erased."))
        return None

    def _one(self, request: HttpRequest, users: QuerySet[User]) -> User | None:
        chosen = list(users[:2])
        if len(chosen) == 1:
            return chosen[0]
        self.message_user(request, _("Choose one person."), messages.ERROR)
        return None


def _may_act_on(request: HttpRequest, user: User | None) -> bool:
    return user is None or not user.is_superuser or is_superuser(request.user)


if admin.site.is_registered(User):
    admin.site.unregister(User)
admin.site.register(User, AccountAdmin)
