"""Files and folders, read by a command with a progress bar; no worker is needed."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from django.core.management.base import OutputWrapper
from django.db import connections

from retrieval import conf
from retrieval.documents import ingestion
from retrieval.documents.submission import check_size, submit
from retrieval.exceptions import DocumentRejected
from retrieval.index.chunk_writer import reweigh, settle
from retrieval.infrastructure.progress import ProgressBar
from retrieval.models import Collection, Document

Work = TypeVar("Work")
Result = TypeVar("Result")

# Enough that no process waits for the next file, few enough that their contents take no memory to speak of.
_WAITING_PER_PROCESS = 4
_PR_SET_PDEATHSIG = 1


def in_processes(
    function: Callable[[Work], Result], works: Iterable[Work], processes: int
) -> Iterator[tuple[Work, Future[Result]]]:
    """Each work with the future of its result, as they end. With one process, in this one.

    A process that dies leaves its works and all later ones with :class:`BrokenProcessPool`.
    """
    if processes <= 1:
        for work in works:
            future: Future[Result] = Future()
            future.set_result(function(work))
            yield work, future
        return
    # A connection that two processes use mixes up their answers.
    for connection in connections.all(initialized_only=True):
        connection.close()
        if connection.settings_dict["OPTIONS"].get("pool"):
            connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one
    left = iter(works)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(os.getpid(), processes)) as pool:

        def begin(work: Work) -> Future[Result]:
            try:
                return pool.submit(function, work)
            except BrokenProcessPool as error:
                broken: Future[Result] = Future()
                broken.set_exception(error)
                return broken

        try:
            running = {begin(work): work for work in islice(left, processes * _WAITING_PER_PROCESS)}
            while running:
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future
                    running.update((begin(work), work) for work in islice(left, 1))
        except BaseException:
            # Interrupted: what is being read is read to its end, and nothing else is begun.
            pool.shutdown(cancel_futures=True)
            raise


def _begin(parent: int, processes: int) -> None:
    """A process that outlived the command would go on reading what the command's successor reads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # An interruption is the command's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != parent:
        os._exit(1)
    embedder = conf.embedder()
    if threads := getattr(embedder, "threads", 0):
        embedder.threads = max(1, threads // processes)  # type: ignore[attr-defined]  # an embedder of this machine


# For fewer, a process would take longer to begin than to read them.
LEAST_FILES_A_PROCESS = 4
# Folders that hold no documents of anyone's.
SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", ".idea", ".vscode"})

_OF_PAGES = frozenset({".css", ".scss", ".less", ".map", ".ico", ".svg", ".woff", ".woff2", ".ttf", ".otf", ".eot"})
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
_LOGO = re.compile(r"(?:^|[^a-z])(?:logo|icon|favicon|sprite|avatar|banner)s?(?:[^a-z]|$)", re.IGNORECASE)
# A picture of fewer holds no page of text.
SMALLEST_PICTURE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Submitted:
    """A file on disk (``path``), or text that came in another way (``data``), as it will be submitted."""

    source: str
    path: Path | None = None
    data: bytes = b""
    title: str = ""

    def read(self) -> bytes:
        """The content. Raises: OSError, DocumentRejected for a file too large to be read at all."""
        if self.path is None:
            return self.data
        check_size(self.source, self.path.stat().st_size)
        return self.path.read_bytes()


@dataclass(frozen=True, slots=True)
class Counts:
    """What came of a batch; ``failures`` are (source, sentence) pairs,
    ``skipped`` files of folders that are no documents."""

    added: int = 0
    unchanged: int = 0
    failed: int = 0
    chunks: int = 0
    seconds: float = 0.0
    characters: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)))


