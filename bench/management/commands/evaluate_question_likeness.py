"""How often the rule that gives an approved answer to a like question is right."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.reporting import table
from retrieval import conf
from retrieval.index.closeness import current_calibration
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand
from retrieval.text.questions import LEAST_LIKENESS, ask_alike, normalize

THRESHOLDS = (0.7, 0.8, 0.85, 0.9, 0.95)


class Command(PreparedCommand):
    help = (
        "Of the questions on each paragraph of SQuAD 2.0, compare each pair: those with an answer in common should get "
        "each other's approved answer, others should not. Articles take turns: half `a` chose the threshold."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="With queries.jsonl, qrels.tsv and unanswerable.jsonl.")

    def handle(self, *args: Any, **options: Any) -> None:
        calibration = current_calibration()
        if calibration is None:
            self.stderr.write("Nothing was fitted for this embedder: questions are compared by their words alone.")
            return
        questions = _read(options["folder"])
        bar = ProgressBar(self.stderr)
        vectors = []
        for text, _paragraph, _answers in questions:
            vectors.append(conf.embedder().embed_query(text))
            bar.show("questions", len(vectors), len(questions))
        bar.clear()
        cosines = np.stack(vectors) @ np.stack(vectors).T
        places = defaultdict(list)
        for place, (_text, paragraph, _answers) in enumerate(questions):
            places[paragraph].append(place)
        articles = sorted({paragraph.partition("#")[0] for paragraph in places})
        rows = []
        for half in (0, 1):
            own = [paragraph for paragraph in places if articles.index(paragraph.partition("#")[0]) % 2 == half]
            pairs = [(one, other) for paragraph in own for one in places[paragraph] for other in places[paragraph]]
            pairs = [(one, other) for one, other in pairs if questions[one][2] and _differ(questions, one, other)]
            same: list[float] = []
            others: list[float] = []
            unanswerable: list[float] = []
            for one, other in pairs:
                answers = questions[other][2]
                kept = same if questions[one][2] & answers else others if answers else unanswerable
                alike = ask_alike(questions[one][0], questions[other][0])
                kept.append(calibration.likeness(float(cosines[one, other])) if alike else -1.0)
            for threshold in THRESHOLDS:
                right, wrong, tricked = (sum(x >= threshold for x in kept) for kept in (same, others, unanswerable))
                shown = f"{threshold:g}{' (the rule)' if threshold == LEAST_LIKENESS else ''}"
                precision = f"{right / max(1, right + wrong):.2f}"
                parts = ((right, same), (wrong, others), (tricked, unanswerable))
                rows.append(["ab"[half], shown, *(f"{n} of {len(kept):,}" for n, kept in parts), precision])
        heads = ["half", "likeness", "same answer", "another answer", "unanswerable twin", "precision"]
        self.stdout.write(table(heads, rows))


def _read(folder: Path) -> list[tuple[str, str, frozenset[str]]]:
    """Questions with their paragraphs and answers; unanswerable ones have none."""
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    paragraphs = {query: paragraph for query, paragraph, _score in judged}
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    unanswerable = [json.loads(line) for line in (folder / "unanswerable.jsonl").read_text().splitlines()]
    return [(each["text"], paragraphs[each["_id"]], frozenset(map(normalize, each["answers"]))) for each in asked] + [
        (each["text"], each["paragraph_id"], frozenset()) for each in unanswerable
    ]


def _differ(questions: list[tuple[str, str, frozenset[str]]], one: int, other: int) -> bool:
    return one != other and normalize(questions[one][0]) != normalize(questions[other][0])
