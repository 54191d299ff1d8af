"""Read test sets in BEIR's format: a corpus, queries, and judgements of which documents answer them."""

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
    make_storable,
    parse_identified_objects,
    parse_judgements,
    parse_objects,
    read_numbered_lines,
)

CORPUS, DESCRIPTION = "corpus.jsonl", "META.json"


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """A document of a corpus, after removal of the characters that PostgreSQL cannot store. ``title`` may be empty."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query, with the grades that people gave to documents, by document id. At least one grade is above 0."""

    id: str
    text: str
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TestSet:
    """A corpus and its judged queries, both in file order.

    ``language`` is a code or name from the set's description, or empty. ``unknown_documents`` is the number of relevant
    documents that the corpus does not contain.
    """

    __test__ = False

    name: str
    documents: tuple[CorpusDocument, ...]
    queries: tuple[JudgedQuery, ...]
    language: str = ""
    unknown_documents: int = 0


# The first of these files that exists is read. Two are names in this project, two are names in the published BEIR sets.
JUDGEMENTS = ("qrels.tsv", "qrels.dev.tsv", "qrels/test.tsv", "qrels/dev.tsv")


def read_test_set(folder: Path, judgements: Path | None = None) -> TestSet:
    """Read the test set in ``folder``, and name it after the folder.

    ``judgements`` is a file; by default the first one in ``JUDGEMENTS`` that exists. Queries without a judgement and
    judgements without a query are left out, because BEIR stores the queries of all splits in one file. Raises:
    UnreadableTestSet, which names the file and the line.
    """
    documents = tuple(read_corpus(folder))
    path = _find_judgements_file(folder, judgements)
    grades = _read_judgements(path)
    queries = tuple(
        JudgedQuery(query, text, grades[query])
        for query, text in read_queries(folder)
        if any(grade > 0 for grade in grades.get(query, {}).values())
    )
    if not queries:
        raise UnreadableTestSet(f"{path} judges no document relevant to any query of {folder / QUERIES}.")
    known = {document.id for document in documents}
    unknown = sum(document not in known for query in queries for document, grade in query.grades.items() if grade > 0)
    return TestSet(folder.resolve().name, documents, queries, _read_language(folder / DESCRIPTION), unknown)


def read_corpus(folder: Path) -> Iterator[CorpusDocument]:
    """Yield the documents of the set in ``folder``. Raises: UnreadableTestSet, also if there is no document."""
    path, is_empty = folder / CORPUS, True
    for where, identifier, row in parse_identified_objects(read_lines(path)):
        with name_line_in_errors(where):
            title, text = (make_storable(_parse_string(value)) for value in (row.get("title", ""), row["text"]))
            yield CorpusDocument(identifier, title, text)
        is_empty = False
    if is_empty:
        raise UnreadableTestSet(f"{path} contains no document.")


def read_queries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and text of all queries of the set in ``folder``, with or without judgements.

    Raises: UnreadableTestSet.
    """
    for where, identifier, row in parse_identified_objects(read_lines(folder / QUERIES)):
        with name_line_in_errors(where):
            yield identifier, make_storable(_parse_string(row["text"]))


def _find_judgements_file(folder: Path, chosen_path: Path | None) -> Path:
    candidates = (
        [chosen_path, folder / chosen_path] if chosen_path is not None else [folder / name for name in JUDGEMENTS]
    )
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise UnreadableTestSet(f"There are no judgements: none of {', '.join(map(str, candidates))} exists.")
    return found


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield a pair for each line that is not blank: its position (file and line number) and its text.

    Raises: UnreadableTestSet.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableTestSet(f"{path} cannot be read: {error.strerror}.") from error
    return read_numbered_lines(str(path), content)


def read_json_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a pair for each line that is not blank: its position (file and line number), and its JSON object.

    Raises: UnreadableTestSet.
    """
    return parse_objects(read_lines(path))


@contextmanager
def name_line_in_errors(where: str) -> Iterator[None]:
    """Raise UnreadableTestSet, which names the line ``where``, if the block finds a missing or wrong value."""
    try:
        yield
    except KeyError as error:
        raise UnreadableTestSet(f"{where}, has no {error}.") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise UnreadableTestSet(f"{where}, cannot be used: {error}.") from error


def parse_strings(value: object) -> tuple[str, ...]:
    """Return the list as a tuple. Raises: TypeError for anything but a list of strings."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{value!r} is not a list of strings")
    return tuple(value)


def _parse_string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _read_judgements(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for query, judged in parse_judgements(read_lines(path)):
        if grades.setdefault(query, {}).setdefault(judged.source, judged.grade) != judged.grade:
            raise UnreadableTestSet(f"{judged.where}, contradicts an earlier line on {query} and {judged.source}.")
    return grades


def _read_language(path: Path) -> str:
    if not path.is_file():
        return ""
    with name_line_in_errors(str(path)):
        return str(json.loads(path.read_text(encoding="utf-8-sig")).get("language") or "")
