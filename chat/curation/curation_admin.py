from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.answering.approved_answers import find_quote_offset
from chat.answering.checking.citations import find_markers
from chat.answering.checking.words import find_stems_of_texts, split_words
from chat.answering.results import find_snippet
from chat.curation import approval
from chat.debugging.candidates import highlight_snippet
from chat.models import ApprovedAnswer
from chat.pages.cards import describe_place
from chat.pages.plain_text import convert_to_plain_text
from core.admin_base import FixedChoicesFilter, render_badge
from core.exceptions import RagsiteError
from core.user_types import AnyUser
from retrieval.admin.curated import CollectionFilter, CuratedRowsAdmin
from retrieval.models import Chunk, Collection
from retrieval.passage_address import build_passage_url
from retrieval.rights.search_filters import build_filters, filter_by_document
from retrieval.search.passage_rows import load_passages
from retrieval.search.pipeline import search
from retrieval.search.search_places import wait_for_search_slot
from retrieval.text.questions import normalize_question
from retrieval.types import Passage

NEAREST = 8
_BADGES = {
    ApprovedAnswer.State.DRAFT: "pending",
    ApprovedAnswer.State.APPROVED: "ready",
    ApprovedAnswer.State.WITHDRAWN: "stopped",
}


@dataclass(frozen=True, slots=True)
class OfferedPassage:
    """A passage that a curator can choose as a source of an approved answer, with its marker."""

    marker: int
    passage: Passage
    question: str = ""

    @property
    def choice_value(self) -> str:
        return f"{self.marker}:{self.passage.chunk_id}"

    @property
    def title(self) -> str:
        return self.passage.document_title or self.passage.source

    @property
    def href(self) -> str:
        return build_passage_url(self.passage.document_id, self.passage.start, self.passage.end)

    @property
    def where(self) -> str:
        passage = self.passage
        return describe_place(passage.collection_name, passage.section, passage.page, passage.page_unit)

    @property
    def label(self) -> SafeString:
        return format_html(
            '<span><strong>[{}]</strong> <a href="{}" target="_blank">{}</a> <span class="curation-quiet">{}</span>'
            '<span class="curation-excerpt">{}</span></span>',
            self.marker,
            self.href,
            self.title,
            self.where,
            self.excerpt,
        )

    @property
    def excerpt(self) -> SafeString:
        return _cut_preview(self.question, self.passage)


def _cut_preview(question: str, passage: Passage) -> SafeString:
    text, asked = convert_to_plain_text(passage.content), find_stems_of_texts(question)
    nearest = text.find(find_snippet(question, text))
    return highlight_snippet(
        text, [(word.start, word.end) for word in split_words(text) if word.start >= nearest and word.stem in asked]
    )


def find_citable_passages(
    user: AnyUser, question: str, cited: Sequence[tuple[int, int]], collection: str = ""
) -> tuple[list[OfferedPassage], str]:
    """Return passages that the curator can cite, and an error message if the search fails.

    The ``cited`` passages, pairs of marker and chunk id, come first. Results of a search for ``question`` follow.
    """
    known = [pk for _marker, pk in cited]
    readable = set(
        filter_by_document(Chunk.objects.filter(pk__in=known), build_filters(user))
        .order_by()
        .values_list("pk", flat=True)
    )
    passages = load_passages(readable)
    offers = [OfferedPassage(marker, passages[pk], question) for marker, pk in cited if pk in passages]
    if not question.strip():
        return offers, ""
    try:
        with wait_for_search_slot():
            hits = search(question, build_filters(user, collection), top_k=NEAREST).hits
    except RagsiteError as error:
        return offers, str(error)
    last = max((marker for marker, _pk in cited), default=0)
    fresh = [hit.passage for hit in hits if hit.passage.chunk_id not in known]
    offers += [OfferedPassage(marker, passage, question) for marker, passage in enumerate(fresh, start=last + 1)]
    return offers, ""


def parse_chosen_passages(values: Iterable[str]) -> list[tuple[int, int]]:
    parts = (value.partition(":") for value in values)
    return [(int(marker), int(pk)) for marker, _colon, pk in parts if marker.isdecimal() and pk.isdecimal()]


class ApprovedAnswerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """The form of an approved answer.

    If ``finding`` is true, the curator only searches for passages: the form is not saved, and its errors are not shown.
    """

    wordings = forms.CharField(
        label=_("Other wordings"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One per line. Questions that equal one of these wordings, or nearly, get the answer."),
    )
    passages = forms.MultipleChoiceField(
        label=_("Passages"), required=False, widget=forms.CheckboxSelectMultiple, help_text=_("What the answer cites.")
    )

    class Meta:
        model = ApprovedAnswer
        fields = ["question", "text", "kind", "collection", "owner", "expires_on", "state"]
        widgets = {"expires_on": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")}

    def __init__(
        self, *args: Any, user: AnyUser, offers: Sequence[OfferedPassage] = (), finding: bool = False, **options: Any
    ):
        super().__init__(*args, **options)
        self.user, self.offers, self.finding = user, offers, finding
        self.fields["collection"].queryset = Collection.objects.curated_by(user).in_service()  # type: ignore[attr-defined]
        if "owner" in self.fields:
            staff = self.fields["owner"].queryset.filter(Q(is_staff=True) | Q(pk=user.pk), is_active=True)  # type: ignore[attr-defined]
            self.fields["owner"].queryset = staff.order_by("username")  # type: ignore[attr-defined]
        self.fields["passages"].choices = [(offer.choice_value, offer.label) for offer in offers]  # type: ignore[attr-defined]
        if self.instance.pk and "wordings" not in self.initial:
            wordings = self.instance.questions.exclude(normalized=normalize_question(self.instance.question))
            self.initial["wordings"] = "\n".join(wordings.values_list("text", flat=True))

    def full_clean(self) -> None:
        super().full_clean()
        if self.finding:
            self._errors = forms.utils.ErrorDict()

    def is_valid(self) -> bool:
        return not self.finding and super().is_valid()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("kind") == ApprovedAnswer.Kind.OUT_OF_SCOPE:
            cleaned["passages"] = []
            return cleaned
        chosen = {marker for marker, _pk in parse_chosen_passages(cleaned.get("passages", []))}
        if not chosen:
            self.add_error(
                "passages", _("Choose at least one passage: an answer that cites nothing cannot be checked.")
            )
            return cleaned
        text = cleaned.get("text", "")
        named = {marker.number for marker in find_markers(text)}
        if strangers := sorted(named - chosen):
            missing = ", ".join(f"[{marker}]" for marker in strangers)
            self.add_error("text", ValidationError(_("The text cites %s, which is not chosen below.") % missing))
        elif text:
            cleaned["text"] = " ".join([text.rstrip(), *(f"[{marker}]" for marker in sorted(chosen - named))])
        return cleaned

    def save_approved(self, approved: ApprovedAnswer) -> None:
        if approved.state == ApprovedAnswer.State.APPROVED:
            approval.approve_answer(approved, self.user)
        chunks = {offer.choice_value: offer for offer in self.offers}
        chosen = [chunks[value] for value in self.cleaned_data["passages"]]
        rows = Chunk.objects.select_related("document").in_bulk([offer.passage.chunk_id for offer in chosen])
        approval.save_sources(approved, [(offer.marker, rows[offer.passage.chunk_id]) for offer in chosen])
        approval.save_wordings(approved, self.cleaned_data["wordings"].splitlines())


class FlaggedAnswerFilter(FixedChoicesFilter):
    title = _("to look at")
    parameter_name = "flagged"
    conditions = {"yes": (_("Yes"), ~Q(flag="")), "no": (_("No"), Q(flag=""))}


@admin.register(ApprovedAnswer)
class ApprovedAnswerAdmin(CuratedRowsAdmin):
    form = ApprovedAnswerForm
    list_display = ["question", "status_badge", "collection", "owner", "expires_on", "approved_by", "approved_at"]
    list_filter = ["state", FlaggedAnswerFilter, "kind", ("collection", CollectionFilter)]
    list_select_related = ["collection", "owner", "approved_by"]
    list_per_page = 50
    search_fields = ["question", "text", "questions__text"]
    readonly_fields = ["status_badge", "approved_by", "approved_at"]
    fieldsets = [
        (None, {"fields": ["status_badge", "question", "wordings", "kind", "text", "passages"]}),
        (
            _("Approval"),
            {"fields": ["state", "collection", "owner", "expires_on", "approved_by", "approved_at"]},
        ),
    ]

    @admin.display(description=_("status"), ordering="flag")
    def status_badge(self, approved: ApprovedAnswer) -> SafeString | str:
        if approved._state.adding:
            return "-"
        if approved.flag:
            return render_badge("failed", approved.get_flag_display())
        return render_badge(_BADGES[ApprovedAnswer.State(approved.state)], approved.get_state_display())

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": request.user.pk, **super().get_changeform_initial_data(request)}

    def get_form(
        self, request: HttpRequest, obj: ApprovedAnswer | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        made = super().get_form(request, obj, change=change, **kwargs)
        user, finding = request.user, "_find" in request.POST

        class BoundForm(made):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any, **options: Any) -> None:
                cited = (
                    parse_chosen_passages(request.POST.getlist("passages")) if request.POST else _find_cited_chunks(obj)
                )
                question = request.POST.get("question") or (obj.question if obj else request.GET.get("question", ""))
                offers, _trouble = find_citable_passages(user, question, cited)
                super().__init__(*args, user=user, offers=offers, finding=finding, **options)
                if obj is not None and not request.POST:
                    self.initial["passages"] = [offer.choice_value for offer in self.offers[: len(cited)]]

        return BoundForm

    def save_model(self, request: HttpRequest, obj: ApprovedAnswer, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        form.save_approved(obj)


def _find_cited_chunks(approved: ApprovedAnswer | None) -> list[tuple[int, int]]:
    found = []
    for source in approved.sources.all() if approved is not None else ():
        at = find_quote_offset(source)
        if at is not None:
            chunk = (
                Chunk.objects.filter(document=source.document_id, start__lte=at, end__gt=at).order_by("ordinal").first()
            )
            found += [(source.marker, chunk.pk)] if chunk is not None else []
    return found
