"""Search profiles: their versions are made, tried, published and withdrawn here."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.admin.base import PageAdmin, admin_link, badge, read_override
from retrieval.admin.profile_form import FIELDSETS, IDENTITY, SearchProfileForm, differences
from retrieval.gates import PublicationRefused
from retrieval.models import Collection, Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import ImproperProfile, ProfileSettings
from retrieval.rights import filters_for
from retrieval.search import profiles
from retrieval.search.profile_comparison import compare
from retrieval.search.profiles import BUILT_IN, NamedProfile

# The playground: one question, searched with two profiles. Nothing here changes anything but what is shown.

PUBLISHED = "published"
LARGEST_TOP_K = 50


def profile_choices() -> list[tuple[str, Any]]:
    """The built-in profile, the published one, and every version by its id."""
    versions: dict[str, list[tuple[str, str]]] = {}
    for version in SearchProfileVersion.objects.select_related("profile").order_by("profile__name", "-number"):
        label = f"{version} · {version.note}" if version.note else str(version)
        versions.setdefault(version.profile.name, []).append((str(version.pk), label))
    in_force = profiles.published_version() or BUILT_IN
    return [
        (PUBLISHED, _t("In force: %s") % in_force),
        (BUILT_IN, _t("Built-in: the site's settings")),
        *versions.items(),
    ]


class ProfileChoice(forms.ChoiceField):
    """A choice of the profile to search with: the built-in one, the published one, or any version by its id."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=profile_choices, **kwargs)

    def clean(self, value: Any) -> NamedProfile:
        chosen = super().clean(value)
        if chosen == PUBLISHED:
            return profiles.active_profile()
        if chosen == BUILT_IN:
            return NamedProfile(BUILT_IN, profiles.built_in_profile())
        version = SearchProfileVersion.objects.select_related("profile").filter(pk=chosen).first()
        if version is None:
            raise forms.ValidationError(_t("This version is gone."))
        try:
            return profiles.named(version)
        except ImproperProfile as error:
            message = _t("%(version)s cannot be read: %(error)s") % {"version": version, "error": error}
            raise forms.ValidationError(message) from error


