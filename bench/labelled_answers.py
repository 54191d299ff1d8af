"""Test how well `SupportScorer` detects answers that people labelled as hallucinated.

Labelled answers are JSON lines: `{"passages": [...], "answer", "hallucinated": true or false, "spans": [{"start",
"end"}, ...]}`. The spans are the words that people labelled. RAGTruth's responses have this format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bench.beir import name_line_in_errors, parse_strings, read_json_objects
from bench.reporting import Report
from chat.answering.checking.citations import blank_out_spans, find_cited_sentences, find_markers, group_markers
from chat.answering.checking.support import SentenceSupport, SupportScorer, estimate_groundedness, split_passage
from evaluation.exceptions import UnreadableTestSet

# Shorter overlaps, in characters, are ignored, because spans often include the full stop of another sentence.
LEAST_OVERLAP = 3

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer with its passages and labels by people. ``spans`` are starts and ends of the words they marked."""

    passages: tuple[str, ...]
    text: str
    hallucinated: bool
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    text: str
    judgement: SentenceSupport
    marked: bool


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    answer: LabelledAnswer
    sentences: tuple[JudgedSentence, ...]
    score: float


@dataclass(frozen=True, slots=True)
class UnsupportedSentenceCounts:
    sentences: int
    bad: int
    marked: int
    found: int

    @property
    def precision(self) -> float | None:
        return self.found / self.marked if self.marked else None

    @property
    def recall(self) -> float | None:
        return self.found / self.bad if self.bad else None


def read_labelled_answers(path: Path) -> tuple[LabelledAnswer, ...]:
    """Read the answers of a file, in order.

    Raises: UnreadableTestSet if a line is wrong, or if the file has no good or no bad answer.
    """
    answers = []
    for where, row in read_json_objects(path):
        with name_line_in_errors(where):
            spans = tuple((span["start"], span["end"]) for span in row.get("spans") or ())
            answers.append(LabelledAnswer(parse_strings(row["passages"]), row["answer"], row["hallucinated"], spans))
    if len({answer.hallucinated for answer in answers}) < 2:
        raise UnreadableTestSet(f"{path} needs an answer that is hallucinated and one that is not.")
    return tuple(answers)


def compute_supported_word_share(answer: LabelledAnswer) -> float:
    """Return the share of the answer's words that its passages contain; 1 for an answer without words.

    This simple measure is the baseline with which the site's measure of groundedness is compared.
    """
    words = _WORD.findall(answer.text.lower())
    held = set(_WORD.findall(" ".join(answer.passages).lower()))
    return sum(word in held for word in words) / len(words) if words else 1.0


def judge_answers(answers: Sequence[LabelledAnswer], report: Report = lambda *_: None) -> list[JudgedAnswer]:
    """Return the answers in order, with the support that the passages give to each sentence."""
    judged = []
    for passages, alike in groupby(answers, key=lambda answer: answer.passages):
        scorer = SupportScorer([split_passage(marker, text) for marker, text in enumerate(passages, start=1)])
        for answer in alike:
            judged.append(_judge_labelled_answer(answer, scorer))
            report("Answers judged", len(judged), len(answers))
    return judged


def _judge_labelled_answer(answer: LabelledAnswer, scorer: SupportScorer) -> JudgedAnswer:
    markers = find_markers(answer.text)
    plain = blank_out_spans(answer.text, [(marker.start, marker.end) for marker in markers])
    spans = [(sentence.start, sentence.end) for sentence in find_cited_sentences(answer.text, group_markers(markers))]
    sentences = tuple(
        JudgedSentence(answer.text[start:end], judgement, _is_in_labelled_span(answer, start, end))
        for start, end in spans
        if (judgement := scorer.score(plain[start:end])) is not None
    )
    return JudgedAnswer(answer, sentences, estimate_groundedness(each.judgement.support for each in sentences))


def _is_in_labelled_span(answer: LabelledAnswer, start: int, end: int) -> bool:
    return any(
        min(end, last) - max(start, first) >= min(LEAST_OVERLAP, last - first) > 0 for first, last in answer.spans
    )


def count_unsupported_sentences(judged: Sequence[JudgedAnswer]) -> UnsupportedSentenceCounts:
    sentences = [sentence for answer in judged for sentence in answer.sentences]
    doubted = [sentence for sentence in sentences if not sentence.judgement.is_supported]
    return UnsupportedSentenceCounts(
        sentences=len(sentences),
        bad=sum(sentence.marked for sentence in sentences),
        marked=len(doubted),
        found=sum(sentence.marked for sentence in doubted),
    )
