"""Forms that make evaluation sets and fill them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationSet, ExpectedPassage, RunKind
from evaluation.sets.beir_files import JUDGEMENTS, LARGEST_BYTES, QUERIES, read_archive
from evaluation.sets.building import REFUSAL_HAS_NO_PASSAGE
from retrieval.admin.playground import PUBLISHED, ProfileChoice
from retrieval.models import Collection, Draft

MOST_QUESTIONS = 5000


class CanonicalForm(forms.Form):
    collection = forms.ModelChoiceField(Collection.objects.in_service(), label=_("Collection"))
    number = forms.IntegerField(label=_("Questions"), min_value=1, max_value=MOST_QUESTIONS, initial=100)
    seed = forms.IntegerField(
        label=_("Seed"), min_value=0, max_value=10**6, initial=0, help_text=_("The same seed draws the same questions.")
    )
    name = forms.CharField(label=_("Name"), max_length=200, required=False)


class ImportForm(forms.Form):
    """An archive, or its two files one by one; ``contents`` are theirs by name."""

    collection = forms.ModelChoiceField(
        Collection.objects.in_service(),
        label=_("Collection"),
        help_text=_("The judged documents are named by their source and must be in it."),
    )
    slug = forms.SlugField(label=_("Short name"))
    name = forms.CharField(label=_("Name"), max_length=200, required=False)
    archive = forms.FileField(
        label=_("ZIP archive"), required=False, help_text=_("Of a folder in BEIR's form; its corpus is not read.")
    )
    queries = forms.FileField(
        label=QUERIES,
        required=False,
        help_text=_('A query may hold an expected "answer", or "expects_refusal": true.'),
    )
    qrels = forms.FileField(
        label=JUDGEMENTS[0], required=False, help_text=_("Not needed where the queries say what is expected.")
    )

    contents: dict[str, bytes]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        archive, queries, qrels = (cleaned.get(name) for name in ("archive", "queries", "qrels"))
        for name in ("archive", "queries", "qrels"):
            if cleaned.get(name) is not None and cleaned[name].size > LARGEST_BYTES:
                told = _t("The file is larger than %d MiB.") % (LARGEST_BYTES // 2**20)
                self.add_error(name, told)
                return cleaned
        if archive is not None and (queries is None and qrels is None):
            try:
                self.contents = read_archive(archive.read())
            except EvaluationError as error:
                self.add_error("archive", str(error))
        elif archive is None and queries is not None:
            self.contents = {QUERIES: queries.read()}
            if qrels is not None:
                self.contents[JUDGEMENTS[0]] = qrels.read()
        elif not self.errors:
            self.add_error(None, _t("Choose an archive, or its files one by one."))
        return cleaned


class RunForm(forms.Form):
    profile = ProfileChoice(label=_("Search profile"), initial=PUBLISHED)
    # By the button that is pressed.
    kind = forms.ChoiceField(choices=RunKind.choices, widget=forms.HiddenInput)
    draft = forms.ModelChoiceField(
        Draft.objects.none(),
        label=_("Documents"),
        required=False,
        empty_label=_("in service"),
        error_messages={"invalid_choice": _("This draft is not open any more.")},
    )

    def __init__(self, evaluation_set: EvaluationSet, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["draft"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Draft.objects.filter(collection=evaluation_set.collection_id, status=Draft.Status.OPEN)
        self.has_draft = field.queryset.exists()


class ExpectedPassageFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic in the stubs only
    """The passages of one question, which has none to find when the documents do not answer it."""

    def clean(self) -> None:
        super().clean()
        to_find = [
            form
            for form in self.forms
            if (filled := getattr(form, "cleaned_data", {})) and not filled.get("DELETE") and filled.get("grade", 0) > 0
        ]
        if self.instance.expects_refusal and to_find:
            raise forms.ValidationError(str(REFUSAL_HAS_NO_PASSAGE))


class ExpectedPassageForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = ExpectedPassage
        fields = ("source", "quote", "grade")
        # A table has no labels but its heads, which are not said along with a field.
        widgets = {
            "source": forms.TextInput(attrs={"size": 30, "aria-label": _("document")}),
            "quote": forms.Textarea(attrs={"rows": 3, "cols": 60, "aria-label": _("words of the passage")}),
            "grade": forms.NumberInput(attrs={"min": 0, "aria-label": _("grade")}),
        }

    def save(self, commit: bool = True) -> ExpectedPassage:
        """Words that somebody wrote are not those that the hash was made of."""
        if {"quote", "source"} & set(self.changed_data):
            self.instance.content_hash = ""
        saved: ExpectedPassage = super().save(commit)
        return saved
