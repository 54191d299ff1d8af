from __future__ import annotations

import json
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

from core.admin_base import admin_link, badge
from core.dataclass_json import to_json
from core.user_types import AnyUser
from retrieval.admin.gated import GatedAdmin, read_override
from retrieval.fusion_methods import METHODS
from retrieval.gates import PublicationRefused
from retrieval.models import Collection, Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import (
    NO_RERANKER,
    SECTIONS,
    SETTINGS,
    TYPES,
    ImproperProfile,
    ProfileSettings,
    from_json,
)
from retrieval.rights.search_filters import filters_for
from retrieval.search.metadata_filters import validated_metadata
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profile_comparison import compare
from retrieval.search.profiles.profiles import BUILT_IN, NamedProfile
from retrieval.types import QueryClass, RetrieverWeights

EXAMPLES = {
    "weights": '{"vector": 0.6, "lexical": 0.4}',
    "metadata_boosts": '[{"key": "department", "value": "sales", "weight": 0.5}]',
}


class StructureField(forms.JSONField):
    """A setting of several values, typed as the JSON in which profiles are stored."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        given = super().clean(value)
        validated_metadata({"": given})
        return given


def setting_field(name: str) -> forms.Field:
    setting = SETTINGS[name]
    options: dict[str, Any] = {"label": _(setting.label), "help_text": _(setting.help_text)}
    if setting.bounds is not None:
        options["min_value"], options["max_value"] = setting.bounds
    match TYPES[name]:
        case "bool":
            return forms.BooleanField(required=False, **options)
        case "int":
            return forms.IntegerField(**options)
        case "float":
            widget = forms.NumberInput(attrs={"step": "any"})
            return forms.FloatField(widget=widget, required=not setting.when_empty, **options)
        case "SearchMethod" | "str":
            return forms.ChoiceField(**options)
    attrs = {"rows": 4 if name == "class_weights" else 2, "cols": 60, "placeholder": EXAMPLES.get(name, "")}
    return StructureField(required=False, widget=forms.Textarea(attrs=attrs), **options)


IDENTITY = ["name", "slug", "description"]
FIELDSETS: list[tuple[Any, dict[str, Any]]] = [
    *(
        (
            _(section),
            {"fields": [name for name, each in SETTINGS.items() if each.section == section], "description": _(about)},
        )
        for section, about in SECTIONS.items()
    ),
    (_("This version"), {"fields": ["note"]}),
]


class SearchProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A profile and its next version; a valid form has ``profile_settings``, which begin as ``starting_point``."""

    starting_point = ProfileSettings()

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=_("What this version tries, or why it is better. It is shown in the list of versions."),
    )

    class Meta:
        model = SearchProfile
        fields = IDENTITY
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {**to_json(self.starting_point), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self.profile_settings: ProfileSettings | None = None
        if "reranker" in self.fields:
            # A version's saved reranker stays a choice, so that the user sees when it no longer exists.
            names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, self.starting_point.reranker])
            self.fields["reranker"].choices = [(name, _reranker_label(name)) for name in names]  # type: ignore[attr-defined]
            self.fields["method"].choices = [(method.value, _(each.label)) for method, each in METHODS.items()]  # type: ignore[attr-defined]

    def clean_reranker(self) -> str:
        name: str = self.cleaned_data["reranker"]
        if name not in [NO_RERANKER, *settings.RERANKERS]:
            raise forms.ValidationError(_t("The site no longer has a reranker of this name."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in SETTINGS if name in self.fields]
        if not names or any(name in self.errors for name in names):
            return cleaned
        # An empty field gets its default, unless None has a meaning.
        given = {name: cleaned[name] for name in names if cleaned[name] is not None or SETTINGS[name].when_empty}
        try:
            self.profile_settings = from_json(given)
        except ImproperProfile as error:
            for name, message in error.errors.items():
                self.add_error(name, f"This {message}.")
        return cleaned


# Django's metaclass needs form fields as class attributes; these come from the declared settings.
for _name in SETTINGS:
    SearchProfileForm.declared_fields[_name] = SearchProfileForm.base_fields[_name] = setting_field(_name)


def differences(before: ProfileSettings, after: ProfileSettings) -> list[tuple[str, str, str]]:
    """Return the settings that differ with both values, in the form's words."""
    rows = []
    for name, setting in SETTINGS.items():
        old, new, label = getattr(before, name), getattr(after, name), _t(setting.label)
        if name == "class_weights":
            changed = [each for each in QueryClass if old[each] != new[each]]
            rows += [
                (f"{label}: {each}", _write_value(name, old[each]), _write_value(name, new[each])) for each in changed
            ]
        elif old != new:
            rows.append((label, _write_value(name, old), _write_value(name, new)))
    return rows


def _write_value(name: str, value: Any) -> str:
    match value:
        case None:
            return _t(SETTINGS[name].when_empty)
        case bool():
            return _t("yes") if value else _t("no")
        case float():
            return f"{value:g}"
        case RetrieverWeights() | tuple():
            return json.dumps(to_json(value), ensure_ascii=False)
    return str(value)


def _reranker_label(name: str) -> str:
    if name == NO_RERANKER:
        return _t("none: the order of the fusion is kept")
    return name if name in settings.RERANKERS else _t("%s (removed)") % name


# The playground searches one question with two profiles, and changes no data.

PUBLISHED = "published"
LARGEST_TOP_K = 50


def profile_choices() -> list[tuple[str, Any]]:
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

    def __init__(self, *args: Any, user: AnyUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["collection"].queryset = Collection.objects.readable_by(user)  # type: ignore[attr-defined]


def search_twice(request: HttpRequest) -> dict[str, Any]:
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
class SearchProfileAdmin(GatedAdmin):
    form = SearchProfileForm
    list_display = ["name", "slug", "state", "newest", "description"]
    search_fields = ["name", "slug", "description"]
    prepopulated_fields = {"slug": ["name"]}
    # Deleting several at once would not check whether one of them is published.
    actions = None

    def get_fieldsets(self, request: HttpRequest, obj: SearchProfile | None = None) -> list[Any]:
        may_edit = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [(None, {"fields": IDENTITY}), *(FIELDSETS if may_edit else [])]

    def has_delete_permission(self, request: HttpRequest, obj: SearchProfile | None = None) -> bool:
        """Refuse it while a version is published: answers would change without a publication."""
        if obj is not None and obj.versions.filter(is_published=True).exists():
            return False
        return super().has_delete_permission(request, obj)

    @admin.display(description=_("status"))
    def state(self, profile: SearchProfile) -> SafeString | str:
        published = profile.versions.filter(is_published=True).first()
        return badge("ready", _t("v%d in force") % published.number) if published else "-"

    @admin.display(description=_("newest version"))
    def newest(self, profile: SearchProfile) -> str:
        newest = profile.versions.first()
        return f"v{newest.number}" if newest else "-"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**_read_published(), **(extra_context or {})})

    def get_form(
        self, request: HttpRequest, obj: SearchProfile | None = None, change: bool = False, **kwargs: Any
    ) -> type[SearchProfileForm]:
        form = cast(type[SearchProfileForm], super().get_form(request, obj, change, **kwargs))
        form.starting_point = self._choose_starting_point(request, obj)
        return form

    def _choose_starting_point(self, request: HttpRequest, profile: SearchProfile | None) -> ProfileSettings:
        """Return the settings of ``?from=``, else of the newest version, else of the published profile."""
        if profile is not None:
            wanted = _wanted_version(request, profile) or profile.versions.first()
            try:
                if wanted is not None:
                    return wanted.read()
            except ImproperProfile:
                return profiles.built_in_profile()  # the list of versions reports that this one is unreadable
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
        # The admin capitalises a message's first letter, but the short name must not change.
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
            **_read_published(),
            "versions": _build_version_rows(profile) if profile else [],
            "overrides": _list_overrides(profile) if profile else [],
            "started_from": _wanted_version(request, profile) if profile else None,
            "may_change": self.has_change_permission(request, profile),
        }
        return super().render_change_form(request, {**context, **page}, *args, **kwargs)

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
        page = {**_read_published(), **search_twice(request), "may_change": self.has_change_permission(request)}
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


def _read_published() -> dict[str, Any]:
    """Return the published profile, and whether the site's switch overrules it."""
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


def _build_version_rows(profile: SearchProfile) -> list[dict[str, Any]]:
    """Return each version with its differences from the published one, or why it is unreadable."""
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


def _list_overrides(profile: SearchProfile) -> QuerySet[Publication]:
    found = Publication.objects.filter(version__profile=profile).exclude(override="")
    return found.select_related("version__profile", "published_by")
