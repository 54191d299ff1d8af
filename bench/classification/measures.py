"""How often questions are put into the right class, and which classes are taken for which. PURE.

Labelled questions are JSON lines: `{"question", "class", "language", "split"}`. The rules may be written by looking at
the split "tuning" only; a figure counts when it comes from "held-out".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.beir import read_objects
from evaluation.exceptions import UnreadableTestSet
from evaluation.statistics import Interval, mean_interval
from retrieval.types import Classification, QueryClass

SHIPPED = Path(__file__).with_name("query_classes.jsonl")
LANGUAGES = ("english", "dutch")
TUNING, HELD_OUT = "tuning", "held-out"
SPLITS = (TUNING, HELD_OUT)


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and the class that its label says."""

    text: str
    query_class: QueryClass
    language: str
    split: str


@dataclass(frozen=True, slots=True)
class ClassifiedQuestion:
    """A labelled question and what the classifier made of it."""

    question: LabelledQuestion
    classification: Classification

    @property
    def correct(self) -> bool:
        return self.classification.query_class is self.question.query_class


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
    """``counts[actual, predicted]`` of classified questions; a pair that never occurred is left out."""

    counts: Mapping[tuple[QueryClass, QueryClass], int]

    def row(self, actual: QueryClass) -> tuple[int, ...]:
        """How often questions of this class were given each class, in the order of QueryClass."""
        return tuple(self.counts.get((actual, predicted), 0) for predicted in QueryClass)

    def recall(self, actual: QueryClass) -> float | None:
        """Share of the questions of this class that were recognised, 0 to 1; None when there are none."""
        return _share(self.counts.get((actual, actual), 0), sum(self.row(actual)))

    def precision(self, predicted: QueryClass) -> float | None:
        """Share of the questions given this class that belong to it, 0 to 1; None when it was never given."""
        given = sum(self.counts.get((actual, predicted), 0) for actual in QueryClass)
        return _share(self.counts.get((predicted, predicted), 0), given)


def read_labelled_questions(path: Path) -> tuple[LabelledQuestion, ...]:
    """The labelled questions of a file in their order; blank lines are passed over.

    Raises: UnreadableTestSet for a file that is absent, empty or not UTF-8, and for a line that is not what it should
    be or repeats an earlier question of its language, naming the line.
    """
    questions: dict[tuple[str, str], LabelledQuestion] = {}
    for where, row in read_objects(path):
        question = _labelled_question(where, row)
        key = (question.language, question.text.casefold())
        if key in questions:
            # The same question in both halves would be tuned on and tested with.
            raise UnreadableTestSet(f"{where}: the question {question.text!r} is there a second time.")
        questions[key] = question
    if not questions:
        raise UnreadableTestSet(f"{path} holds no question.")
    return tuple(questions.values())


def classify_all(
    questions: Iterable[LabelledQuestion], classifier: Callable[[str], Classification]
) -> tuple[ClassifiedQuestion, ...]:
    """Each question with the classifier's answer, in the same order."""
    return tuple(ClassifiedQuestion(question, classifier(question.text)) for question in questions)


def accuracy(classified: Sequence[ClassifiedQuestion]) -> Interval:
    """Share of questions given their own class, with its 95 % bootstrap interval. Raises: ValueError for none."""
    return mean_interval([float(question.correct) for question in classified])


def confusion_matrix(classified: Iterable[ClassifiedQuestion]) -> ConfusionMatrix:
    """How often questions of each class were given each class; nothing but zeros for no questions."""
    return ConfusionMatrix(
        Counter((question.question.query_class, question.classification.query_class) for question in classified)
    )


def groups(classified: Sequence[ClassifiedQuestion]) -> dict[str, tuple[ClassifiedQuestion, ...]]:
    """The questions as a whole, of each split, and of each language within a split, without the empty groups."""
    found = {"all": tuple(classified)}
    for split in SPLITS:
        found[split] = tuple(one for one in classified if one.question.split == split)
        for language in LANGUAGES:
            found[f"{split}, {language}"] = tuple(one for one in found[split] if one.question.language == language)
    return {name: members for name, members in found.items() if members}


def _labelled_question(where: str, row: Mapping[str, object]) -> LabelledQuestion:
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UnreadableTestSet(f'{where}, has no "question", or an empty one.')
    return LabelledQuestion(
        text,
        QueryClass(_one_of(where, row, "class", [query_class.value for query_class in QueryClass])),
        _one_of(where, row, "language", LANGUAGES),
        _one_of(where, row, "split", SPLITS),
    )


def _one_of(where: str, row: Mapping[str, object], key: str, allowed: Sequence[str]) -> str:
    value = row.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise UnreadableTestSet(f'{where}: the "{key}" is one of {", ".join(allowed)}, not {value!r}.')
    return value


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
