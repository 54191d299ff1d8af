from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import SuperuserAdmin, render_badge
from retrieval.models import RegisteredConnector
from retrieval.models.registered_connector import MOST_MANIFEST_CHARACTERS
from retrieval.sources.airbyte.programs import read_manifest_spec
from retrieval.sources.protocol import SourceUnreadable

Kind = RegisteredConnector.Kind


class ConnectorForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    manifest_file = forms.FileField(
        label=_("Manifest as a file"), required=False, help_text=_("Replaces the text of the manifest.")
    )

    class Meta:
        model = RegisteredConnector
        fields = ("name", "kind", "manifest", "package", "version", "is_for_curators")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if file := cleaned.get("manifest_file"):
            cleaned["manifest"] = file.read(4 * MOST_MANIFEST_CHARACTERS).decode("utf-8", "replace")
        if cleaned.get("kind") == Kind.MANIFEST:
            if len(cleaned.get("manifest") or "") > MOST_MANIFEST_CHARACTERS:
                self.add_error("manifest", ValidationError(_t("This manifest is too long.")))
                return cleaned
            try:
                self.instance.spec = read_manifest_spec(cleaned.get("manifest") or "")
            except SourceUnreadable as error:
                self.add_error("manifest", ValidationError(str(error)))
        else:
            for name in ("package", "version"):
                if not cleaned.get(name) and name not in self.errors:
                    self.add_error(name, ValidationError(_t("This field is required.")))
        return cleaned


@admin.register(RegisteredConnector)
class ConnectorAdmin(SuperuserAdmin):
    form = ConnectorForm
    list_display = ("name", "kind", "shown_package", "is_for_curators", "shown_state")
    readonly_fields = ("shown_state", "registered_by", "installed_at")
    fields = (
        *("name", "kind", "manifest", "manifest_file", "package", "version", "is_for_curators"),
        *readonly_fields,
    )

    def get_readonly_fields(self, request: HttpRequest, obj: RegisteredConnector | None = None) -> tuple[str, ...]:
        # The name of a saved connector cannot be changed, because sources and the folder of its environment use it.
        return ("name", *self.readonly_fields) if obj is not None else self.readonly_fields

    @admin.display(description=_("package"))
    def shown_package(self, connector: RegisteredConnector) -> str:
        return connector.package_requirement

    @admin.display(description=_("status"))
    def shown_state(self, connector: RegisteredConnector) -> SafeString:
        state = render_badge(connector.state, connector.get_state_display())
        if connector.is_ready or not connector.name:
            return state
        command = f"manage.py connector install {connector.name}"
        return format_html("{} {} <code>{}</code>", state, connector.error[:500], command)

    def save_model(self, request: HttpRequest, obj: RegisteredConnector, form: Any, change: bool) -> None:
        if not change:
            obj.registered_by = request.user  # type: ignore[assignment]
        elif {"kind", "package", "version"} & {*form.changed_data}:
            obj.state, obj.program = RegisteredConnector.State.ABSENT, ""
        super().save_model(request, obj, form, change)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        self._add_warnings(request)
        return super().changelist_view(request, extra_context)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self._add_warnings(request)
        return super().changeform_view(request, *args, **kwargs)

    def _add_warnings(self, request: HttpRequest) -> None:
        if request.method != "GET":
            return
        if not settings.SOURCE_CONNECTORS:
            said = _t("This site runs no connectors: an administrator of the server sets SOURCE_CONNECTORS.")
            messages.warning(request, said)
        said = _t(
            "A connector is code of others. It reaches any machine that this server reaches, and reads what the site's "
            "account reads: register only those that you trust."
        )
        messages.info(request, said)
