"""Compare the items that a source lists with the stored ones, and read new and changed items.

After an interruption, the next worker repeats no item.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _t

from core import deadline
from core.exceptions import LeaseLost
from retrieval.documents import formats
from retrieval.documents.drafts.editing import find_reason_not_to_add, lock_collections_for_change
from retrieval.documents.submission import submit
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, SourceItem, SourceRun
from retrieval.sources.options import is_included, lock_source_metadata
from retrieval.sources.protocol import (
    AddressRefused,
    Connector,
    FetchedItem,
    ItemDeleted,
    ItemFailed,
    ItemGone,
    ItemRejected,
    RemoteItem,
    RunAttemptTimedOut,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.sources.taking_readers import ReadersBySource

# The log of a run names at most this many items for each outcome.
MOST_NAMED = 100
RUNS_KEPT = 50
Outcome = SourceItem.Outcome
_COUNTED = (Outcome.ADDED, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.FAILED)
_NAMED = (Outcome.ADDED, Outcome.CHANGED, "failures", "left_out", "removed", "held", "kept")


class Tally:
    """Counts the items of a run by outcome, in all its attempts. ``details`` names the first items for the log."""

    def __init__(self, run: SourceRun, items: Iterable[SourceItem]) -> None:
        self.counts: Counter[str] = Counter()
        self.details: dict[str, list[Any]] = {"failures": []}
        if run.is_preview:
            return
        self.counts["removed"] = run.removed
        self.details["removed"] = run.details.get("removed", [])
        self.details |= {name: run.details[name] for name in ("opened", "closed") if name in run.details}
        for item in items:
            if item.seen_by_run == run.pk:
                self.count(item.outcome, item.key, item.error)

    def count(self, outcome: str, name: str, error: str = "") -> None:
        self.counts[outcome] += 1
        is_failure = outcome == Outcome.FAILED
        kind = "failures" if is_failure else "left_out" if outcome == Outcome.PASSED and error else outcome
        named = self.details.setdefault(kind, []) if kind in _NAMED else None
        if named is not None and len(named) < MOST_NAMED:
            named.append([name, error[:500]] if kind in ("failures", "left_out") else name)

    def get_outcome_counts(self) -> dict[str, int]:
        return {outcome.value: self.counts[outcome] for outcome in _COUNTED}


def forget_old_runs(run: SourceRun) -> None:
    """Delete old runs of the source, except the RUNS_KEPT newest.

    If the last two runs changed nothing, the older one is deleted too.
    """
    ended = run.source.runs.exclude(status__in=SourceRun.ACTIVE)
    last = list(ended.filter(is_preview=False)[:2])
    news = [
        run.status != SourceRun.Status.DONE or run.added or run.changed or run.removed or run.kept_back for run in last
    ]
    if len(last) == 2 and not any(news) and _get_details_without_notes(last[0]) == _get_details_without_notes(last[1]):
        last[1].delete()
    SourceRun.objects.filter(pk__in=list(ended.values_list("pk", flat=True)[RUNS_KEPT:])).delete()


def _get_details_without_notes(run: SourceRun) -> dict[str, Any]:
    return {name: value for name, value in run.details.items() if name != "notes"}


# An admin must consent to delete more than this share of a source's documents.
LARGEST_SHARE = 0.2


def _needs_deletion_consent(gone: int, total: int) -> bool:
    return gone > 0 and (gone == total or (gone > 1 and gone > LARGEST_SHARE * total))


def check_item_content(data: bytes, name: str) -> None:
    if not data:
        raise ItemRejected(_t("%s is empty.") % name)
    try:
        formats.detect_format(data, name)
    except DocumentRejected as error:
        said, is_unknown, _formats = str(error).partition("; supported are ")
        if is_unknown:
            said = _t("%s: convert it there, or leave it out with a pattern.") % said
        raise ItemRejected(said) from error


def hash_known_formats() -> str:
    """Return a hash of the supported formats and the size limit. When it changes, rejected files are tried again."""
    names = sorted(each.media_type for each in formats.read_formats())
    return hashlib.sha256(f"{names} {settings.DOCUMENT_MAX_BYTES}".encode()).hexdigest()[:16]


# Limits of one attempt for listing and for reading items, together less than the time limit of a task.
LISTING_SECONDS = 8 * 60.0
MOST_ITEMS = 50_000
WORKING_SECONDS = 12 * 60.0
FLUSH_SECONDS = 2.0
FLUSH_ITEMS = 500
# After this many items in a row without an answer, the source is unavailable.
SILENT_ITEMS = 3
_LONGEST_NAME = 1000


class SourceComparison:
    def __init__(self, run: SourceRun) -> None:
        self._run, self._source = run, run.source
        self._is_real = not run.is_preview
        self._items = {item.key: item for item in self._source.items.order_by("pk")}
        self._key_of_name = {item.name: key for key, item in self._items.items() if item.name}
        self._documents = set(self._source.own_documents.values_list("source", flat=True))
        self._total_before = sum(item.name in self._documents for item in self._items.values())
        self._tally = Tally(run, self._items.values())
        takes = self._source.has_readers_by_source
        self._readers = ReadersBySource(self._source, self._tally.details) if takes else None
        self._formats = hash_known_formats()
        self._wanted_readers: dict[str, list[str] | str] = {}
        self._visited: set[str] = set()
        self._present: set[str] = set()
        self._kept: list[int] = []
        self._silent = 0
        self._has_read = False
        # ``_saved`` counts the listed items before the first one that is not saved.
        self._saved, self._saves_all, self._has_failed = 0, True, False
        self._flushed_at = time.monotonic()

    def compare_and_store(self, connector: Connector) -> None:
        """Make the stored documents equal to the source's.

        Raises: SourceUnreadable, SourceUnavailable, RunAttemptTimedOut, LeaseLost.
        """
        try:
            self._process_items(connector, self._list_items(connector))
        finally:
            self._store_notes(connector)
        self._store_progress(connector)
        if connector.lists_everything:
            self._remove_gone_items(connector)
        self._end_run(connector)

    def _store_notes(self, connector: Connector) -> None:
        about_readers = self._readers.list_run_log_lines() if self._readers is not None else []
        told: dict[str, list[Any]] = {
            "notes": connector.notes_for_run_log,
            "samples": connector.samples,
            "about_readers": about_readers,
        }
        if told := {name: lines for name, lines in told.items() if lines}:
            self._tally.details |= told
            self._run.write_under_lease(details=self._tally.details)

    def _list_items(self, connector: Connector) -> deque[RemoteItem]:
        """Return the complete list of the source's items.

        Documents that are not in the list are deleted, so no incomplete list is returned. Raises: SourceUnavailable.
        """
        listed = deque[RemoteItem]()
        with deadline.limit_time(LISTING_SECONDS) as limit:
            try:
                for found in connector.list_items():
                    listed.append(found)
                    _check_item_count(len(listed))
                    if time.monotonic() > limit.ends_at:
                        raise SourceUnavailable("")
            except SourceUnavailable as error:
                if time.monotonic() < limit.ends_at:
                    raise
                raise SourceUnavailable(
                    _t("Listing it takes longer than %d minutes.") % (LISTING_SECONDS / 60)
                ) from error
        return listed

    def _process_items(self, connector: Connector, waiting: deque[RemoteItem]) -> None:
        self._started = time.monotonic()
        while waiting:
            found = waiting.popleft()
            if found.key in self._visited or not (found.is_entry or is_included(found.name, self._source.options)):
                continue
            self._visited.add(found.key)
            self._present.add(found.key)
            _check_item_count(len(self._visited))
            waiting.extend(self._process_item(connector, found))
            self._saves_all = self._saves_all and not self._has_failed and found.key in self._present
            self._saved += self._saves_all
            if time.monotonic() - self._flushed_at > FLUSH_SECONDS or len(self._kept) >= FLUSH_ITEMS:
                self._store_progress(connector)
            self._check_time_limit(connector)

    def _check_time_limit(self, connector: Connector) -> None:
        # Each attempt reads at least one new item.
        if not self._has_read or time.monotonic() - self._started <= WORKING_SECONDS:
            return
        if not self._is_real:
            raise SourceUnreadable(
                _t("A preview of this source takes longer than %d minutes.") % (WORKING_SECONDS / 60)
            )
        self._store_progress(connector)
        raise RunAttemptTimedOut

    def _process_item(self, connector: Connector, found: RemoteItem) -> Iterable[RemoteItem]:
        item = self._items.get(found.key)
        if item is not None and self._is_real and item.seen_by_run == self._run.pk:
            if not connector.lists_changes or item.fingerprint == found.fingerprint:
                return _read_links(item)
            # The item has changed since an earlier attempt of this run, which has counted it. It is read again now,
            # because the next run will not list it. Reading counts it again, so the first count is subtracted.
            self._tally.counts[item.outcome] -= 1
        if self._readers is not None:
            self._update_document_readers(self._readers, found, item)
        # If its document was deleted, the item is read again.
        has_all = item is not None and (item.name in self._documents or item.outcome == Outcome.PASSED)
        is_same = item is not None and found.fingerprint and item.fingerprint == found.fingerprint
        is_rejected = item is not None and item.is_rejected and item.validators.get("formats") == self._formats
        if item is not None and is_same and (has_all or is_rejected):
            self._keep_unchanged(item)
            return _read_links(item)
        self._has_read = True
        try:
            fetched = connector.fetch(found, item.validators if item is not None and has_all else {})
            self._silent = 0
            if fetched is None:
                if item is None:
                    raise ItemFailed(_t("%s: the server says that it is unchanged, and was not asked.") % found.name)
                self._keep_unchanged(item)
                return _read_links(item)
            self._store_fetched(found, item, fetched)
            return fetched.links
        except ItemGone as error:
            self._present.discard(found.key)
            if item is None:
                is_told = isinstance(error, ItemDeleted)
                said = str(error) if is_told else _t("there is nothing at this address")
                self._tally.count(Outcome.PASSED, found.name, said)
        except SourceUnavailable as error:
            self._silent += 1
            if self._silent >= SILENT_ITEMS or error.pause is not None:
                raise
            self._record_failure(found, item, str(error))
        except (ItemFailed, AddressRefused) as error:
            self._record_failure(found, item, str(error), is_rejected=isinstance(error, ItemRejected))
        except DocumentRejected as error:
            if reason := find_reason_not_to_add(self._source.collection):
                raise SourceUnreadable(reason) from error
            self._record_failure(found, item, str(error))
        return _read_links(item) if item is not None and found.key in self._present else ()

    def _update_document_readers(self, taken: ReadersBySource, found: RemoteItem, item: SourceItem | None) -> None:
        readers = self._wanted_readers[found.key] = taken.find_readers(found, item)
        if not self._is_real:
            taken.count_expected_reader_changes(item, readers)
        elif item is not None and item.name in self._documents and taken.changes_readers(item, readers):
            try:
                with transaction.atomic():
                    of_source = lock_source_metadata(self._source)
                    with lock_collections_for_change(self._source.collection_id):
                        self._run.lock()
                        document = self._source.own_documents.select_for_update().filter(source=item.name).first()
                        if document is not None:
                            taken.change_readers(item, document, of_source, readers)
                            item.save(update_fields=["readers", "own_groups"])
                            self._run.write_under_lease(details=self._tally.details)
                            self._has_read = True
            except DocumentRejected as error:
                raise SourceUnreadable(str(error)) from error

    def _store_fetched(self, found: RemoteItem, item: SourceItem | None, fetched: FetchedItem) -> None:
        data = fetched.data if is_included(found.name, self._source.options) else None
        item = item or SourceItem(source=self._source, key=found.key)
        had_document = item.name in self._documents
        if data is None and had_document:
            # The item is no longer a document, for example because its address redirects.
            self._present.discard(found.key)
            return
        content_hash = _hash_item_content(data, found, fetched) if data is not None else ""
        if data is None:
            outcome = Outcome.PASSED
        elif had_document and item.content_hash == content_hash:
            outcome = Outcome.UNCHANGED
        else:
            outcome = Outcome.CHANGED if had_document else Outcome.ADDED
            item.name = item.name if had_document else self._choose_document_name(found, fetched)
            check_item_content(data, item.name)
        if self._is_real:
            with transaction.atomic():
                self._run.lock()
                if data is not None and outcome != Outcome.UNCHANGED:
                    url = found.url if len(found.url) <= _LONGEST_NAME else ""
                    is_new = item.name not in self._documents
                    submission = submit(
                        self._source.collection,
                        item.name,
                        data,
                        title=found.title[:500],
                        url=url,
                        metadata=self._merge_item_metadata({}, fetched.metadata) if outcome == Outcome.ADDED else None,
                        origin=self._source,
                    )
                    if fetched.metadata is not None and not is_new:
                        self._store_description(submission.document, url, fetched.metadata)
                    if self._readers is not None:
                        readers, of_source = self._wanted_readers[found.key], lock_source_metadata(self._source)
                        self._readers.set_readers_of_fetched_item(
                            item, submission.document, of_source, readers, fetched.metadata
                        )
                        self._run.write_under_lease(details=self._tally.details)
                # If the fingerprint were stored before `submit`, the next run would skip a file that `submit` refused.
                item.fingerprint, item.validators = found.fingerprint, dict(fetched.validators)
                item.content_hash, item.links = (
                    content_hash,
                    [_convert_link_to_arguments(link) for link in fetched.links],
                )
                self._save(item, outcome, fetched.reason)
            if data is not None:
                self._documents.add(item.name)
            self._items[found.key] = item
        self._key_of_name[item.name] = found.key
        self._tally.count(outcome, found.name, fetched.reason)

    def _store_description(self, document: Document, url: str, metadata: Mapping[str, object]) -> None:
        document.metadata = self._merge_item_metadata(document.metadata, metadata)
        Document.objects.filter(pk=document.pk).update(url=url, metadata=document.metadata)
        document.copy_metadata_to_members()

    def _merge_item_metadata(self, own: Mapping[str, object], told: Mapping[str, object] | None) -> dict[str, object]:
        merged = {**own, **(told or {}), **lock_source_metadata(self._source)}
        return {name: value for name, value in merged.items() if value is not None}

    def _choose_document_name(self, found: RemoteItem, fetched: FetchedItem) -> str:
        name = f"{self._source.name}/{fetched.name or found.name}"
        if self._key_of_name.get(name, found.key) != found.key:
            path, mark = PurePosixPath(name), hashlib.sha256(found.key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            name = str(path.with_name(f"{path.stem}-{mark}{path.suffix}"))
        if len(name) > _LONGEST_NAME:
            raise ItemRejected(_t("%s… has too long a name.") % found.name[:100])
        return name

    def _record_failure(
        self, found: RemoteItem, item: SourceItem | None, error: str, *, is_rejected: bool = False
    ) -> None:
        self._tally.count(Outcome.FAILED, found.name, error)
        self._has_failed |= not is_rejected
        if not self._is_real:
            return
        item = item or SourceItem(source=self._source, key=found.key)
        if is_rejected:
            item.fingerprint, item.validators = found.fingerprint, {"formats": self._formats}
        with transaction.atomic():
            self._run.lock()
            self._save(item, Outcome.FAILED, error, is_rejected=is_rejected)
        self._items[found.key] = item

    def _save(self, item: SourceItem, outcome: Outcome, error: str = "", *, is_rejected: bool = False) -> None:
        item.seen_by_run, item.is_held = self._run.pk, False
        item.outcome, item.error, item.is_rejected = outcome, error, is_rejected
        item.save()

    def _keep_unchanged(self, item: SourceItem) -> None:
        if item.is_rejected:
            self._tally.count(Outcome.FAILED, item.key, item.error)
        else:
            outcome = Outcome.PASSED if item.outcome == Outcome.PASSED else Outcome.UNCHANGED
            self._tally.count(outcome, item.key, item.error)
        if self._is_real:
            self._kept.append(item.pk)

    def _store_progress(self, connector: Connector) -> None:
        with transaction.atomic():
            if not self._run.write_under_lease(**self._tally.get_outcome_counts()):
                raise LeaseLost(f"{self._run.job_name} is no longer leased to this process.")
            kept = SourceItem.objects.filter(pk__in=self._kept)
            kept.update(seen_by_run=self._run.pk, is_held=False)
            kept.filter(is_rejected=False).exclude(outcome=Outcome.PASSED).update(outcome=Outcome.UNCHANGED, error="")
            if self._is_real:
                connector.store_progress(self._saved, is_all=False)
        self._kept.clear()
        self._flushed_at = time.monotonic()

    def _end_run(self, connector: Connector) -> None:
        with transaction.atomic():
            self._run.lock()
            if self._is_real:
                connector.store_progress(self._saved, is_all=not self._has_failed)
            self._run.write_under_lease(
                kept_back=self._tally.counts["held"],
                removed=self._tally.counts["removed"],
                kept=self._tally.counts["kept"],
                details=self._tally.details,
                **self._tally.get_outcome_counts(),
            )
            if connector.broke_off is None:
                self._run.end(SourceRun.Status.DONE)
                forget_old_runs(self._run)
        if connector.broke_off is not None:
            raise connector.broke_off

    def _is_gone(self, connector: Connector, item: SourceItem) -> bool:
        if item.key in self._present or item.key in self._visited:
            return item.key not in self._present
        has_listed_all = connector.broke_off is None
        return has_listed_all and (item.is_held or connector.is_deletion(item.key, item.seen_by_run or 0))

    def _remove_gone_items(self, connector: Connector) -> None:
        gone = [item for item in self._items.values() if self._is_gone(connector, item)]
        if self._source.keeps_missing:
            gone = self._keep_documents_of_gone_items(gone)
        agreed = {item.pk for item in gone if self._run.may_remove and item.is_held}
        in_question = [item for item in gone if item.name in self._documents and item.pk not in agreed]
        is_too_much = _needs_deletion_consent(len(in_question), self._total_before - len(agreed))
        held = {item.pk for item in in_question} if is_too_much else set()
        if self._is_real:
            SourceItem.objects.filter(pk__in=held).update(is_held=True)
        for item in gone:
            if item.name in self._documents:
                self._tally.count("held" if item.pk in held else "removed", item.name)
            if self._is_real and item.pk not in held:
                self._remove(item)

    def _keep_documents_of_gone_items(self, gone: list[SourceItem]) -> list[SourceItem]:
        """Keep the documents of the items ``gone``, and return the items that have none."""
        missing = [item for item in gone if item.name in self._documents]
        for item in missing:
            self._tally.count("kept", item.name)
        if self._is_real:
            SourceItem.objects.filter(pk__in=[item.pk for item in missing]).update(is_held=False)
        return [item for item in gone if item.name not in self._documents]

    def _remove(self, item: SourceItem) -> None:
        with lock_collections_for_change(self._source.collection_id):
            self._run.lock()
            for document in self._source.own_documents.filter(source=item.name):
                document.delete()
                self._run.write_under_lease(removed=F("removed") + 1, details=self._tally.details)
            item.delete()


def _hash_item_content(data: bytes, found: RemoteItem, fetched: FetchedItem) -> str:
    facts = b"" if fetched.metadata is None else json.dumps([found.url, found.title, fetched.metadata]).encode()
    return hashlib.sha256(data + facts).hexdigest()


def _convert_link_to_arguments(link: RemoteItem) -> dict[str, Any]:
    # Each run lists the readers again, so they are not stored.
    return {name: value for name, value in asdict(link).items() if name != "readers"}


def _read_links(item: SourceItem) -> Iterator[RemoteItem]:
    return (RemoteItem(**link) for link in item.links)


def _check_item_count(items: int) -> None:
    if items > MOST_ITEMS:
        raise SourceUnreadable(
            _t("There are more than %d items: narrow it down with patterns, or make several sources.") % MOST_ITEMS
        )
