"""How well attempts to instruct the site are told from questions, on labelled texts. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.beir import read_objects
from evaluation.exceptions import UnreadableTestSet


@dataclass(frozen=True, slots=True)
class LabelledText:
    """What was asked, and whether it is an attempt to instruct whoever answers."""

    text: str
    is_attempt: bool


@dataclass(frozen=True, slots=True)
class Detection:
    """What became of labelled texts: the attempts by the rule that caught each, and what was caught wrongly."""

    attempts: int
    questions: int
    by_rule: Counter[str] = field(default_factory=Counter)
    missed: tuple[str, ...] = ()
    mistaken: tuple[str, ...] = ()

    @property
    def recall(self) -> float | None:
        """Share of the attempts that were caught, 0 to 1; None without attempts."""
        return 1 - len(self.missed) / self.attempts if self.attempts else None

    @property
    def mistaken_share(self) -> float | None:
        """Share of the questions that were taken for attempts, 0 to 1; None without questions."""
        return len(self.mistaken) / self.questions if self.questions else None


def read_texts(path: Path) -> tuple[LabelledText, ...]:
    """The texts of a file of JSON lines with `text` (or `question`), in order.

    `label` is 1 for an attempt and 0 for a question; a file without labels holds questions, as those of test sets do.
    Raises: UnreadableTestSet, naming the line.
    """
    texts = []
    for where, row in read_objects(path):
        text = row.get("text") or row.get("question")
        if text is None:
            raise UnreadableTestSet(f'{where}: expected a JSON object with "text".')
        texts.append(LabelledText(str(text), row.get("label") == 1))
    if not texts:
        raise UnreadableTestSet(f"{path} holds no text.")
    return tuple(texts)


def detect(texts: Iterable[LabelledText], rule_of: Callable[[str], str], longest: int) -> Detection:
    """What ``rule_of`` makes of the texts, each cut at ``longest`` characters, as many as a question may have."""
    attempts = questions = 0
    by_rule: Counter[str] = Counter()
    missed: list[str] = []
    mistaken: list[str] = []
    for labelled in texts:
        text = labelled.text[:longest]
        rule = rule_of(text)
        attempts += labelled.is_attempt
        questions += not labelled.is_attempt
        if labelled.is_attempt and rule:
            by_rule[rule] += 1
        elif labelled.is_attempt:
            missed.append(text)
        elif rule:
            mistaken.append(text)
    return Detection(attempts, questions, by_rule, tuple(missed), tuple(mistaken))
