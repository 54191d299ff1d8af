"""Ingest files and folders from a command, without a worker."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path

from django.core.management.base import OutputWrapper
from django.db import connection

from core.progress import ProgressBar
from retrieval.documents import ingestion
from retrieval.documents.formats import PICTURES, has_page_extension, is_leftover_file, is_web_page_asset
from retrieval.documents.submission import check_size, submit
from retrieval.exceptions import DocumentRejected
from retrieval.index.chunk_writer import recompute_term_weights, refresh_planner_statistics
from retrieval.models import Collection, Document

# Fewer files than this are ingested one after another, because each file can use several CPU cores.
FEW_FILES = 8

SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", ".idea", ".vscode"})

SMALLEST_PICTURE_BYTES = 4096

_LONGEST_PAGE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class SubmittedFile:
    """A file to ingest: a ``path`` on disk, or ``data``."""

    source: str
    path: Path | None = None
    data: bytes = b""
    title: str = ""

    def read(self) -> bytes:
        if self.path is None:
            return self.data
        check_size(self.source, self.path.stat().st_size)
        return self.path.read_bytes()


@dataclass(frozen=True, slots=True)
class IngestionCounts:
    """How many files were added, were unchanged or failed. ``failures`` are pairs of file name and reason."""

    added: int = 0
    unchanged: int = 0
    failed: int = 0
    chunks: int = 0
    seconds: float = 0.0
    failures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()

    def __add__(self, other: IngestionCounts) -> IngestionCounts:
        return IngestionCounts(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(IngestionCounts))
        )


def ingest_paths(
    paths: Sequence[Path],
    collection: Collection,
    output: OutputWrapper | None,
    *,
    at_once: int = 1,
) -> IngestionCounts:
    """Ingest all files at ``paths``, ``at_once`` in parallel, and return the counts.

    Files that fail are only counted. Raises: FileNotFoundError before the first file if a path does not exist.
    """
    started = time.monotonic()
    counts = IngestionCounts()
    total = sum(1 for _ in find_files(paths))
    bar = ProgressBar(output)
    if at_once > 1 and total >= FEW_FILES:
        read_files = _ingest_files_in_threads(partial(_ingest_file, collection), find_files(paths), at_once)
    else:
        read_files = _ingest_files_in_turn(collection, find_files(paths), bar, total)
    reweighed_at = 16
    for number, (source, counted) in enumerate(read_files, start=1):
        counts += counted
        bar.show(source[:60], number, total, task="files")
        # The first documents set the reference length for BM25. It is corrected early, when few passages must be
        # weighted again.
        if number == reweighed_at:
            recompute_term_weights(collection)
            reweighed_at *= 4
    recompute_term_weights(collection)
    if counts.added:
        refresh_planner_statistics()
    bar.clear()
    skipped = tuple(
        found.relative_to(path).as_posix()
        for path in paths
        if path.is_dir()
        for found, is_document in _classify_document_files(path)
        if not is_document
    )
    return replace(counts, seconds=time.monotonic() - started, skipped=skipped)


def _ingest_files_in_turn(
    collection: Collection, files: Iterable[SubmittedFile], bar: ProgressBar, file_total: int
) -> Iterator[tuple[str, IngestionCounts]]:
    for number, file in enumerate(files):

        def progress(done: int, total: int, *, number: int = number, name: str = file.source[:60]) -> None:
            bar.show(f"{name} ({done} of {total} passages)", number, file_total, task="files")

        yield file.source, _ingest_file(collection, file, progress)


def _ingest_files_in_threads(
    read: Callable[[SubmittedFile], IngestionCounts], files: Iterable[SubmittedFile], threads: int
) -> Iterator[tuple[str, IngestionCounts]]:
    def read_and_close_connection(file: SubmittedFile) -> tuple[str, IngestionCounts]:
        try:
            return file.source, read(file)
        finally:
            connection.close()

    left = iter(files)
    with ThreadPoolExecutor(threads, thread_name_prefix="ingest") as pool:
        try:
            running = {pool.submit(read_and_close_connection, file) for file in islice(left, 2 * threads)}
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
                running |= {pool.submit(read_and_close_connection, file) for file in islice(left, len(ended))}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _ingest_file(
    collection: Collection, file: SubmittedFile, progress: ingestion.Progress | None = None
) -> IngestionCounts:
    try:
        data = file.read()
        submission = submit(collection, file.source, data, title=file.title, enqueue=False)
        if not submission.changed:
            return IngestionCounts(unchanged=1)
        document = ingestion.ingest_document(submission.document.pk, progress)
    except (DocumentRejected, OSError) as error:
        return IngestionCounts(failed=1, failures=((file.source, str(error)),))
    if document is None:
        return IngestionCounts(failed=1, failures=((file.source, "It is being read by another process."),))
    counts = IngestionCounts()
    for read in (document, *_read_members(document)):
        if read.status == Document.Status.READY:
            counts += IngestionCounts(added=1, chunks=read.chunk_count)
        else:
            counts += IngestionCounts(failed=1, failures=((read.source, read.error),))
    return counts


def _read_members(document: Document) -> Iterator[Document]:
    for pk in document.members.filter(status=Document.Status.PENDING).order_by("pk").values_list("pk", flat=True):
        if (member := ingestion.ingest_document(pk)) is not None:
            yield member
            yield from _read_members(member)


def find_files(paths: Iterable[Path]) -> Iterator[SubmittedFile]:
    """Yield the files at the paths. A folder yields its files by name, without assets of web pages.

    A `corpus.jsonl` (BEIR) yields a document for each line. Raises: FileNotFoundError.
    """
    for path in paths:
        if path.is_dir():
            yield from (
                SubmittedFile(found.relative_to(path).as_posix(), found)
                for found, is_document in _classify_document_files(path)
                if is_document
            )
        elif path.is_file():
            if path.name == "corpus.jsonl":
                yield from read_beir_corpus(path)
            else:
                yield SubmittedFile(path.name, path)
        else:
            raise FileNotFoundError(f"There is no file or folder {path}.")


def read_beir_corpus(path: Path) -> Iterator[SubmittedFile]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                text, title = str(row["text"]), str(row.get("title") or "")
                yield SubmittedFile(f"{row['_id']}.txt", data=text.encode(), title=title)
            except (ValueError, KeyError, TypeError) as error:
                raise DocumentRejected(f"{path.name}, line {number}, is not a BEIR document: {error}") from error


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS or is_leftover_file(entry.name):
            continue
        if entry.is_dir():
            yield from _walk(entry)
        elif entry.is_file():
            yield entry


def _classify_document_files(folder: Path) -> Iterator[tuple[Path, bool]]:
    paths = list(_walk(folder))
    has_pages = any(has_page_extension(path.name) for path in paths)
    shown = _list_shown_pictures(paths)
    for path in paths:
        serves = is_web_page_asset(path.relative_to(folder).as_posix(), has_pages=has_pages)
        is_tiny = path.suffix.lower() in PICTURES and path.stat().st_size < SMALLEST_PICTURE_BYTES
        yield path, not (serves or is_tiny or path in shown)


def _list_shown_pictures(paths: list[Path]) -> set[Path]:
    pictures: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        if path.suffix.lower() in PICTURES:
            pictures[path.parent].append(path)
    shown: set[Path] = set()
    for page in paths:
        if has_page_extension(page.name) and page.parent in pictures and page.stat().st_size <= _LONGEST_PAGE_BYTES:
            text = page.read_bytes()
            shown.update(picture for picture in pictures[page.parent] if picture.name.encode() in text)
    return shown
