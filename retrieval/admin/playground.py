"""A page to search one question with two profiles, without changing data."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.user_types import AnyUser
from retrieval.admin.profile_differences import describe_differences
from retrieval.curl_command import build_curl_command
from retrieval.models import Collection, SearchProfileVersion
from retrieval.profile_settings import (
    ImproperProfile,
)
from retrieval.rights.search_filters import build_filters
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profile_comparison import compare_profiles
from retrieval.search.profiles.profiles import BUILT_IN, NamedProfile

PUBLISHED = "published"


LARGEST_TOP_K = 50


def build_profile_choices() -> list[tuple[str, Any]]:
    versions: dict[str, list[tuple[str, str]]] = {}
    for version in SearchProfileVersion.objects.select_related("profile").order_by("profile__name", "-number"):
        label = f"{version} · {version.note}" if version.note else str(version)
        versions.setdefault(version.profile.name, []).append((str(version.pk), label))
    in_force = profiles.find_published_version() or BUILT_IN
    return [
        (PUBLISHED, _t("In use: %s") % in_force),
        (BUILT_IN, _t("Built-in: the site's settings")),
        *versions.items(),
    ]


class ProfileChoice(forms.ChoiceField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=build_profile_choices, **kwargs)

    def clean(self, value: Any) -> NamedProfile:
        chosen = super().clean(value)
        if chosen == PUBLISHED:
            return profiles.active_profile()
        if chosen == BUILT_IN:
            return NamedProfile(BUILT_IN, profiles.get_built_in_profile())
        version = SearchProfileVersion.objects.select_related("profile").filter(pk=chosen).first()
        if version is None:
            raise forms.ValidationError(_t("This version is gone."))
        try:
            return profiles.build_named_profile(version)
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


def _read_answer_id(given: str) -> str:
    try:
        return str(uuid.UUID(given))
    except ValueError:
        return ""


def build_playground_context(request: HttpRequest) -> dict[str, object]:
    asked = "question" in request.GET
    newest = SearchProfileVersion.objects.order_by("-pk").values_list("pk", flat=True).first()
    given = {"a": PUBLISHED, "b": str(newest or BUILT_IN), **request.GET.dict()}
    form = PlaygroundForm(given if asked else None, initial=given, user=request.user)
    page = {"form": form, "asked": asked, "answer": _read_answer_id(request.GET.get("answer", ""))}
    if asked and form.is_valid():
        wanted = form.cleaned_data
        collection = wanted["collection"].slug if wanted["collection"] else ""
        both = (wanted["a"], wanted["b"])
        page["comparison"] = compare_profiles(
            wanted["question"], build_filters(request.user, collection), both, wanted["top_k"]
        )
        page["curl"] = build_curl_command(request, wanted["question"], collection=collection, top_k=wanted["top_k"])
        page["differences"] = describe_differences(both[0].settings, both[1].settings)
    return page