class PlaygroundForm(forms.Form):
    question = forms.CharField(
        label=_("Question"),
        max_length=settings.QUESTION_MAX_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    collection = forms.ModelChoiceField(
        Collection.objects.none(), to_field_name="slug", required=False, empty_label=_("all"), label=_("Collection")
    )
    a = ProfileChoice(label=_("Profile A"))
    b = ProfileChoice(label=_("Profile B"))
    top_k = forms.IntegerField(
        label=_("Passages"),
        required=False,
        min_value=1,
        max_value=LARGEST_TOP_K,
        widget=forms.NumberInput(attrs={"placeholder": _("as the profile says")}),
    )

    def __init__(self, *args: Any, user: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["collection"].queryset = Collection.objects.readable_by(user)  # type: ignore[attr-defined]


def search_twice(request: HttpRequest) -> dict[str, Any]:
    """The page's context: the form and, with a question in the address, both results."""
    asked = "question" in request.GET
    newest = SearchProfileVersion.objects.order_by("-pk").values_list("pk", flat=True).first()
    given = {"a": PUBLISHED, "b": str(newest or BUILT_IN), **request.GET.dict()}
    form = PlaygroundForm(given if asked else None, initial=given, user=request.user)
    page = {"form": form, "asked": asked}
    if asked and form.is_valid():
        wanted = form.cleaned_data
        collection = wanted["collection"].slug if wanted["collection"] else ""
        both = (wanted["a"], wanted["b"])
        page["comparison"] = compare(wanted["question"], filters_for(request.user, collection), both, wanted["top_k"])
        page["differences"] = differences(both[0].settings, both[1].settings)
    return page


@admin.register(SearchProfile)
class SearchProfileAdmin(PageAdmin):
    form = SearchProfileForm
    list_display = ["name", "slug", "state", "newest", "description"]
    search_fields = ["name", "slug", "description"]
    prepopulated_fields = {"slug": ["name"]}
    # The deletion of several at once does not check whether one of them is published.
    actions = None

    def get_fieldsets(self, request: HttpRequest, obj: SearchProfile | None = None) -> list[Any]:
        may_edit = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [(None, {"fields": IDENTITY}), *(FIELDSETS if may_edit else [])]

    def has_delete_permission(self, request: HttpRequest, obj: SearchProfile | None = None) -> bool:
        """Refused while one of its versions is published: answers would change without a publication."""
        if obj is not None and obj.versions.filter(is_published=True).exists():
            return False
        return super().has_delete_permission(request, obj)

    # The list --------------------------------------------------------------------------------------------------------

    @admin.display(description=_("status"))
    def state(self, profile: SearchProfile) -> SafeString | str:
        published = profile.versions.filter(is_published=True).first()
        return badge("ready", _t("v%d in force") % published.number) if published else "-"

    @admin.display(description=_("newest version"))
    def newest(self, profile: SearchProfile) -> str:
        newest = profile.versions.first()
        return f"v{newest.number}" if newest else "-"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**_in_force(), **(extra_context or {})})

    # One profile -----------------------------------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: SearchProfile | None = None, change: bool = False, **kwargs: Any
    ) -> type[SearchProfileForm]:
        form = cast(type[SearchProfileForm], super().get_form(request, obj, change, **kwargs))
        form.starting_point = self._starting_point(request, obj)
        return form

    def _starting_point(self, request: HttpRequest, profile: SearchProfile | None) -> ProfileSettings:
        """The settings of the version in ``?from=``, else of the newest one, or of the published profile."""
        if profile is not None:
            wanted = _wanted_version(request, profile) or profile.versions.first()
            try:
                if wanted is not None:
                    return wanted.read()
            except ImproperProfile:
                return profiles.built_in_profile()  # the list of versions says that this one cannot be read
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
        # The admin capitalises a message's first letter, which must not be that of the short name.
        told = _t("Saved: %s. It takes effect when it is published.") % version
        self.message_user(request, told, messages.SUCCESS)

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        told = super().construct_change_message(request, form, formsets, add)
        version = getattr(form, "saved_version", None)
        return [*told, {"added": {"name": _t("version"), "object": f"v{version.number}"}}] if version else told

    def response_add(
        self, request: HttpRequest, obj: SearchProfile, post_url_continue: str | None = None
    ) -> HttpResponse:
        return redirect("admin:retrieval_searchprofile_change", obj.pk)

    def response_change(self, request: HttpRequest, obj: SearchProfile) -> HttpResponse:
        return redirect("admin:retrieval_searchprofile_change", obj.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        profile = kwargs.get("obj")
        page = {
            **_in_force(),
            "versions": _version_rows(profile) if profile else [],
            "overrides": _overrides(profile) if profile else [],
            "started_from": _wanted_version(request, profile) if profile else None,
            "may_change": self.has_change_permission(request, profile),
        }
        return super().render_change_form(request, {**context, **page}, *args, **kwargs)

    # Versions --------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        playground = self.admin_site.admin_view(self.playground_view)
        change = "retrieval.change_searchprofile"
        publish = self.button_path(
            "versions/<int:version_id>/publish/", self.publish_view, "searchprofile_publish", change
        )
        return [
            path("playground/", playground, name="retrieval_searchprofile_playground"),
            self.button_path("withdraw/", self.withdraw_view, "searchprofile_withdraw", change),
            publish,
            *super().get_urls(),
        ]

    def playground_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        page = {**_in_force(), **search_twice(request), "may_change": self.has_change_permission(request)}
        return self.render_page(request, "searchprofile/playground", _t("Playground"), page)

    def publish_view(self, request: HttpRequest, version_id: int) -> HttpResponse:
        version = get_object_or_404(SearchProfileVersion.objects.select_related("profile"), pk=version_id)
        try:
            publication = profiles.publish(version, request.user, override=read_override(request))
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
            self.message_user(request, _t("In force: %s.") % version, messages.SUCCESS)
        return redirect("admin:retrieval_searchprofile_change", version.profile_id)

    def withdraw_view(self, request: HttpRequest) -> HttpResponse:
        if (withdrawn := profiles.withdraw()) is not None:
            self.log_change(request, withdrawn.profile, _t("Withdrew version %d.") % withdrawn.number)
        self.message_user(request, _t("The built-in profile is in force."), messages.SUCCESS)
        return redirect("admin:retrieval_searchprofile_changelist")


def _in_force() -> dict[str, Any]:
    """The published profile, and whether the site's switch overrules it, for every page about profiles."""
    return {
        "in_force": profiles.active_profile(),
        "published": profiles.published_version(),
        "hybrid_enabled": settings.RETRIEVAL_HYBRID_ENABLED,
    }


def _wanted_version(request: HttpRequest, profile: SearchProfile) -> SearchProfileVersion | None:
    wanted = request.GET.get("from", "")
    if not wanted.isdecimal() or len(wanted) > 9:
        return None
    return profile.versions.filter(number=wanted).first()


def _is_newest(profile: SearchProfile, wanted: ProfileSettings) -> bool:
    newest = profile.versions.first()
    try:
        return newest is not None and newest.read() == wanted
    except ImproperProfile:
        return False


def _version_rows(profile: SearchProfile) -> list[dict[str, Any]]:
    """Each version with its differences from the published one; an unreadable version with the reason."""
    in_force = profiles.active_profile().settings
    rows = []
    for version in profile.versions.select_related("profile", "created_by", "published_by"):
        row: dict[str, Any] = {"version": version}
        try:
            row["differences"] = differences(in_force, version.read())
        except ImproperProfile as error:
            row["error"] = str(error)
        rows.append(row)
    return rows


def _overrides(profile: SearchProfile) -> QuerySet[Publication]:
    """The publications against objections, the newest first."""
    found = Publication.objects.filter(version__profile=profile).exclude(override="")
    return found.select_related("version__profile", "published_by")
