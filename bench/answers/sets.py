"""Questions for whole answers: some that the documents answer, with what a right answer says, and some they do not.

Two kinds of questions have no answer: *off-topic* ones come from other sets; *adversarial* ones name the subject of the
documents, and ask what these do not say. Imports no Django.

Source of the distinction: Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL
2018.
"""

from __future__ import annotations

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
    """Whether the documents answer a question; if not, why it is asked."""

    ANSWERABLE = "answerable"
    ADVERSARIAL = "adversarial"
    OFF_TOPIC = "off_topic"


@dataclass(frozen=True, slots=True)
class Question:
    """``answers``: a right answer contains one of them. Empty where there is no answer."""

    text: str
    kind: QuestionKind
    answers: tuple[str, ...] = ()


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


def off_topic(sets: Sequence[TestSet], limit: int | None) -> tuple[Question, ...]:
    """The questions of other sets, at most ``limit`` in all, of each set about as many."""
    share = None if limit is None else -(-limit // max(1, len(sets)))
    taken = [query.text for of_set in sets for query in spread(of_set.queries, share)]
    return tuple(Question(text, QuestionKind.OFF_TOPIC) for text in taken[:limit])


def spread(elements: Sequence[Element], limit: int | None) -> list[Element]:
    """``limit`` of the elements, evenly spaced; all if there are no more.

    In a file, questions about one document are neighbours: the first N would be about a few documents.
    """
    if limit is None or limit >= len(elements):
        return list(elements)
    return [elements[number * len(elements) // limit] for number in range(limit)]
