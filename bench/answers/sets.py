"""Questions for whole answers: answerable ones with their right answers, and unanswerable ones.

An unanswerable question is "off-topic" if it comes from another set. It is "adversarial" if it is about a subject of
the documents. Source of these two kinds: Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for
SQuAD", ACL 2018. Imports no Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from bench.beir import TestSet, name_line_in_errors, parse_strings, read_json_objects, read_test_set
from evaluation.exceptions import UnreadableTestSet
from evaluation.sets.beir_files import QUERIES

UNANSWERABLE = "unanswerable.jsonl"

Element = TypeVar("Element")


class QuestionKind(StrEnum):
    """Whether the documents answer a question, and if not, why."""

    ANSWERABLE = "answerable"
    ADVERSARIAL = "adversarial"
    OFF_TOPIC = "off_topic"


@dataclass(frozen=True, slots=True)
class Question:
    """A question. A right answer contains one of ``answers``, which are empty for an unanswerable question."""

    text: str
    kind: QuestionKind
    answers: tuple[str, ...] = ()


def read_beir_questions(folder: Path) -> tuple[TestSet, tuple[Question, ...]]:
    """Read the test set in ``folder`` and its questions; those in ``unanswerable.jsonl`` are unanswerable.

    Raises: UnreadableTestSet, also if no question has a right answer.
    """
    test_set, known = read_test_set(folder), {}
    for where, row in read_json_objects(folder / QUERIES):
        with name_line_in_errors(where):
            known[str(row["_id"])] = parse_strings(row.get("answers", []))
    answerable = tuple(
        Question(query.text, QuestionKind.ANSWERABLE, known[query.id]) for query in test_set.queries if known[query.id]
    )
    if not answerable:
        raise UnreadableTestSet(f'{folder / QUERIES} has no question with "answers": whole answers cannot be judged.')
    adversarial, unanswerable = [], folder / UNANSWERABLE
    for where, row in read_json_objects(unanswerable) if unanswerable.is_file() else ():
        with name_line_in_errors(where):
            adversarial.append(Question(row["text"], QuestionKind.ADVERSARIAL))
    return test_set, (*answerable, *adversarial)


def choose_off_topic_questions(sets: Sequence[TestSet], limit: int | None) -> tuple[Question, ...]:
    share = None if limit is None else -(-limit // max(1, len(sets)))
    taken = [query.text for of_set in sets for query in choose_evenly(of_set.queries, share)]
    return tuple(Question(text, QuestionKind.OFF_TOPIC) for text in taken[:limit])


def choose_evenly(elements: Sequence[Element], limit: int | None) -> list[Element]:
    """Return ``limit`` of the elements, evenly spaced, or all of them.

    The first ``limit`` elements would be less varied, because neighbours in a file are often about the same document.
    """
    if limit is None or limit >= len(elements):
        return list(elements)
    return [elements[number * len(elements) // limit] for number in range(limit)]
