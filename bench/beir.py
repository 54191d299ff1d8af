"""Test sets in BEIR's form: a corpus, queries, and judgements of which documents answer which query. PURE."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.exceptions import UnreadableTestSet
from evaluation.sets.beir_files import (
    QUERIES,
    identified_objects_of,
    judgements_of,
    lines_of,
    objects_of,
    storable,
)

CORPUS, DESCRIPTION = "corpus.jsonl", "META.json"


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One line of a corpus, as PostgreSQL can store it: without NUL and lone surrogates. ``title`` may be empty."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query and the grades of its judged documents, at least one of them above 0."""

    id: str
    text: str
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TestSet:
    """A corpus and the queries that have judgements, both in the order of their files.

    ``language`` is what the set says of itself, a two-letter code or a name, and empty when it says nothing.
    ``unknown_documents`` counts the relevant documents that the corpus lacks; they can never be found.
    """

    __test__ = False  # pytest would take the class for a test

    name: str
    documents: tuple[CorpusDocument, ...]
    queries: tuple[JudgedQuery, ...]
    language: str = ""
    unknown_documents: int = 0


# The first that is there counts: this project's names, then those that BEIR is published with.
JUDGEMENTS = ("qrels.tsv", "qrels.dev.tsv", "qrels/test.tsv", "qrels/dev.tsv")


def read_test_set(folder: Path, judgements: Path | None = None) -> TestSet:
    """The test set in ``folder``, named after it.

    ``judgements`` is a file, by its own path or by its name in the folder; without it the first that exists of
    ``JUDGEMENTS``. A query without a relevant document among its judgements is left out, as are judgements of queries
    that the folder lacks: files of judgements for a split share the queries of the whole.

    Raises: UnreadableTestSet, naming the file and the line.
    """
    documents = tuple(_read_corpus(folder / CORPUS))
    if not documents:
        raise UnreadableTestSet(f"{folder / CORPUS} holds no document.")
    path = _judgements_file(folder, judgements)
    grades = _read_judgements(path)
    queries = tuple(
        JudgedQuery(query, text, grades[query])
        for query, text in _read_queries(folder / QUERIES)
        if any(grade > 0 for grade in grades.get(query, {}).values())
    )
    if not queries:
        raise UnreadableTestSet(f"{path} judges no document relevant to any query of {folder / QUERIES}.")
    known = {document.id for document in documents}
    unknown = sum(document not in known for query in queries for document, grade in query.grades.items() if grade > 0)
    return TestSet(folder.resolve().name, documents, queries, _language(folder / DESCRIPTION), unknown)


def _judgements_file(folder: Path, named: Path | None) -> Path:
    candidates = [named, folder / named] if named is not None else [folder / name for name in JUDGEMENTS]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise UnreadableTestSet(f"There are no judgements: none of {', '.join(map(str, candidates))} exists.")
    return found


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Where each line of the file stands that is not blank, and the line. Raises: UnreadableTestSet."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableTestSet(f"{path} cannot be read: {error.strerror}.") from error
    return lines_of(str(path), content)


def read_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each JSON object of the file stands, and the object. Raises: UnreadableTestSet."""
    return objects_of(read_lines(path))


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Raises: UnreadableTestSet, with ``where``, for what the block finds missing or of another type there."""
    try:
        yield
    except KeyError as error:
        raise UnreadableTestSet(f"{where}, has no {error}.") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise UnreadableTestSet(f"{where}, cannot be used: {error}.") from error


def strings(value: object) -> tuple[str, ...]:
    """Raises: TypeError for anything but a list of strings."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{value!r} is not a list of strings")
    return tuple(value)


def _read_corpus(path: Path) -> Iterator[CorpusDocument]:
    for where, identifier, row in identified_objects_of(read_lines(path)):
        with naming(where):
            yield CorpusDocument(identifier, storable(row.get("title", "")), storable(row["text"]))


def _read_queries(path: Path) -> Iterator[tuple[str, str]]:
    for where, identifier, row in identified_objects_of(read_lines(path)):
        with naming(where):
            yield identifier, storable(row["text"])


def _read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """The grades of each query's judged documents."""
    grades: dict[str, dict[str, int]] = {}
    for query, judged in judgements_of(read_lines(path)):
        if grades.setdefault(query, {}).setdefault(judged.source, judged.grade) != judged.grade:
            raise UnreadableTestSet(f"{judged.where}, contradicts an earlier line on {query} and {judged.source}.")
    return grades


def _language(path: Path) -> str:
    if not path.is_file():
        return ""
    with naming(str(path)):
        return str(json.loads(path.read_text(encoding="utf-8-sig")).get("language") or "")
