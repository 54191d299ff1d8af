"""Ask questions from a file, each with what a right answer must contain, and give points to the answers.

Each line of the file is a JSON object:

- ``id``, ``question`` and ``kind``;
- ``collection``: the collection's name, by default ``corpus``; empty: all collections;
- ``must``, ``must_not`` and ``max_chars`` (see :mod:`evaluation.expectations`); ``must`` is ``["REFUSE"]`` if the
  documents do not answer the question;
- ``after``: the id of the previous question in the conversation;
- ``key``: the right answer in a sentence, with its files in brackets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.beir import name_line_in_errors, read_json_objects
from evaluation.exceptions import UnreadableTestSet
from evaluation.expectations import AnswerExpectations, Grade, grade_answer
from evaluation.sets.beir_files import read_answer_expectations
from evaluation.statistics import Interval, Percentiles, mean_interval, percentiles

REFUSE = ["REFUSE"]
NEAR_MISS, OFF_TOPIC = "near_miss", "off_topic"
_FILES = re.compile(r"\(([^()]+)\)\s*$")
_NUMBER = re.compile(r"^\d{1,3}[\s_.-]+")
_TITLE = re.compile(r"^title:\s*\"?(.+?)\"?\s*$|^#+\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class AnswerKeyFile:
    """A document that contains the right answer, with its possible titles in the form of :func:`normalize_title`.

    ``titles`` is empty if the document's file is missing. Then :meth:`has_title` accepts any title that contains all
    words of the file's name.
    """

    name: str
    titles: frozenset[str] = frozenset()

    def has_title(self, title: str) -> bool:
        plain = normalize_title(title)
        if self.titles:
            return plain in self.titles
        return set(normalize_title(_strip_file_name(self.name)).split()) <= set(plain.split())


@dataclass(frozen=True)
class GradedQuestion:
    """A question with what a right answer must contain. An empty ``collection`` means all collections."""

    id: str
    corpus: str
    collection: str
    text: str
    kind: str
    expected: AnswerExpectations
    after: str = ""
    key: str = ""
    files: tuple[AnswerKeyFile, ...] = ()


@dataclass(frozen=True)
class AnswerReply:
    """The reply to a question.

    ``beside`` are the other texts on the answer's page, ``cited`` the titles of the cited documents.
    """

    text: str = ""
    refused: bool = False
    beside: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    completed_question: str = ""
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class GradedReply:
    question: GradedQuestion
    reply: AnswerReply
    grade: Grade

    @property
    def points(self) -> int:
        return self.grade.points

    def as_json(self) -> dict[str, object]:
        question, reply = self.question, self.reply
        return {
            "id": question.id,
            "corpus": question.corpus,
            "kind": question.kind,
            "question": question.text,
            "score": self.points,
            "refused": reply.refused,
            "on_page": self.grade.is_on_page,
            "chars": self.grade.length,
            "max_chars": question.expected.longest,
            "missing": self.grade.missing,
            "forbidden": self.grade.forbidden,
            "answer": reply.text,
            "cited": reply.cited,
            "completed_question": reply.completed_question,
            "key": question.key,
            "seconds": round(reply.seconds, 2),
            "error": reply.error,
        }


@dataclass(frozen=True)
class GradedAnswerRun:
    """All graded replies to the questions of a file. A share is None if it cannot be computed."""

    replies: tuple[GradedReply, ...] = field(repr=False)

    @cached_property
    def question_kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.question.kind for each in self.replies))

    @cached_property
    def corpora(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.question.corpus for each in self.replies))

    def compute_mean_points(self, *, kind: str = "", corpus: str = "") -> Interval | None:
        return _compute_mean(each.points for each in self.filter_replies(kind=kind, corpus=corpus))

    def filter_replies(self, *, kind: str = "", corpus: str = "") -> list[GradedReply]:
        return [
            each for each in self.replies if kind in ("", each.question.kind) and corpus in ("", each.question.corpus)
        ]

    def compute_outcome_shares(self) -> dict[str, Interval | None]:
        answerable = [each for each in self.replies if not each.question.expected.refusal]
        return {
            "zeros": _compute_mean(each.points == 0 for each in self.replies),
            "near_misses_refused": _compute_mean(each.reply.refused for each in self.filter_replies(kind=NEAR_MISS)),
            "off_topic_refused": _compute_mean(each.reply.refused for each in self.filter_replies(kind=OFF_TOPIC)),
            "wrongly_refused": _compute_mean(each.reply.refused for each in answerable),
            "on_page": _compute_mean(each.grade.is_on_page for each in answerable),
            "too_long": _compute_mean(_is_complete_answer(each) and each.grade.is_too_long for each in answerable),
            "failed": _compute_mean(bool(each.reply.error) for each in self.replies),
        }

    def compute_wait_percentiles(self) -> Percentiles | None:
        waits = [each.reply.seconds for each in self.replies if not each.reply.error]
        return percentiles(waits) if waits else None


def grade_reply(question: GradedQuestion, reply: AnswerReply) -> GradedReply:
    if reply.error:
        return GradedReply(question, reply, Grade(0))
    cites_expected = any(file.has_title(title) for title in reply.cited for file in question.files)
    points = grade_answer(
        reply.text,
        refused=reply.refused,
        expected=question.expected,
        cites_expected=cites_expected,
        beside=reply.beside,
    )
    return GradedReply(question, reply, points)


def read_graded_questions(path: Path) -> tuple[GradedQuestion, ...]:
    """Read the questions of a file. Their documents are in the same folder. Raises: UnreadableTestSet."""
    questions: dict[str, GradedQuestion] = {}
    for where, row in read_json_objects(path):
        with name_line_in_errors(where):
            question = _read_question(where, row, path.parent)
        if question.id in questions:
            raise UnreadableTestSet(f'{where}: the "id" {question.id!r} is there a second time.')
        if question.after and question.after not in questions:
            raise UnreadableTestSet(f'{where}: the question {question.after!r} of "after" is not above it.')
        questions[question.id] = question
    if not questions:
        raise UnreadableTestSet(f"{path} holds no questions.")
    return tuple(questions.values())


def normalize_title(title: str) -> str:
    bare = (each for each in unicodedata.normalize("NFKD", title.casefold()) if not unicodedata.combining(each))
    return " ".join(re.findall(r"[a-z0-9]+", "".join(bare)))


def _read_question(where: str, row: Mapping[str, Any], folder: Path) -> GradedQuestion:
    refusal = row["must"] == REFUSE
    expected = read_answer_expectations(where, {**row, "must": []} if refusal else row, refusal=refusal)
    if not refusal and not expected.must:
        raise UnreadableTestSet(f'{where}, says nothing that the answer "must" hold.')
    corpus, key = row.get("corpus", ""), row.get("key", "")
    names = _FILES.search(key)
    files = (
        tuple(_read_answer_key_file(folder, name.strip()) for name in names[1].split(";"))
        if names and not refusal
        else ()
    )
    return GradedQuestion(
        row["id"], corpus, row.get("collection", corpus), row["question"], row["kind"], expected,
        row.get("after", ""), key, files,
    )  # fmt: skip


def _read_answer_key_file(folder: Path, name: str) -> AnswerKeyFile:
    path = folder / name
    if not path.is_file():
        return AnswerKeyFile(name)
    titles = {_strip_file_name(name), Path(name).name}
    if path.suffix == ".md":
        # The title may be in the front matter, or be the first heading.
        found = _TITLE.findall(path.read_text(encoding="utf-8", errors="replace"))
        titles.update(next((title for title, _ in found if title), "").splitlines())
        titles.update(next((heading for _, heading in found if heading), "").splitlines())
    return AnswerKeyFile(name, frozenset(filter(None, map(normalize_title, titles))))


def _strip_file_name(name: str) -> str:
    return _NUMBER.sub("", Path(name).stem)


def _is_complete_answer(graded: GradedReply) -> bool:
    return graded.grade.is_complete and not graded.reply.refused and not graded.reply.error


def _compute_mean(values: Iterable[float]) -> Interval | None:
    listed: Sequence[float] = list(values)
    return mean_interval(listed) if listed else None


# The type of functions that ask a question and return the reply. A follow-up question is asked in the conversation of
# the question before it.
Ask = Callable[[GradedQuestion], AnswerReply]


def ask_graded_questions(
    questions: Sequence[GradedQuestion], ask: Ask, report: Callable[[int, GradedReply], None]
) -> GradedAnswerRun:
    """Ask all questions, one after another. ``report`` is called with the number, from 1, and the graded reply."""
    replies = []
    for number, question in enumerate(questions, start=1):
        replies.append(grade_reply(question, ask(question)))
        report(number, replies[-1])
    return GradedAnswerRun(tuple(replies))
