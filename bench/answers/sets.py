"""Questions for whole answers: some that the documents answer, with what a right answer says, and some they do not.

Two kinds of questions have no answer, and are kept apart: *off-topic* ones, taken from other sets, and *adversarial*
ones, which name what the documents are about and ask what they do not tell. Imports no Django.

Source of the distinction: Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL
2018.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from bench.beir import TestSet, naming, read_objects, read_test_set, strings
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
    test_set, known = read_test_set(folder), {}
    for where, row in read_objects(folder / QUERIES):
        with naming(where):
            known[str(row["_id"])] = strings(row.get("answers", []))
    answerable = tuple(
        Question(query.text, QuestionKind.ANSWERABLE, known[query.id]) for query in test_set.queries if known[query.id]
    )
    if not answerable:
        raise UnreadableTestSet(f'{folder / QUERIES} has no question with "answers": whole answers cannot be judged.')
    adversarial, unanswerable = [], folder / UNANSWERABLE
    for where, row in read_objects(unanswerable) if unanswerable.is_file() else ():
        with naming(where):
            adversarial.append(Question(row["text"], QuestionKind.ADVERSARIAL))
    return test_set, (*answerable, *adversarial)


def read_question_file(path: Path) -> QuestionFile:
    """The questions of a JSON file ``{"questions": [...], "unanswerable": [...]}``, named after its folder.

    A question has ``question``, ``answer``, ``collection`` (a folder beside the file) and ``language``;
    an unanswerable one has ``question``, and ``"kind": "off_topic"`` unless it is adversarial.

    Raises: UnreadableTestSet, OSError.
    """
    questions: list[Question] = []
    languages: dict[str, str] = {}
    with naming(str(path)):
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        for row in content["questions"]:
            languages.setdefault(row["collection"], row["language"])
            questions.append(Question(row["question"], QuestionKind.ANSWERABLE, (row["answer"],)))
        for row in content.get("unanswerable", []):
            kind = QuestionKind.OFF_TOPIC if row.get("kind") == QuestionKind.OFF_TOPIC else QuestionKind.ADVERSARIAL
            questions.append(Question(row["question"], kind))
    if not languages:
        raise UnreadableTestSet(f'{path} holds no "questions".')
    collections = tuple(
        CollectionFolder(slug, path.parent / slug, language) for slug, language in sorted(languages.items())
    )
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
