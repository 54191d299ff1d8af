"""Questions for whole answers: some that the documents answer, with what a right answer says, and some they do not.

Two kinds of questions have no answer, and are kept apart: *off-topic* ones, taken from other sets, and *adversarial*
ones, which name what the documents are about and ask what they do not tell. Imports no Django.

Source of the distinction: Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL
2018.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from bench.beir import TestSet, read_objects, read_test_set
from evaluation.exceptions import UnreadableTestSet
from evaluation.sets.beir_files import QUERIES

UNANSWERABLE = "unanswerable.jsonl"

Element = TypeVar("Element")


class QuestionKind(StrEnum):
    """Whether the documents answer a question, and if not, how it comes that it was asked."""

    ANSWERABLE = "answerable"
    ADVERSARIAL = "adversarial"
    OFF_TOPIC = "off_topic"


@dataclass(frozen=True, slots=True)
class Question:
    """``answers`` are the wordings of which a right answer holds one; a question without an answer has none."""

    text: str
    kind: QuestionKind
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CollectionFolder:
    """A folder of documents, to be asked as a collection of its own; ``language`` is a two-letter code."""

    slug: str
    folder: Path
    language: str


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """Questions about the folders of documents that lie beside their file."""

    name: str
    questions: tuple[Question, ...]
    collections: tuple[CollectionFolder, ...]


def read_beir_questions(folder: Path) -> tuple[TestSet, tuple[Question, ...]]:
    """The test set in ``folder``, and its questions: those with known answers, then those of ``unanswerable.jsonl``.

    Raises: UnreadableTestSet, also for a set that says of no question what its answer is.
    """
    test_set = read_test_set(folder)
    known = {str(row.get("_id")): _answers(where, row) for where, row in read_objects(folder / QUERIES)}
    answerable = tuple(
        Question(query.text, QuestionKind.ANSWERABLE, known[query.id]) for query in test_set.queries if known[query.id]
    )
    if not answerable:
        raise UnreadableTestSet(f'{folder / QUERIES} has no question with "answers": whole answers cannot be judged.')
    unanswerable = folder / UNANSWERABLE
    adversarial = tuple(
        Question(_string(where, row, "text"), QuestionKind.ADVERSARIAL)
        for where, row in (read_objects(unanswerable) if unanswerable.is_file() else ())
    )
    return test_set, answerable + adversarial


def read_question_file(path: Path) -> QuestionFile:
    """The questions of a JSON file ``{"questions": [...], "unanswerable": [...]}``, named after its folder.

    A question has ``question``, ``answer``, ``collection`` (a folder beside the file) and ``language``;
    an unanswerable one has ``question``, and ``"kind": "off_topic"`` unless it is adversarial.

    Raises: UnreadableTestSet.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UnreadableTestSet(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UnreadableTestSet(f"{path} is not JSON in UTF-8: {error}.") from error
    questions: list[Question] = []
    languages: dict[str, str] = {}
    for where, row in _listed(path, content, "questions"):
        languages.setdefault(_string(where, row, "collection"), _string(where, row, "language"))
        answers = (_string(where, row, "answer"),)
        questions.append(Question(_string(where, row, "question"), QuestionKind.ANSWERABLE, answers))
    if not questions:
        raise UnreadableTestSet(f'{path} holds no "questions".')
    for where, row in _listed(path, content, "unanswerable"):
        kind = QuestionKind.OFF_TOPIC if row.get("kind") == QuestionKind.OFF_TOPIC else QuestionKind.ADVERSARIAL
        questions.append(Question(_string(where, row, "question"), kind))
    collections = tuple(
        CollectionFolder(slug, path.parent / slug, language) for slug, language in sorted(languages.items())
    )
    for collection in collections:
        if not collection.folder.is_dir():
            raise UnreadableTestSet(f"There is no folder {collection.folder}, which {path} asks about.")
    return QuestionFile(path.resolve().parent.name, tuple(questions), collections)


def off_topic(sets: Sequence[TestSet], limit: int | None) -> tuple[Question, ...]:
    """The questions of other sets, at most ``limit`` in all, of each set about as many."""
    share = None if limit is None else -(-limit // max(1, len(sets)))
    taken = [query.text for of_set in sets for query in spread(of_set.queries, share)]
    return tuple(Question(text, QuestionKind.OFF_TOPIC) for text in taken[:limit])


def spread(elements: Sequence[Element], limit: int | None) -> list[Element]:
    """``limit`` of the elements, evenly from first to last; all when there are no more.

    The questions about one document stand together: the first N would be about a few documents.
    """
    if limit is None or limit >= len(elements):
        return list(elements)
    return [elements[number * len(elements) // limit] for number in range(limit)]


def _listed(path: Path, content: object, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    rows = content.get(key, []) if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableTestSet(f'{path} is not an object whose "{key}" is a list of objects.')
    for number, row in enumerate(rows, start=1):
        yield f"{path}, number {number} of {key}", row


def _string(where: str, row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UnreadableTestSet(f'{where}, has no "{key}", or one that is not a string.')
    return value


def _answers(where: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    answers = row.get("answers", [])
    if not isinstance(answers, list) or not all(isinstance(answer, str) and answer.strip() for answer in answers):
        raise UnreadableTestSet(f'{where}: "answers" is not a list of strings.')
    return tuple(answers)
