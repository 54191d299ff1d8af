from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ragsite.models import ApiKey
from retrieval.admin.base import ReadOnlyAdmin, badge


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys of everybody, to look at and to revoke. People make their own, and `create_key` makes those of programs."""

    list_display = ["name", "user", "public_id", "state", "scope_list", "last_used_at", "expires_at", "created_at"]
    list_filter = ["created_at", "last_used_at", "expires_at", "revoked_at"]
    list_select_related = ["user"]
    search_fields = ["name", "public_id", "user__username"]
    fields = [
        *("user", "name", "scopes", "is_limited", "collections", "expires_at", "rate"),
        *("public_id", "state", "created_at", "last_used_at", "revoked_at"),
    ]
    actions = ["revoke"]

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("ragsite.change_apikey")

    @admin.action(description=_("Revoke the chosen keys"), permissions=["revoke"])
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
