"""Import the lists of users who may read the items of a source, and count the changes for each user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models.functions import Lower
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext

from retrieval.models import Document, Source, SourceItem
from retrieval.models.narrowing import MAIL
from retrieval.models.source import EVERYBODY
from retrieval.sources.item_metadata import collect_group_names, combine_item_metadata
from retrieval.sources.protocol import ItemReaders, RemoteItem
from retrieval.sources.reader_names import ReaderNameTable

# A run's log has at most MOST_NAMED names that gained access to documents, MOST_NAMED names that lost it, and
# _MOST_UNKNOWN unknown names.
MOST_NAMED = 50
_MOST_UNKNOWN = 20
ALL, OTHERS = "*", "…"


def _read_document_groups(metadata: Mapping[str, object]) -> frozenset[str] | None:
    key = settings.DOCUMENT_GROUPS_KEY
    return frozenset(collect_group_names(metadata[key])) if key in metadata else None


class ReadersBySource:
    """Finds and stores which users of this site may read the items of a source.

    ``details`` is stored in the run's log. Its counts include earlier attempts of the same run.
    """

    def __init__(self, source: Source, details: dict[str, Any]) -> None:
        key = settings.DOCUMENT_GROUPS_KEY
        self._source = source
        self._table = ReaderNameTable(source.options)
        self._known = {
            name: {key: metadata[key]} if key in metadata else {}
            for name, metadata in source.own_documents.values_list("source", "metadata")
        }
        self._details = details
        self._counts = {kind: Counter(dict(details.get(kind, []))) for kind in ("opened", "closed")}
        self._names: set[str] = set()
        self._unread: Counter[str] = Counter()

    def find_readers(self, found: RemoteItem, item: SourceItem | None) -> list[str] | str:
        """Return the names of the item's readers on this site, or EVERYBODY.

        If the source's list could not be read, the stored names are returned. A new item then has no reader ([]).
        """
        readers = found.readers or ItemReaders(unread=_t("the source does not say"))
        if readers.unread:
            self._unread[readers.unread] += 1
            known: list[str] | str | None = item.readers if item is not None else None
            return [] if known is None else known
        names = self._table.translate(readers)
        if names != EVERYBODY:
            self._names.update(names)
        return names

    def changes_readers(self, item: SourceItem, readers: list[str] | str) -> bool:
        """Return whether ``readers`` differ from those of the item's document. Nothing is stored."""
        metadata = self._known.get(item.name, {})
        before = item.readers, item.own_groups
        self._set_readers(item, metadata, self._source.metadata, readers)
        is_same = before == (item.readers, item.own_groups)
        after = _read_document_groups(combine_item_metadata(item, self._source.metadata))
        item.readers, item.own_groups = before
        return not is_same or after != _read_document_groups(metadata)

    def change_readers(
        self, item: SourceItem, document: Document, of_source: Mapping[str, object], readers: list[str] | str
    ) -> None:
        """Set the item's readers, and update its document's metadata. The caller must have locked the source."""
        before = _read_document_groups(document.metadata)
        self._set_readers(item, document.metadata, of_source, readers)
        self._update_document(item, document, of_source)
        self._count_reader_changes(before, _read_document_groups(document.metadata))

    def set_readers_of_fetched_item(
        self,
        item: SourceItem,
        document: Document,
        of_source: Mapping[str, object],
        readers: list[str] | str,
        of_record: Mapping[str, object] | None,
    ) -> None:
        """Set the readers of an item whose document is new, or was just read again.

        ``of_record`` are the metadata in the item's record. The caller must have locked the source.
        """
        key = settings.DOCUMENT_GROUPS_KEY
        is_new = item.name not in self._known
        before = frozenset[str]() if is_new else _read_document_groups(self._known[item.name])
        if is_new:
            item.own_groups = None
        if of_record is not None and key in of_record:
            item.own_groups = of_record[key]
        item.readers = readers
        self._update_document(item, document, of_source)
        self._count_reader_changes(before, _read_document_groups(document.metadata))

    def count_expected_reader_changes(self, item: SourceItem | None, readers: list[str] | str) -> None:
        """Count the readers to whom a run would open or close the document. Only a preview calls this."""
        is_new = item is None or item.name not in self._known
        metadata = {} if is_new or item is None else self._known[item.name]
        shadow = SourceItem(readers=None if item is None else item.readers)
        shadow.own_groups = None if item is None else item.own_groups
        if is_new:
            shadow.readers = readers
        else:
            self._set_readers(shadow, metadata, self._source.metadata, readers)
        after = _read_document_groups(combine_item_metadata(shadow, self._source.metadata))
        self._count_reader_changes(frozenset() if is_new else _read_document_groups(metadata), after)

    def _set_readers(
        self,
        item: SourceItem,
        metadata: Mapping[str, object],
        of_source: Mapping[str, object],
        readers: list[str] | str,
    ) -> None:
        key = settings.DOCUMENT_GROUPS_KEY
        if _read_document_groups(metadata) != _read_document_groups(combine_item_metadata(item, of_source)):
            # A curator or the item's record has changed the groups since the last run.
            item.own_groups = metadata.get(key)
        item.readers = readers

    def _update_document(self, item: SourceItem, document: Document, of_source: Mapping[str, object]) -> None:
        key = settings.DOCUMENT_GROUPS_KEY
        combined = combine_item_metadata(item, of_source)
        metadata = {name: value for name, value in document.metadata.items() if name != key}
        if key in combined:
            metadata[key] = combined[key]
        self._known[item.name] = {key: combined[key]} if key in combined else {}
        if metadata != document.metadata:
            document.metadata = metadata
            document.save(update_fields=["metadata", "updated_at"])
            document.copy_metadata_to_members()

    def _count_reader_changes(self, before: frozenset[str] | None, after: frozenset[str] | None) -> None:
        if before == after:
            return
        if before is None or after is None:
            self._add_reader_counts("opened" if after is None else "closed", {ALL})
        else:
            self._add_reader_counts("opened", after - before)
            self._add_reader_counts("closed", before - after)

    def _add_reader_counts(self, kind: str, names: set[str] | frozenset[str]) -> None:
        counts = self._counts[kind]
        for name in (each.removeprefix(MAIL) for each in names):
            counts[name if name in counts or len(counts) < MOST_NAMED else OTHERS] += 1
        if names:
            self._details[kind] = counts.most_common()

    def list_run_log_lines(self) -> list[str]:
        """Return lines for the run's log: why rights to read could not be imported, and which names are unknown."""
        notes = []
        for reason, number in self._unread.most_common(5):
            said = ngettext(
                "The readers of %(n)d document could not be read: %(why)s. What was known stays; new documents are "
                "closed.",
                "The readers of %(n)d documents could not be read: %(why)s. What was known stays; new documents are "
                "closed.",
                number,
            )
            notes.append(said % {"n": number, "why": reason.rstrip(".")})
        unknown = sorted(self._find_unknown_names() | self._table.unmatched)
        for kind in self._counts.keys() & self._details.keys():
            self._details[kind] = [[name, number] for name, number in self._details[kind] if name not in unknown]
        if unknown:
            named = ", ".join(unknown[:_MOST_UNKNOWN]) + (" …" if len(unknown) > _MOST_UNKNOWN else "")
            notes.append(_t("These names are unknown here, and admit nobody: %s.") % named)
        return notes

    def _find_unknown_names(self) -> set[str]:
        addresses = {name.removeprefix(MAIL) for name in self._names if name.startswith(MAIL)}
        groups = {name for name in self._names if not name.startswith(MAIL)}
        owners = EmailAddress.objects.filter(verified=True).annotate(lower=Lower("email")).filter(lower__in=addresses)
        return (addresses - set(owners.values_list("lower", flat=True))) | (
            groups - set(Group.objects.filter(name__in=groups).values_list("name", flat=True))
        )