def ingest_paths(
    paths: Sequence[Path],
    collection: Collection,
    output: OutputWrapper | None,
    *,
    processes: int = 1,
    with_vectors: bool = True,
) -> Counts:
    """Submit and read everything at ``paths``, so many at once; one file's failure does not stop the others. Progress
    goes to ``output``.

    Without ``with_vectors`` the passages are found by their words alone, until `load_vectors` is called. Raises:
    FileNotFoundError before anything is read when a path does not exist.
    """
    started = time.monotonic()
    counts = Counts()
    total = sum(1 for _ in find(paths))
    bar = ProgressBar(output)
    read = partial(_ingest_file, collection=collection, with_vectors=with_vectors)
    processes = min(processes, total // LEAST_FILES_A_PROCESS)
    if processes <= 1:
        read = partial(read, bar=bar, files=total)
    reweighed_at = 16
    for number, (file, future) in enumerate(in_processes(read, enumerate(find(paths)), processes), start=1):
        _, submitted = file
        try:
            counts += future.result()
        except BrokenProcessPool:
            reason = "The process that read it was ended: the machine may have run out of memory."
            counts += _record_failure(submitted.source, reason)
        bar.show(submitted.source[:60], number, total, task="files")
        # The first documents decide how long a passage is taken to be. Seen early, it is put right while they are few.
        if number == reweighed_at:
            reweigh(collection)
            reweighed_at *= 4
    reweigh(collection)
    if counts.added:
        settle()
    bar.clear()
    skipped = tuple(name for path in paths if path.is_dir() for name in _skipped(path))
    return replace(counts, seconds=time.monotonic() - started, skipped=skipped)


def _ingest_file(
    numbered: tuple[int, Submitted],
    *,
    collection: Collection,
    with_vectors: bool,
    bar: ProgressBar | None = None,
    files: int = 0,
) -> Counts:
    """Raises: RetrievalError when not this file, but the site, cannot be written to."""
    number, file = numbered

    def progress(done: int, total: int) -> None:
        if bar is not None:
            bar.show(f"{file.source[:60]} ({done} of {total} passages)", number, files, task="files")

    try:
        data = file.read()
        submission = submit(collection, file.source, data, title=file.title, enqueue=False)
        if not submission.changed:
            return Counts(unchanged=1)
        document = ingestion.ingest(submission.document.pk, progress, with_vectors=with_vectors)
    except (DocumentRejected, OSError) as error:
        return _record_failure(file.source, str(error))
    if document is None:
        return _record_failure(file.source, "It is being read by another process.")
    counts = Counts(characters=len(data))
    for read in (document, *_read_members(document, with_vectors)):
        if read.status == Document.Status.READY:
            counts += Counts(added=1, chunks=read.chunk_count)
        else:
            counts += _record_failure(read.source, read.error)
    return counts


def _record_failure(source: str, reason: str) -> Counts:
    return Counts(failed=1, failures=((source, reason),))


def _read_members(document: Document, with_vectors: bool) -> Iterator[Document]:
    """What came in an archive or a mail, read too; what another process reads is left to it."""
    for pk in document.members.filter(status=Document.Status.PENDING).order_by("pk").values_list("pk", flat=True):
        if (member := ingestion.ingest(pk, with_vectors=with_vectors)) is not None:
            yield member
            yield from _read_members(member, with_vectors)


def find(paths: Iterable[Path]) -> Iterator[Submitted]:
    """The files at the paths, folders searched through in name order; a BEIR corpus yields a document a line.

    Raises: FileNotFoundError.
    """
    for path in paths:
        if path.is_dir():
            yield from (
                Submitted(found.relative_to(path).as_posix(), found)
                for found in _walk(path)
                if not is_no_document(found)
            )
        elif path.is_file():
            if path.name == "corpus.jsonl":
                yield from read_beir_corpus(path)
            else:
                yield Submitted(path.name, path)
        else:
            raise FileNotFoundError(f"There is no file or folder {path}.")


def read_beir_corpus(path: Path) -> Iterator[Submitted]:
    """The documents of a BEIR ``corpus.jsonl``: one JSON object a line with `_id`, `title` and `text`."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                text, title = str(row["text"]), str(row.get("title") or "")
                yield Submitted(f"{row['_id']}.txt", data=text.encode(), title=title)
            except (ValueError, KeyError, TypeError) as error:
                raise DocumentRejected(f"{path.name}, line {number}, is not a BEIR document: {error}") from error


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
            continue
        if entry.is_dir():
            yield from _walk(entry)
        elif entry.is_file():
            yield entry


def is_no_document(path: Path) -> bool:
    """Whether a file of a folder only serves how pages look: style sheets, fonts, logos, icons and tiny pictures."""
    suffix = path.suffix.lower()
    if suffix in _OF_PAGES:
        return True
    return suffix in _PICTURES and (bool(_LOGO.search(path.stem)) or path.stat().st_size < SMALLEST_PICTURE_BYTES)


def _skipped(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in _walk(folder) if is_no_document(path))
