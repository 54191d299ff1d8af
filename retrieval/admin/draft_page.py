"""What the page of a draft shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval import gates
from retrieval.admin.base import badge
from retrieval.documents.drafts.lifecycle import Changes, changes_of
from retrieval.gates import Objection
from retrieval.models import Document, Draft

MOST_NAMED = 100
_UNREAD = (Document.Status.PENDING, Document.Status.PROCESSING)
_COLOURS = {
    Draft.Status.COPYING: "processing",
    Draft.Status.OPEN: "pending",
    Draft.Status.PUBLISHING: "processing",
    Draft.Status.PUBLISHED: "ready",
    Draft.Status.DISCARDED: "stopped",
}


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """``address`` is empty when the document is gone; ``state`` is a badge for one that is not ready."""

    source: str
    address: str
    state: SafeString | str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Documents with something in common, the first of which are named."""

    key: str
    label: str | Promise
    number: int
    named: list[NamedDocument]

    @property
    def unnamed(self) -> int:
        return self.number - len(self.named)


@dataclass(frozen=True, slots=True)
class DraftPage:
    """``is_live`` says that a worker is at it. The gates are asked only about what could be published now."""

    state: SafeString
    is_live: bool
    groups: list[Group]
    failed: Group | None = None
    unread: int = 0
    objections: tuple[Objection, ...] = ()
    may_be_published: bool = False


def draft_page(draft: Draft) -> DraftPage:
    state = render_badge(draft)
    if not draft.is_open or draft.status == Draft.Status.COPYING:
        return DraftPage(state, draft.status == Draft.Status.COPYING, list_groups(draft))
    failed = Document.objects.filter(collection=draft.working_copy_id, status=Document.Status.FAILED).order_by("source")
    unread = Document.objects.filter(collection=draft.working_copy_id, status__in=_UNREAD).count()
    groups = list_groups(draft)
    may_be_published = draft.status == Draft.Status.OPEN and bool(groups) and not unread
    return DraftPage(
        state,
        is_live=draft.status == Draft.Status.PUBLISHING or unread > 0,
        groups=groups,
        failed=_name_failed(failed),
        unread=unread,
        objections=gates.objections_to_draft(draft) if may_be_published else (),
        may_be_published=may_be_published,
    )


def render_badge(draft: Draft) -> SafeString:
    """The status and, while documents are copied, how far that is."""
    label: str = draft.get_status_display()
    if draft.status == Draft.Status.COPYING:
        total = Document.objects.filter(collection=draft.collection_id).count()
        label = format_html(
            '{} <progress max="{}" value="{}" aria-hidden="true"></progress> {}',
            label,
            max(total, 1),
            draft.copied,
            _t("%(copied)d of %(total)d") % {"copied": draft.copied, "total": total},
        )
    return badge(_COLOURS[Draft.Status(draft.status)], label)


def find_changes(draft: Draft) -> Changes:
    """What the draft changes or, once it is published, has changed; nothing while it is copied or is discarded."""
    if draft.status in (Draft.Status.OPEN, Draft.Status.PUBLISHING):
        return changes_of(draft)
    return Changes(**{name: tuple(sources) for name, sources in draft.changes.items()})


def list_groups(draft: Draft) -> list[Group]:
    """Of added, changed and removed documents, those groups that are not empty."""
    changes = find_changes(draft)
    is_published = draft.status == Draft.Status.PUBLISHED
    there = draft.collection_id if is_published else draft.working_copy_id
    groups = [
        _name_documents("added", _("Added"), changes.added, there),
        _name_documents("changed", _("Changed"), changes.changed, there),
        _name_documents("removed", _("Removed"), changes.removed, None if is_published else draft.collection_id),
    ]
    return [group for group in groups if group.number]


def summarise(changes: Changes) -> str:
    """How many documents are added, changed and removed, in words; a dash when none is."""
    counts = [
        _t("%d added") % len(changes.added) if changes.added else "",
        _t("%d changed") % len(changes.changed) if changes.changed else "",
        _t("%d removed") % len(changes.removed) if changes.removed else "",
    ]
    return ", ".join(filter(None, counts)) or "–"


def _name_documents(key: str, label: str | Promise, sources: Sequence[str], collection_id: int | None) -> Group:
    first = sources[:MOST_NAMED]
    found = Document.objects.filter(collection=collection_id, source__in=first) if collection_id else []
    documents = {document.source: document for document in found}
    return Group(key, label, len(sources), [_name_document(source, documents.get(source)) for source in first])


def _name_failed(documents: QuerySet[Document]) -> Group | None:
    named = [_name_document(document.source, document) for document in documents[:MOST_NAMED]]
    return Group("failed", _("Could not be read"), documents.count(), named) if named else None


def _name_document(source: str, document: Document | None) -> NamedDocument:
    if document is None:
        return NamedDocument(source, "")
    is_ready = document.status == Document.Status.READY
    state = "" if is_ready else badge(document.status, document.get_status_display())
    return NamedDocument(source, reverse("admin:retrieval_document_change", args=[document.pk]), state)
