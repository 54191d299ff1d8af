from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime, now
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import PageAdmin, admin_link, redirect_to, render_badge
from core.user_types import AnyUser
from retrieval.admin.curated import CollectionFilter, CuratedRowsAdmin
from retrieval.admin.document_forms import MetadataField
from retrieval.documents.drafts.editing import find_reason_not_to_add, find_reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, Source, SourceRun
from retrieval.models.collection import CollectionQuerySet
from retrieval.rights.staff import list_source_collections
from retrieval.sources import sync_runs
from retrieval.sources.kinds import KINDS
from retrieval.sources.kinds.connectors import ConnectorSource, list_usable_connectors
from retrieval.sources.options import save_source, store_options, warn_about_removed_secret
from retrieval.sources.protocol import Connector, SetupObstacle
from retrieval.sources.states import SourceStatus, explain_wait, find_source_status, find_source_statuses


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """The base form of all sources. `build_source_form` adds the settings of a kind of source."""

    kind: type[Connector]
    own_form: type[forms.Form]
    user: AnyUser

    class Meta:
        model = Source
        fields = ["collection", "name", "interval_minutes", "keeps_missing", "metadata"]
        field_classes = {"metadata": MetadataField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in self.instance.options.items():
            self.initial.setdefault(name, value)
        if "collection" in self.fields:
            self.fields["collection"].queryset = list_source_collections(self.user)  # type: ignore[attr-defined]
        if self.instance.pk is None:
            self.initial.setdefault("interval_minutes", self.kind.interval_minutes)

    def clean_metadata(self) -> dict[str, object]:
        metadata = self.cleaned_data["metadata"] or {}
        is_changed = self.instance.pk is not None and metadata != self.instance.metadata
        if is_changed and (reason := find_reason_not_to_change(self.instance.collection)):
            raise ValidationError(reason)
        return metadata

    def clean(self) -> dict[str, object] | None:
        cleaned = super().clean()
        # All documents change at once if the source no longer imports who may read them.
        is_switched_off = self.instance.has_readers_by_source and not (cleaned or {}).get("takes_readers", True)
        if is_switched_off and (reason := find_reason_not_to_change(self.instance.collection)):
            self.add_error("takes_readers", ValidationError(reason))
        chosen = (cleaned or {}).get("collection")
        namesakes = Source.objects.filter(collection=chosen or self.instance.collection_id).exclude(pk=self.instance.pk)
        if namesakes.filter(name=(cleaned or {}).get("name")).exists():
            self.add_error("name", ValidationError(_("This collection has a source of this name already.")))
        if self.instance.pk is None and chosen is not None and (reason := find_reason_not_to_add(chosen)):
            draft = chosen.drafts.filter_open().first()
            if draft is not None and self.user.has_perm("retrieval.view_draft"):
                reason = format_html("{} {}", reason, admin_link(draft))
            self.add_error("collection", ValidationError(reason))
        return cleaned

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if not self.errors:
            self.instance.kind = self.kind.name
            if not self.kind.is_read:
                self.instance.interval_minutes = 0
            general = SourceForm.base_fields
            options = {name: value for name, value in self.cleaned_data.items() if name not in general}
            store_options(self.instance, self.own_form, options)


_OF_RUNS = ("interval_minutes", "keeps_missing")


def _general_fields(kind: type[Connector]) -> list[str]:
    return [name for name in SourceForm.Meta.fields if kind.is_read or name not in _OF_RUNS]


def build_source_form(
    kind: type[Connector], own_form: type[forms.Form], user: AnyUser, *, is_new: bool
) -> type[SourceForm]:
    """Return the form class for sources of this kind. ``own_form`` has the kind's settings."""
    fields = [name for name in _general_fields(kind) if is_new or name != "collection"]
    meta = type("Meta", (SourceForm.Meta,), {"fields": fields})
    own = {"kind": kind, "own_form": own_form, "user": user, "Meta": meta}
    return type("SourceFormOfItsKind", (own_form, SourceForm), own)


def _list_connector_offers(user: AnyUser) -> list[tuple[str, Any, Any, list[SetupObstacle]]]:
    kind = ConnectorSource
    if obstacles := kind.find_setup_obstacles():
        return [(kind.name, kind.label, kind.description, obstacles)]
    offered = list_usable_connectors(user)
    return [(f"{kind.name}&connector={each.name}", each.name, kind.description, []) for each in offered]


RUNS_SHOWN = 20
# If a form has more groups of fields than this, the page shows the groups collapsed at first.
GROUPS_OPEN = 3
SENT_SHOWN = 50
CURL = """\
curl -X PUT %(address)s \\
  -H 'Authorization: Bearer rs_…' -H 'Content-Type: application/json' \\
  -d '{"title": "Pumps", "text": "The pump weighs **30 kg**.", "url": "https://wiki.example.org/1"}'
"""
ACTIONS: dict[str, tuple[Callable[[Source], Any], Any]] = {
    "sync": (sync_runs.request_audited_run, _("Run requested: %s.")),
    "preview": (lambda source: sync_runs.request_audited_run(source, is_preview=True), _("Preview requested: %s.")),
    "remove": (
        lambda source: sync_runs.request_audited_run(source, may_remove=True),
        _("Missing documents will be removed: %s."),
    ),
    "pause": (sync_runs.pause_source, _("Paused: %s.")),
    "resume": (sync_runs.resume_source, _("Goes on: %s.")),
}


class SourceChangeList(ChangeList):
    """The admin's list of sources. It loads states and document counts of a page in few queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        statuses = find_source_statuses(self.result_list)
        documents = Document.objects.filter(origin__in=self.result_list).order_by()
        numbers = documents.values_list("origin", "collection").annotate(Count("pk"))
        counts = {(origin, collection): number for origin, collection, number in numbers}
        for source in self.result_list:
            number = counts.get((source.pk, source.collection_id), 0)
            vars(source).update(status=statuses[source.pk], document_count=number)


@admin.register(Source)
class SourceAdmin(PageAdmin, CuratedRowsAdmin):
    list_display = ["name", "collection", "kind_label", "state", "last_run", "next_run", "documents"]
    list_filter = [("collection", CollectionFilter), "kind", "is_paused"]
    list_select_related = ["collection"]
    search_fields = ["name"]
    actions = None

    def list_permitted_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return list_source_collections(request.user)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SourceChangeList

    @admin.display(description=_("kind"), ordering="kind")
    def kind_label(self, source: Source) -> str:
        kind = KINDS.get(source.kind)
        return str(kind.label) if kind else source.kind

    @admin.display(description=_("status"))
    def state(self, source: Source) -> SafeString:
        state = vars(source)["status"].state
        return render_badge(state, state.label)

    @admin.display(description=_("last run"))
    def last_run(self, source: Source) -> str:
        last = vars(source)["status"].last
        return date_format(localtime(last.finished_at), "SHORT_DATETIME_FORMAT") if last and last.finished_at else "–"

    @admin.display(description=_("next run"), ordering="next_run_at")
    def next_run(self, source: Source) -> str:
        if source.is_pushed:
            return _t("none: programs send its documents")
        if source.is_paused:
            return _t("none while it is paused")
        if not source.interval_minutes:
            return _t("only on request")
        if source.next_run_at is None or source.next_run_at <= now():
            return _t("within a minute")
        return date_format(localtime(source.next_run_at), "SHORT_DATETIME_FORMAT")

    @admin.display(description=_("documents"))
    def documents(self, source: Source) -> SafeString:
        return admin_link(Document, vars(source)["document_count"], origin__id__exact=source.pk)

    def get_form(self, request: HttpRequest, obj: Source | None = None, change: bool = False, **kwargs: Any) -> Any:
        kind = self._find_kind(request, obj)
        if kind is None or (obj is not None and not self.has_change_permission(request, obj)):
            return super().get_form(request, obj, change, **kwargs)
        return build_source_form(
            kind, self._build_options_form_class(request, kind, obj), request.user, is_new=obj is None
        )

    def _build_options_form_class(
        self, request: HttpRequest, kind: type[Connector], source: Source | None
    ) -> type[forms.Form]:
        if source is None:
            return kind.get_form_class({"connector": request.GET.get("connector", "")}, {})
        return kind.get_form_class(source.options, source.found)

    def get_fieldsets(self, request: HttpRequest, obj: Source | None = None) -> list[Any]:
        kind = self._find_kind(request, obj)
        general = SourceForm.Meta.fields if kind is None else _general_fields(kind)
        if kind is None or (obj is not None and not self.has_change_permission(request, obj)):
            return [(None, {"fields": general})]
        form = self._build_options_form_class(request, kind, obj)
        groups = getattr(form, "groups", ())
        grouped = {name for _label, names in groups for name in names}
        own = [name for name in form().fields if name not in grouped]
        sections: list[Any] = [(kind.label, {"fields": own})] if own else []
        classes = ["collapse"] if len(groups) > GROUPS_OPEN else []
        sections += [(label, {"fields": names, "classes": classes}) for label, names in groups]
        return [(None, {"fields": general}), *sections]

    def get_readonly_fields(self, request: HttpRequest, obj: Source | None = None) -> list[str]:
        return ["collection"] if obj is not None else []

    def _find_kind(self, request: HttpRequest, source: Source | None) -> type[Connector] | None:
        return KINDS.get(source.kind if source is not None else request.GET.get("kind", ""))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        kind = self._find_kind(request, None)
        if kind is ConnectorSource and not list_usable_connectors(request.user, request.GET.get("connector", "")):
            kind = None
        if kind is not None:
            return super().add_view(
                request, form_url, {"title": _t("Add a source: %s") % kind.label, **(extra_context or {})}
            )
        kinds = [
            (kind.name, kind.label, kind.description, kind.find_setup_obstacles())
            for kind in KINDS.values()
            if kind is not ConnectorSource
        ]
        kinds += _list_connector_offers(request.user)
        return self.render_page(request, "source/kinds", _t("Add a source"), {"kinds": kinds})

    def save_model(self, request: HttpRequest, obj: Source, form: ModelForm[Source], change: bool) -> None:
        is_unfinished = obj.kind == ConnectorSource.name and (
            not obj.options.get("streams") or "streams" in form.changed_data
        )
        obj.next_run_at = now() + timedelta(minutes=obj.interval_minutes) if is_unfinished else None
        is_tried = self._was_only_previewed(obj)
        if is_tried:
            # If the form is incomplete, a run might show documents to too many readers.
            obj.is_paused = True
        save_source(obj)
        warn_about_removed_secret(request, obj)
        if is_unfinished or is_tried:
            with suppress(sync_runs.SourceRunRefused):
                sync_runs.request_audited_run(obj, is_preview=True)

    @staticmethod
    def _was_only_previewed(source: Source) -> bool:
        is_connector = source.kind == ConnectorSource.name
        return is_connector and (source.pk is None or not source.runs.filter(is_preview=False).exists())

    def response_change(self, request: HttpRequest, obj: Source) -> HttpResponse:
        if self._was_only_previewed(obj):
            self.message_user(request, _t("A preview was requested. Nothing is read before you choose Sync now."))
            return redirect_to(obj)
        return super().response_change(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, Source) and obj.kind == ConnectorSource.name:
            name = str(obj.options.get("connector") or "")
            return super().has_change_permission(request, obj) and bool(list_usable_connectors(request.user, name))
        return super().has_change_permission(request, obj)

    def response_add(self, request: HttpRequest, obj: Source, post_url_continue: str | None = None) -> HttpResponse:
        if obj.kind == ConnectorSource.name:
            self.message_user(
                request,
                _t(
                    "The settings are being tried. Then choose streams on this page. "
                    "Nothing is read before you choose Sync now."
                ),
            )
            return redirect_to(obj)
        return super().response_add(request, obj, post_url_continue)

    def page_context(self, request: HttpRequest, obj: Source) -> dict[str, object]:
        status = find_source_status(obj)
        pushed = self._build_push_context(request, obj) if obj.is_pushed else {}
        return {
            **pushed,
            "source": obj,
            "status": status,
            "wait": self._explain_wait(request, status),
            "state": render_badge(status.state, status.state.label),
            "document_count": obj.own_documents.count(),
            "runs": list(obj.runs.all()[:RUNS_SHOWN]),
            "may_act": self.has_change_permission(request, obj),
            "next_run": self.next_run(obj),
        }

    def _build_push_context(self, request: HttpRequest, source: Source) -> dict[str, object]:
        address = request.build_absolute_uri(reverse("retrieval_api:pushed_document", args=[source.pk, "ID"]))
        sent = source.pushed_items.all()
        return {
            "address": address,
            "curl": CURL % {"address": address.removesuffix("ID") + "page-1"},
            "sent_items": sent[:SENT_SHOWN].with_documents(),
            "sent_count": sent.count(),
        }

    def _explain_wait(self, request: HttpRequest, status: SourceStatus) -> str:
        run = status.active
        if run is None or run.status != SourceRun.Status.WAITING:
            return ""
        return explain_wait(run, self.list_permitted_collections(request))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        source = self.get_object(request, object_id)
        if not self.has_delete_permission(request, source):
            raise PermissionDenied
        if source is None:
            return super().delete_view(request, object_id, extra_context)
        wanted = request.POST.get("documents", "") if request.method == "POST" else ""
        if wanted in ("keep", "remove"):
            return self._delete(request, source, with_documents=wanted == "remove")
        context = {"source": source, "document_count": source.own_documents.count()}
        return self.render_page(request, "source/delete", _t("Delete the source %s") % source, context)

    def _delete(self, request: HttpRequest, source: Source, *, with_documents: bool) -> HttpResponse:
        name = str(source)
        self.log_deletions(request, self.get_queryset(request).filter(pk=source.pk))
        with self.show_errors_as_messages(request, DocumentRejected, sentence=_t("Nothing was deleted. %s")):
            removed = sync_runs.delete_source(source, with_documents=with_documents)
            message = ngettext(
                "Deleted: %(name)s, with %(n)d document.", "Deleted: %(name)s, with %(n)d documents.", removed
            )
            self.tell_done(request, message % {"name": name, "n": removed})
            return redirect_to(Source)
        return redirect_to(source)

    def get_urls(self) -> list[URLPattern]:
        act = self.build_button_path(
            "<int:pk>/act/<slug:action>/", self.act_view, "source_act", "retrieval.change_source"
        )
        return [act, *super().get_urls()]

    def act_view(self, request: HttpRequest, pk: int, action: str) -> HttpResponse:
        if action not in ACTIONS:
            raise Http404
        rows: QuerySet[Source] = self.get_queryset(request)
        source = get_object_or_404(rows, pk=pk)
        do, message = ACTIONS[action]
        with self.show_errors_as_messages(request, sync_runs.SourceRunRefused):
            do(source)
            self.tell_done(request, message % source)
        return redirect_to(source)
