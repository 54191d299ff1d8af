"""The form in which curators choose the filters of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.db.models import QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from retrieval.admin.grants import may_manage
from retrieval.models import Collection, Document, MarkedFilter
from retrieval.models.collection import BUILT_IN_FILTERS
from retrieval.rights.search_filters import filter_days, filter_numbers

MOST_KEYS, _MOST_EXAMPLES = 200, 3
Kind = MarkedFilter.Kind
_KEYS_SQL = """
    SELECT key, count(*), (array_agg(DISTINCT left(value #>> '{{}}', 60)))[1:{examples}]
    FROM retrieval_document, jsonb_each(metadata) WHERE id IN ({documents}) AND key <> %s AND length(key) <= 200
    GROUP BY key ORDER BY 2 DESC, 1 LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class MetadataKeySummary:
    key: str
    documents: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        examples = ", ".join(Truncator(example).chars(24) for example in self.examples)
        number = ngettext("%d document", "%d documents", self.documents) % self.documents
        return f"{self.key}: {examples} … ({number})"


def find_metadata_keys(documents: QuerySet[Document]) -> list[MetadataKeySummary]:
    """Return the keys of the documents' metadata, without the one that limits documents to groups."""
    sql, parameters = documents.order_by().values("pk").query.sql_with_params()
    statement = _KEYS_SQL.format(examples=_MOST_EXAMPLES, documents=sql)
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, settings.DOCUMENT_GROUPS_KEY, MOST_KEYS])
        return [
            MetadataKeySummary(key, number, tuple(filter(None, examples)))
            for key, number, examples in cursor.fetchall()
        ]


def guess_kind(documents: QuerySet[Document], field: str) -> str:
    if field in BUILT_IN_FILTERS:
        return BUILT_IN_FILTERS[field][1]
    having = documents.filter(metadata__has_key=field).order_by()
    total = having.count()
    for kind, fitting in ((Kind.DATES, filter_days(having, field)), (Kind.NUMBERS, filter_numbers(having, field))):
        if total and fitting.count() == total:
            return kind
    return Kind.VALUES


class FilterForm(forms.ModelForm):  # type: ignore[type-arg]
    field = forms.ChoiceField(label=_("field"))
    kind = forms.ChoiceField(
        label=_("kind"), required=False, choices=[("", _("as its values are")), *MarkedFilter.Kind.choices]
    )

    class Meta:
        model = MarkedFilter
        fields = ["field", "label", "kind", "position"]

    documents: QuerySet[Document]
    keys: list[MetadataKeySummary]

    def __init__(
        self, *args: Any, documents: QuerySet[Document], keys: list[MetadataKeySummary], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.documents = documents
        built_in = [(name, label) for name, (label, _kind) in BUILT_IN_FILTERS.items()]
        found = [(each.key, str(each)) for each in keys if each.key not in BUILT_IN_FILTERS]
        chosen = self.instance.field
        if chosen and chosen not in dict([*built_in, *found]):
            found.append((chosen, str(_("%s: no document has it") % chosen)))
        choices: list[Any] = [("", "---------"), (_("every document"), built_in)]
        if found:
            choices.append((_("metadata"), found))
        field = self.fields["field"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if field := given.get("field"):
            built_in = BUILT_IN_FILTERS.get(field)
            given["kind"] = built_in[1] if built_in else given.get("kind") or guess_kind(self.documents, field)
        return given


class FilterFormSet(BaseInlineFormSet):  # type: ignore[type-arg]
    """The rows of filters in a collection's form. ``documents`` are the documents that the curator may read."""

    documents: QuerySet[Document]

    def get_form_kwargs(self, index: int | None) -> dict[str, Any]:
        if not hasattr(self, "_keys"):
            self._keys = find_metadata_keys(self.documents)
        return {**super().get_form_kwargs(index), "documents": self.documents, "keys": self._keys}


class FilterInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = MarkedFilter
    form = FilterForm
    formset = FilterFormSet
    extra = 0
    verbose_name_plural = _("filters for readers")

    def get_formset(self, request: HttpRequest, obj: Collection | None = None, **kwargs: Any) -> Any:
        made = super().get_formset(request, obj, **kwargs)
        readable = Document.objects.readable_by(request.user).filter(collection=obj)
        return type("FilterFormSet", (made,), {"documents": readable})

    def get_queryset(self, request: HttpRequest) -> QuerySet[MarkedFilter]:
        # The default queryset is empty for users who may manage only some collections.
        return MarkedFilter.objects.all()

    def has_change_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return may_manage(request, obj)

    has_view_permission = has_add_permission = has_delete_permission = has_change_permission
