"""Where the time of ingestion goes, by stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.conf import settings

from bench.reporting import Report
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

PASSAGES_A_ROUND = 64


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
class IngestionRun:
    """``tokens`` are those of all passages with their headings, as the embedder reads them."""

    files: int
    passages: int
    tokens: int
    stages: Stages


def run(folder: Path, most_files: int, report: Report) -> IngestionRun:
    """Read every n-th file below the folder, so many at most, and embed their passages; nothing is stored."""
    found = list(find([folder]))
    chosen = found[:: max(1, len(found) // most_files)][:most_files]
    stages, texts = Stages(), []
    for number, file in enumerate(chosen):
        report("reading", number, len(chosen))
        texts += _read(file.source, file.read(), stages)
    rounds = [texts[start : start + PASSAGES_A_ROUND] for start in range(0, len(texts), PASSAGES_A_ROUND)]
    conf.embedder().embed_documents(rounds[0][:2])
    for number, batch in enumerate(rounds):
        report("embedding", number, len(rounds))
        with stages.timed("embed"):
            conf.embedder().embed_documents(batch)
    embedder = conf.embedder()
    tokens = sum(min(count + chunking.SPECIAL_TOKENS, embedder.max_tokens) for count in embedder.count_tokens(texts))
    return IngestionRun(len(chosen), len(texts), tokens, stages)


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
