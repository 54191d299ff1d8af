"""How well the documents of follow-up questions are found, and whether questions that stand alone are disturbed."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.beir import CorpusDocument, JudgedQuery, TestSet, read_objects, read_test_set
from bench.corpora import configuration_of, load
from evaluation.exceptions import EvaluationError
from evaluation.statistics import percentiles
from retrieval.infrastructure.progress import ProgressBar
from retrieval.models import Chunk
from retrieval.search.pipeline import search
from retrieval.types import SearchFilters, Turn

DEPTH = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the turns before it, its relevant documents, and the group that it is counted in."""

    group: str
    question: str
    history: tuple[Turn, ...]
    relevant: frozenset[str]


class Command(BaseCommand):
    help = (
        "Search the last questions of conversations (MTRAG's form) with and without the turns before them, and the "
        "queries of a BEIR-form folder, which stand alone, after three other queries. Prints recall of the relevant "
        "documents at 5 and 10, the mean reciprocal rank, and milliseconds."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tasks", type=Path, metavar="FILE", help="JSON lines: _id, question, history, contexts.")
        parser.add_argument(
            "folder", type=Path, metavar="DIR", help="A set in BEIR's form: corpus, queries, judgements."
        )
        parser.add_argument("--limit", type=int, default=200, help="Queries of the folder that are asked.")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            alone = read_test_set(options["folder"])
            documents, asked = _read(options["tasks"], alone, options["limit"])
            corpus = TestSet("follow-ups", documents, alone.queries)
            collection = load(
                corpus, configuration=configuration_of(corpus), chunked=False, report=ProgressBar(self.stderr).show
            )
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        filters = SearchFilters(collections=(collection.pk,))
        sources = dict(Chunk.objects.filter(collection=collection).values_list("pk", "document__source"))
        found = {
            way: [_measure(each, filters, sources, each.history if way == "with" else ()) for each in asked]
            for way in ("without", "with")
        }
        figures = {
            group: {
                way: _summary([values for each, values in zip(asked, found[way], strict=True) if each.group == group])
                for way in found
            }
            for group in sorted({each.group for each in asked})
        }
        if options["json"]:
            self.stdout.write(json.dumps(figures))
            return
        for group, ways in figures.items():
            for way, values in ways.items():
                told = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
                self.stdout.write(f"{group:22} {way:8} {told}")


def _read(tasks: Path, alone: TestSet, limit: int) -> tuple[tuple[CorpusDocument, ...], list[Asked]]:
    """The documents of both, and their questions. Follow-ups are in one of two halves, by their conversation.

    Raises: UnreadableTestSet.
    """
    documents = {document.id: document for document in alone.documents}
    asked = []
    for _, task in read_objects(tasks):
        contexts = {f"task-{each['_id']}": each["text"] for each in task["contexts"]}
        documents |= {pk: CorpusDocument(pk, "", text) for pk, text in contexts.items()}
        if contexts and task["history"]:
            half = int(hashlib.md5(task["_id"].partition("<")[0].encode()).hexdigest(), 16) % 2
            asked.append(Asked(f"follow-ups, half {half}", task["question"], _turns(task), frozenset(contexts)))
    step = max(1, len(alone.queries) // limit)
    for place, query in enumerate(alone.queries[::step][:limit]):
        relevant = frozenset(pk for pk, grade in query.grades.items() if grade > 0)
        asked.append(Asked("stand alone", query.text, _others(alone.queries, place * step), relevant))
    return tuple(documents.values()), asked


def _turns(task: Mapping[str, Any]) -> tuple[Turn, ...]:
    said = [(turn["speaker"], turn["text"]) for turn in task["history"]]
    questions = [place for place, (speaker, _) in enumerate(said) if speaker == "user"]
    return tuple(Turn(said[at][1], " ".join(text for _, text in said[at + 1 : at + 2])) for at in questions)


def _others(queries: Sequence[JudgedQuery], place: int) -> tuple[Turn, ...]:
    """Three queries that follow one another in the set, half of it away from the one at ``place``."""
    first = (place + len(queries) // 2) % len(queries)
    return tuple(Turn(query.text) for query in queries[first : first + 3])


def _measure(
    asked: Asked, filters: SearchFilters, sources: Mapping[int, str], history: Sequence[Turn]
) -> dict[str, float]:
    result = search(asked.question, filters, top_k=DEPTH, history=history)
    found = list(dict.fromkeys(sources[hit.passage.chunk_id] for hit in result.hits))
    ranks = [rank for rank, source in enumerate(found, start=1) if source in asked.relevant]
    return {
        "recall@5": sum(rank <= 5 for rank in ranks) / len(asked.relevant),
        "recall@10": len(ranks) / len(asked.relevant),
        "mrr@10": 1 / min(ranks) if ranks else 0.0,
        "milliseconds": result.trace.timings_ms["total"],
    }


def _summary(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    means = {name: sum(each[name] for each in found) / len(found) for name in ("recall@5", "recall@10", "mrr@10")}
    taken = percentiles([each["milliseconds"] for each in found])
    return {"questions": len(found), **means, "p50_ms": taken.p50, "p95_ms": taken.p95}
