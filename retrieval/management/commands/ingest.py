"""Read files, folders or a BEIR corpus into a collection."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from retrieval.documents.file_loading import Counts, ingest_paths
from retrieval.exceptions import RetrievalError
from retrieval.index.reembedding import load_vectors, loading
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Collection

NICENESS = 10


# Of the files that were skipped.
MOST_NAMED = 5


class Command(PreparedCommand):
    help = "Read documents into a collection: files, folders, or the corpus.jsonl of a BEIR set."

    def run_from_argv(self, argv: list[str]) -> None:
        if "--bulk" in argv:
            # Whoever asks, or uploads a single page, goes first.
            os.nice(NICENESS)
        super().run_from_argv(argv)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
        parser.add_argument(
            "--bulk",
            action="store_true",
            help="For very many documents: found by their words first, by meaning when all their vectors are made and"
            " indexed. Called again after an interruption, it resumes.",
        )
        parser.add_argument(
            "--processes", type=int, default=len(os.sched_getaffinity(0)), help="How many files are read at once."
        )
        parser.add_argument("--collection", default="documents", help="Its short name; made when it does not exist.")
        parser.add_argument("--language", default="english", help="Of a new collection: english, dutch, simple, …")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["paths"] and not options["bulk"]:
            raise CommandError("Name the files or folders to read.")
        slug = options["collection"]
        collection, _ = Collection.objects.get_or_create(
            slug=slug, defaults={"name": slug.capitalize(), "text_search_configuration": options["language"]}
        )
        output = self.stderr if options["json"] else self.stdout
        read = partial(ingest_paths, options["paths"], collection, output, processes=options["processes"])
        try:
            counts = self._load(read, output) if options["bulk"] else read()
        except (FileNotFoundError, RetrievalError) as error:
            raise CommandError(str(error)) from error
        for source, message in counts.failures:
            self.stderr.write(f"{source}: {message}")
        if counts.skipped:
            more = "" if len(counts.skipped) <= MOST_NAMED else ", …"
            self.stderr.write(
                f"Skipped {len(counts.skipped)}, which are no documents: {', '.join(counts.skipped[:MOST_NAMED])}{more}"
            )
        if options["json"]:
            names = ("added", "unchanged", "failed", "chunks")
            result = {name: getattr(counts, name) for name in names} | {
                "skipped": len(counts.skipped),
                "seconds": round(counts.seconds, 2),
            }
            self.stdout.write(json.dumps(result))
        else:
            rate = f" ({counts.chunks / counts.seconds:.0f} passages/s)" if counts.added and counts.seconds else ""
            self.stdout.write(
                f"{counts.added} added, {counts.unchanged} unchanged, {counts.failed} failed; "
                f"{counts.chunks} passages in {counts.seconds:.1f} s{rate}."
            )
        if counts.failed:
            raise SystemExit(1)

    def _load(self, read: Callable[..., Counts], output: OutputWrapper) -> Counts:
        """Documents first, then vectors: also those that an interrupted run has left to be made."""
        bar = ProgressBar(output)
        with loading():
            counts = read(with_vectors=False)
            started = time.monotonic()
            load_vectors(bar.show)
        bar.clear()
        return replace(counts, seconds=counts.seconds + time.monotonic() - started)
