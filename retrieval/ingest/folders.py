"""Files and folders, read in this process with a progress bar; no worker is needed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from django.core.management.base import OutputWrapper

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import pipeline
from retrieval.ingest.submission import check_size, submit
from retrieval.ingest.writing import reweigh, settle
from retrieval.models import Collection, Document
from retrieval.progress import ProgressBar

# Folders that hold no documents of anyone's.
SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", ".idea", ".vscode"})


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
    """What came of a batch; ``failures`` are (source, sentence) pairs."""

    added: int = 0
    unchanged: int = 0
    failed: int = 0
    chunks: int = 0
    seconds: float = 0.0
    characters: int = 0
    failures: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)))


def ingest_paths(paths: Sequence[Path], collection: Collection, output: OutputWrapper | None) -> Counts:
    """Submit and read everything at ``paths``; one file's failure does not stop the others. Progress goes to
    ``output``.

    Raises: FileNotFoundError before anything is read when a path does not exist.
    """
    return ingest_all(list(find(paths)), collection, output)


def ingest_all(files: Sequence[Submitted], collection: Collection, output: OutputWrapper | None) -> Counts:
    """As :func:`ingest_paths`, for files already found."""
    started = time.monotonic()
    added = unchanged = chunks = characters = 0
    failures: list[tuple[str, str]] = []
    bar = ProgressBar(output)
    for number, file in enumerate(files):
        bar.show(file.source[:60], number, len(files))
        try:
            data = file.read()
            submission = submit(collection, file.source, data, title=file.title, enqueue=False)
            if not submission.changed:
                unchanged += 1
                continue

            def progress(done: int, total: int, number: int = number, source: str = file.source) -> None:
                bar.show(f"{source[:60]} ({done} of {total} passages)", number, len(files))

            document = pipeline.ingest(submission.document.pk, progress)
        except (DocumentRejected, OSError) as error:
            failures.append((file.source, str(error)))
            continue
        if document is None:
            failures.append((file.source, "It is being read by another process."))
            continue
        characters += len(data)
        for read in (document, *_read_members(document)):
            if read.status == Document.Status.READY:
                added += 1
                chunks += read.chunk_count
            else:
                failures.append((read.source, read.error))
    reweigh(collection)
    if added:
        settle()
    bar.clear()
    return Counts(added, unchanged, len(failures), chunks, time.monotonic() - started, characters, tuple(failures))


def _read_members(document: Document) -> Iterator[Document]:
    """What came in an archive or a mail, read too; what another process reads is left to it."""
    for pk in document.members.filter(status=Document.Status.PENDING).order_by("pk").values_list("pk", flat=True):
        if (member := pipeline.ingest(pk)) is not None:
            yield member
            yield from _read_members(member)


def find(paths: Iterable[Path]) -> Iterator[Submitted]:
    """The files at the paths, folders searched through in name order; a BEIR corpus yields a document a line.

    Raises: FileNotFoundError.
    """
    for path in paths:
        if path.is_dir():
            yield from (Submitted(found.relative_to(path).as_posix(), found) for found in _walk(path))
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
