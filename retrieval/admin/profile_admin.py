from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import admin_link, redirect_to, render_badge
from retrieval.admin.gated import GatedAdmin, read_override_reason
from retrieval.admin.playground import build_playground_context
from retrieval.admin.profile_differences import describe_differences
from retrieval.admin.profile_forms import FIELDSETS, IDENTITY, SearchProfileForm, build_setting_field
from retrieval.gates import PublicationRefused
from retrieval.models import Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import (
    SETTINGS,
    ImproperProfile,
    ProfileSettings,
)
from retrieval.search.profiles import profiles

# A form's metaclass only collects fields that are attributes of the class. These fields are made from SETTINGS, so they
# are added to the form here.
for _name in SETTINGS:
    SearchProfileForm.declared_fields[_name] = SearchProfileForm.base_fields[_name] = build_setting_field(_name)


@admin.register(SearchProfile)
class SearchProfileAdmin(GatedAdmin):
    form = SearchProfileForm
    list_display = ["name", "slug", "state", "show_newest_version", "description"]
    search_fields = ["name", "slug", "description"]
    prepopulated_fields = {"slug": ["name"]}
    # The action "delete selected" would not check whether a version is published.
    actions = None

    def get_fieldsets(self, request: HttpRequest, obj: SearchProfile | None = None) -> list[Any]:
        may_edit = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [(None, {"fields": IDENTITY}), *(FIELDSETS if may_edit else [])]

    def has_delete_permission(self, request: HttpRequest, obj: SearchProfile | None = None) -> bool:
        if obj is not None and obj.versions.filter(is_published=True).exists():
            return False
        return super().has_delete_permission(request, obj)

    @admin.display(description=_("status"))
    def state(self, profile: SearchProfile) -> SafeString | str:
        published = profile.versions.filter(is_published=True).first()
        return render_badge("ready", _t("v%d in use") % published.number) if published else "-"

    @admin.display(description=_("newest version"))
    def show_newest_version(self, profile: SearchProfile) -> str:
        newest = profile.versions.first()
        return f"v{newest.number}" if newest else "-"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**_build_published_context(), **(extra_context or {})})

    def get_form(
        self, request: HttpRequest, obj: SearchProfile | None = None, change: bool = False, **kwargs: Any
    ) -> type[SearchProfileForm]:
        form = cast(type[SearchProfileForm], super().get_form(request, obj, change, **kwargs))
        form.starting_point = self._choose_starting_point(request, obj)
        return form

    def _choose_starting_point(self, request: HttpRequest, profile: SearchProfile | None) -> ProfileSettings:
        if profile is not None:
            wanted = _find_wanted_version(request, profile) or profile.versions.first()
            try:
                if wanted is not None:
                    return wanted.read_settings()
            except ImproperProfile:
                return profiles.get_built_in_profile()
        return profiles.active_profile().settings

    def save_model(self, request: HttpRequest, obj: SearchProfile, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        wanted = getattr(form, "profile_settings", None)
        if wanted is None or (change and _is_newest(obj, wanted)):
            told = _t("No setting differs from the newest version, so there is no new one.")
            self.message_user(request, told, messages.INFO)
            return
        version = profiles.add_version(obj, wanted, note=form.cleaned_data["note"], created_by=request.user)
        form.saved_version = version  # type: ignore[attr-defined]  # for the log entry of this request
        # The admin capitalises the first letter of a message, so the message does not begin with a name.
        told = _t("Saved: %s. It takes effect when it is published.") % version
        self.tell_done(request, told)

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        told = super().construct_change_message(request, form, formsets, add)
        version = getattr(form, "saved_version", None)
        return [*told, {"added": {"name": _t("version"), "object": f"v{version.number}"}}] if version else told

    def response_add(
        self, request: HttpRequest, obj: SearchProfile, post_url_continue: str | None = None
    ) -> HttpResponse:
        return redirect_to(obj)

    def response_change(self, request: HttpRequest, obj: SearchProfile) -> HttpResponse:
        return redirect_to(obj)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        profile = kwargs.get("obj")
        page = {
            **_build_published_context(),
            "versions": _build_version_rows(profile) if profile else [],
            "overrides": _list_overrides(profile) if profile else [],
            "started_from": _find_wanted_version(request, profile) if profile else None,
            "may_change": self.has_change_permission(request, profile),
        }
        return super().render_change_form(request, {**context, **page}, *args, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        playground = self.admin_site.admin_view(self.playground_view)
        change = "retrieval.change_searchprofile"
        publish = self.build_button_path(
            "versions/<int:version_id>/publish/", self.publish_view, "searchprofile_publish", change
        )
        return [
            path("playground/", playground, name="retrieval_searchprofile_playground"),
            self.build_button_path("withdraw/", self.withdraw_view, "searchprofile_withdraw", change),
            publish,
            *super().get_urls(),
        ]

    def playground_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        page = {
            **_build_published_context(),
            **build_playground_context(request),
            "may_change": self.has_change_permission(request),
        }
        return self.render_page(request, "searchprofile/playground", _t("Playground"), page)

    def publish_view(self, request: HttpRequest, version_id: int) -> HttpResponse:
        version = get_object_or_404(SearchProfileVersion.objects.select_related("profile"), pk=version_id)
        try:
            publication = profiles.publish_profile(version, request.user, override=read_override_reason(request))
        except ImproperProfile as error:
            told = _t("Not published: %(version)s. %(error)s") % {"version": version, "error": error}
            self.message_user(request, told, messages.ERROR)
        except PublicationRefused as refusal:
            return self.render_refusal(
                request,
                refusal,
                subject=version,
                of=admin_link(version.profile),
                kept=_t("The reason is kept with your name and the objections, and shown in the profile's history."),
            )
        else:
            told = _t("Published version %d.") % version.number
            if publication.override:
                told = _t("Published version %(number)d against objections, because: %(reason)s") % {
                    "number": version.number,
                    "reason": publication.override,
                }
            self.log_change(request, version.profile, told)
            self.tell_done(request, _t("In use: %s.") % version)
        return redirect_to(version.profile)

    def withdraw_view(self, request: HttpRequest) -> HttpResponse:
        if (withdrawn := profiles.withdraw_published_profile()) is not None:
            self.log_change(request, withdrawn.profile, _t("Withdrew version %d.") % withdrawn.number)
        self.tell_done(request, _t("The built-in profile is in use."))
        return redirect_to(SearchProfile)


def _build_published_context() -> dict[str, object]:
    return {
        "in_force": profiles.active_profile(),
        "published": profiles.find_published_version(),
        "hybrid_enabled": settings.RETRIEVAL_HYBRID_ENABLED,
    }


def _find_wanted_version(request: HttpRequest, profile: SearchProfile) -> SearchProfileVersion | None:
    wanted = request.GET.get("from", "")
    if not wanted.isdecimal() or len(wanted) > 9:
        return None
    return profile.versions.filter(number=wanted).first()


def _is_newest(profile: SearchProfile, wanted: ProfileSettings) -> bool:
    newest = profile.versions.first()
    try:
        return newest is not None and newest.read_settings() == wanted
    except ImproperProfile:
        return False


def _build_version_rows(profile: SearchProfile) -> list[dict[str, object]]:
    in_force = profiles.active_profile().settings
    rows = []
    for version in profile.versions.select_related("profile", "created_by", "published_by"):
        row: dict[str, object] = {"version": version}
        try:
            row["differences"] = describe_differences(in_force, version.read_settings())
        except ImproperProfile as error:
            row["error"] = str(error)
        rows.append(row)
    return rows


def _list_overrides(profile: SearchProfile) -> QuerySet[Publication]:
    found = Publication.objects.filter(version__profile=profile).exclude(override="")
    return found.select_related("version__profile", "published_by")
