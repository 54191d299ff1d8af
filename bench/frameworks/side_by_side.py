"""This site's search beside LangChain's EnsembleRetriever and LlamaIndex's QueryFusionRetriever, in one run.

make bench-frameworks, or .venv/bin/python -m bench.frameworks.side_by_side --python PATH [--sets DIR...]

All three get the same passages, the same vectors and the same questions, whose vectors are known before the clock
starts. Sets in BEIR form tell how good the rankings are, made-up passages (`benchmark_search`) how long they take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
OURS = "this site"
QUESTIONS = 100
# The slowest of the three takes seconds a question over 100,000 passages.
QUESTIONS_TIMED = 15
TOP_K = 10
COMMON = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}


@dataclass(frozen=True, slots=True)
class Material:
    """Passages with their chunk ids, and questions with the grades of chunks; empty where nothing is known."""

    name: str
    collection: int
    chunk_ids: Sequence[int]
    texts: Sequence[str]
    questions: Sequence[str]
    grades: Sequence[Mapping[int, int]]


def of_set(folder: Path) -> Material:
    from bench.beir import read_test_set
    from bench.corpora import configuration_of, load
    from retrieval.models import Chunk

    test_set = read_test_set(folder)
    collection = load(test_set, configuration=configuration_of(test_set), chunked=False, report=lambda *_: None)
    rows = Chunk.objects.filter(collection=collection).order_by("pk")
    sources = dict(rows.values_list("document__source", "pk"))
    texts = [f"{title}\n{content}" for title, content in rows.values_list("document__title", "content")]
    asked = test_set.queries[:QUESTIONS]
    grades = [{sources[pk]: grade for pk, grade in query.grades.items() if pk in sources} for query in asked]
    return Material(test_set.name, collection.pk, sorted(sources.values()), texts, [q.text for q in asked], grades)


def of_size(chunks: int) -> Material:
    from bench.speed.search_corpus import load
    from retrieval.models import Chunk

    loaded = load(chunks, lambda *_: None)
    rows = Chunk.objects.filter(collection=loaded.collection).order_by("pk").values_list("pk", "content")
    ids, texts = zip(*rows, strict=True)
    questions = loaded.corpus.questions(QUESTIONS_TIMED)
    return Material(f"{chunks:,} made up", loaded.collection.pk, ids, texts, questions, [{}] * len(questions))


def ours(material: Material) -> tuple[list[float], list[list[int]]]:
    from django.contrib.auth.models import AnonymousUser

    from retrieval.index.active_embedder import encode_query
    from retrieval.rights import readers_in
    from retrieval.search.pipeline import search
    from retrieval.types import SearchFilters

    searched = (material.collection,)
    filters = SearchFilters(collections=searched, readers=readers_in(searched, AnonymousUser()))
    for question in material.questions[:3]:
        search(question, filters)
    milliseconds, ranked = [], []
    for question in material.questions:
        encode_query(question)
        started = time.perf_counter()
        hits = search(question, filters, top_k=TOP_K).hits
        milliseconds.append((time.perf_counter() - started) * 1000)
        ranked.append([hit.passage.chunk_id for hit in hits])
    return milliseconds, ranked


def theirs(material: Material, python: Path) -> Iterator[tuple[str, list[float], list[list[int]]]]:
    from retrieval.index.active_embedder import active_embedder, encode_query
    from retrieval.search.passage_rows import load_stored

    vectors = []
    for start in range(0, len(material.chunk_ids), 5000):
        part = material.chunk_ids[start : start + 5000]
        stored = load_stored(part, active_embedder().pk, terms=False)
        vectors += [stored[pk].vector for pk in part]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "passages.json").write_text(json.dumps(list(material.texts)))
        (folder / "questions.json").write_text(json.dumps(list(material.questions)))
        np.save(folder / "vectors.npy", np.stack(vectors))
        np.save(folder / "question_vectors.npy", np.stack([encode_query(each) for each in material.questions]))
        script = Path(__file__).with_name("theirs.py")
        done = subprocess.run(
            [str(python), str(script), made], capture_output=True, text=True, check=False, env={**os.environ, **COMMON}
        )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    for name, told in json.loads(done.stdout.splitlines()[-1]).items():
        ranked = [[material.chunk_ids[place] for place in places] for places in told["ranked"]]
        yield name, told["milliseconds"], ranked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="The interpreter of the frameworks' environment.")
    parser.add_argument("--sets", type=Path, nargs="*", default=[], help="Folders in BEIR form.")
    parser.add_argument("--chunks", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--write", type=Path, help="Put the table into this Markdown page.")
    given = parser.parse_args()

    import django

    django.setup()
    from bench.reporting import figure, replace_section, table
    from evaluation.statistics import ndcg, percentiles

    rows = []
    # One after the other: made-up passages of another size take the place of those before.
    for material in chain(map(of_set, given.sets), map(of_size, given.chunks)):
        for name, milliseconds, ranked in [(OURS, *ours(material)), *theirs(material, given.python)]:
            judged = [
                ndcg(places, grades, TOP_K) for places, grades in zip(ranked, material.grades, strict=True) if grades
            ]
            times = percentiles(milliseconds)
            quality = figure(sum(judged) / len(judged)) if judged else "–"
            rows.append([material.name, len(material.texts), name, quality, f"{times.p50:.1f}", f"{times.p95:.1f}"])
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    text = table(["passages of", "passages", "search", "nDCG@10", "p50 ms", "p95 ms"], rows)
    if given.write:
        replace_section(given.write, "frameworks", text)
    print(text)


if __name__ == "__main__":
    main()
