"""Statements that a passage bears out, and the same altered so that it does not: labels without people. PURE.

They are made of a test set in BEIR's form whose queries come with `"answers"`, in English or Dutch. A true statement is
a sentence of the passage that holds the answer, its clauses in another order, so that it stands nowhere word for word;
or a question behind its answer, which is said in words of its own. The seed is fixed: the same set gives the same
statements.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.beir import read_objects, read_test_set
from bench.reporting import Report
from bench.statistics import auroc
from chat.answering.support import Statement, SupportScorer, cut_passage
from evaluation.exceptions import UnreadableTestSet
from evaluation.sets.beir_files import QUERIES
from retrieval.text.sentences import split_sentences

SEED = 20_000
LEAST_WORDS = 3


class Alteration(StrEnum):
    """What was done to a statement. ``ANSWER``: the question stands behind another's answer of the same kind."""

    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    ELSEWHERE = "elsewhere"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class AlteredStatement:
    """A statement, the passage it is held against, and whether that bears it out.

    A true one is what the false ones of its ``group`` are compared with.
    """

    text: str
    passage: str
    is_true: bool
    group: str
    alteration: Alteration | None = None


_NUMBER = re.compile(r"[$€£]?\d[\d.,:]*(?: (?:percent|procent|million|miljoen))?%?")
_VERB = {
    "en": re.compile(r"\b(is|are|was|were|has been|have been|can|could|will|would|may|must|should)\b(?! not\b)"),
    "nl": re.compile(r"\b(is|zijn|was|waren|werd|werden|wordt|worden|kan|kunnen|heeft|had|hebben)\b(?! niet\b)"),
}
_NOT = {"en": "not", "nl": "niet"}
_SENTENCES, _QUESTIONS = "sentence", "question"


def altered_statements(folder: Path, limit: int) -> list[AlteredStatement]:
    """True and altered statements of at most ``limit`` sentences of a test set. Raises: UnreadableTestSet."""
    test_set = read_test_set(folder)
    answers = _answers(folder / QUERIES)
    chance = random.Random(SEED)
    texts = {document.id: document.text for document in test_set.documents}
    pool = sorted({answer for answer in answers.values() if _kind(answer) is not None})
    queries = [query for query in test_set.queries if query.id in answers]
    chance.shuffle(queries)
    language = "nl" if test_set.name.endswith(("_nl", "-nl")) or test_set.language in {"nl", "dutch"} else "en"
    made: list[AlteredStatement] = []
    seen: set[str] = set()
    for query in queries:
        if len(seen) >= limit:
            break
        answer = answers[query.id]
        relevant = (document for document, grade in query.grades.items() if grade > 0)
        passage = next((texts[document] for document in relevant if document in texts), "")
        sentence = next((text for text in _sentences(passage) if answer in text), "")
        if not _retold(sentence) or sentence in seen:
            continue
        seen.add(sentence)
        made += _of_sentence(sentence, answer, passage, pool, language, chance)
        elsewhere = chance.choice(_sentences(chance.choice(list(texts.values()))) or [""])
        if elsewhere and elsewhere not in passage:
            made.append(AlteredStatement(elsewhere, passage, False, _SENTENCES, Alteration.ELSEWHERE))
        made += _of_question(query.text, answer, passage, pool, chance)
    if not made:
        raise UnreadableTestSet(f'{folder} has no query with "answers" that stand in its document.')
    return made


def areas(
    statements: Sequence[AlteredStatement], report: Report = lambda *_: None
) -> dict[Alteration, tuple[float, int]]:
    """For each alteration, how well support tells it from what is true (AUROC), and how many there are of it.

    What claims nothing that can be checked is left out.
    """
    judged: list[tuple[AlteredStatement, float]] = []
    for number, statement in enumerate(statements, start=1):
        scorer = SupportScorer([cut_passage(1, statement.passage)])
        (judgement,) = scorer.score([Statement(statement.text, (1,))])
        if judgement is not None:
            judged.append((statement, judgement.support))
        report("Altered statements judged", number, len(statements))
    found = {}
    for alteration in Alteration:
        group = _QUESTIONS if alteration is Alteration.ANSWER else _SENTENCES
        compared = [row for row in judged if row[0].group == group and row[0].alteration in {None, alteration}]
        false = [not statement.is_true for statement, _ in compared]
        if any(false) and not all(false):
            found[alteration] = (auroc(false, [-value for _, value in compared]), sum(false))
    return found


def _of_sentence(
    sentence: str, answer: str, passage: str, pool: Sequence[str], language: str, chance: random.Random
) -> Iterator[AlteredStatement]:
    yield AlteredStatement(_retold(sentence), passage, True, _SENTENCES)
    kind = _kind(answer)
    other = _another(answer, passage, pool, chance)
    if kind is not None and other:
        changed = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", lambda _: other, sentence)
        if changed != sentence:
            yield AlteredStatement(_retold(changed) or changed, passage, False, _SENTENCES, kind)
    negated = _VERB[language].sub(lambda verb: f"{verb[0]} {_NOT[language]}", sentence, count=1)
    if negated != sentence:
        yield AlteredStatement(_retold(negated) or negated, passage, False, _SENTENCES, Alteration.NEGATION)


def _of_question(
    question: str, answer: str, passage: str, pool: Sequence[str], chance: random.Random
) -> Iterator[AlteredStatement]:
    asked = question.strip().rstrip("?").strip()
    other = _another(answer, passage, pool, chance)
    if other:
        yield AlteredStatement(f"{answer}: {asked}.", passage, True, _QUESTIONS)
        yield AlteredStatement(f"{other}: {asked}.", passage, False, _QUESTIONS, Alteration.ANSWER)


def _another(answer: str, passage: str, pool: Sequence[str], chance: random.Random) -> str:
    """An answer of the same kind that the passage does not hold; empty when there is none, or the kind is not known."""
    kind = _kind(answer)
    others = [each for each in pool if _kind(each) is kind and each not in passage and answer not in each]
    return chance.choice(others) if kind is not None and others else ""


def _kind(answer: str) -> Alteration | None:
    if _NUMBER.fullmatch(answer):
        return Alteration.NUMBER
    words = [word for word in answer.split() if len(word) > 3]
    if words and not re.search(r"\d", answer) and all(word[0].isupper() for word in words):
        return Alteration.NAME
    return None


def _retold(sentence: str) -> str:
    """The clauses around the first comma in the other order; empty for a sentence without two."""
    first, _, second = sentence.rstrip(".!? ").partition(", ")
    if len(first.split()) < LEAST_WORDS - 1 or len(second.split()) < LEAST_WORDS:
        return ""
    lowered = first if first[:2].isupper() else first[0].lower() + first[1:]
    return f"{second[0].upper()}{second[1:]}, {lowered}."


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in split_sentences(text, 0, len(text))]


def _answers(path: Path) -> Mapping[str, str]:
    """The first answer of each query that has one."""
    given = ((str(row["_id"]), row.get("answers")) for _where, row in read_objects(path))
    return {query: str(answers[0]) for query, answers in given if isinstance(answers, list) and answers}
