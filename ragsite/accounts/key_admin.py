from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ragsite.accounts.keys import give_secret
from ragsite.models import ApiKey
from ragsite.models.api_key import SCOPE_LABELS
from retrieval.admin.base import PageAdmin, badge
from retrieval.models import Collection


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    scopes = forms.MultipleChoiceField(
        label=_("scopes"), choices=list(SCOPE_LABELS.items()), widget=forms.CheckboxSelectMultiple
    )

    class Meta:
        model = ApiKey
        fields = ["user", "name", "scopes", "is_limited", "collections", "expires_at", "rate"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("collections") and not cleaned.get("is_limited"):
            self.add_error("is_limited", _t("Choose this too, or no collections: the key would reach all of them."))
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(PageAdmin):
    """Keys of everybody. Only superusers make or widen keys of others: they act with the rights of those."""

    form = ApiKeyForm
    list_display = ["name", "user", "public_id", "state", "scope_list", "last_used_at", "expires_at", "created_at"]
    list_filter = ["created_at", "last_used_at", "expires_at", "revoked_at"]
    list_select_related = ["user"]
    search_fields = ["name", "public_id", "user__username"]
    filter_horizontal = ["collections"]
    readonly_fields = ["public_id", "state", "created_at", "last_used_at", "revoked_at"]
    actions = ["revoke"]

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        shown = list(self.readonly_fields) if obj else []
        return [*ApiKeyForm.Meta.fields, *(str(name) for name in shown)]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        fields = [str(name) for name in self.readonly_fields]
        if obj is None:
            return fields
        is_theirs = request.user.is_superuser or obj.user_id == request.user.pk
        return ["user", *fields] if is_theirs else [*ApiKeyForm.Meta.fields, *fields]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user" and not request.user.is_superuser:
            users = db_field.remote_field.model._default_manager.filter(pk=request.user.pk)
            kwargs["queryset"] = users
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "collections":
            kwargs["queryset"] = Collection.objects.readable_by(request.user).in_service()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if not change:
            request.new_secret = give_secret(obj)  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        # Shown in this response alone: a message would keep the key in a cookie.
        page = {"key": obj, "secret": request.new_secret}  # type: ignore[attr-defined]
        return self.render_page(request, "apikey/made", _t("The key is made"), page)

    @admin.action(description=_("Revoke the chosen keys"), permissions=["change"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        for key in keys:
            key.revoke()
        self.message_user(request, _t("The keys are refused from now on."))

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> SafeString:
        if key.revoked_at is not None:
            return badge("failed", _t("revoked"))
        return badge("failed", _t("expired")) if key.is_expired else badge("ready", _t("in use"))

    @admin.display(description=_("scopes"))
    def scope_list(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)
