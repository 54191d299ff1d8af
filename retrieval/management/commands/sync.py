from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any, Literal, NotRequired, TypedDict

from django.core.management.base import CommandError
from django.db.models import Q

from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import Source, SourceRun
from retrieval.models.source import PUSH
from retrieval.sources.sync_runs import SourceRunRefused, finish_run_in_process, request_run
from retrieval.sources.taking_readers import ALL

Counted = Literal["added", "changed", "unchanged", "removed", "failed"]
NUMBERS: tuple[Counted, ...] = ("added", "changed", "unchanged", "removed", "failed")


class RunDetails(TypedDict, total=False):
    """Details of a source's run, as the command prints them.

    ``failures`` and ``left_out`` are pairs of name and reason.
    """

    failures: list[list[str]]
    left_out: list[list[str]]
    # These are names of readers, each with the number of documents that the reader may now read (`opened`), or may no
    # longer read (`closed`).
    opened: list[tuple[str, int]]
    closed: list[tuple[str, int]]
    about_readers: list[str]


class SyncResult(TypedDict):
    """A source and the counts of its run; no counts for a refused run."""

    source: int
    name: str
    status: str
    added: NotRequired[int]
    changed: NotRequired[int]
    unchanged: NotRequired[int]
    removed: NotRequired[int]
    failed: NotRequired[int]
    kept_back: NotRequired[int]
    kept: NotRequired[int]
    seconds: NotRequired[float]
    error: str
    details: RunDetails


class Command(MigratedDatabaseCommand):
    help = "Bring sources up to date. The worker reads what came; 1 is returned when a run failed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "sources", nargs="*", metavar="SOURCE", help="Name or number; none: all that are not paused."
        )
        parser.add_argument("--dry-run", action="store_true", help="Say what a run would do, and do none of it.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        results = []
        for source in _choose_sources(options["sources"]):
            result = _run(source, is_preview=options["dry_run"])
            results.append(result)
            if not options["json"]:
                self._report(source, result)
        if options["json"]:
            self.stdout.write(json.dumps(results))
        if any(result["status"] != SourceRun.Status.DONE for result in results):
            raise SystemExit(1)

    def _report(self, source: Source, result: SyncResult) -> None:
        numbers = ", ".join(f"{result.get(name, 0)} {name}" for name in NUMBERS)
        self.stdout.write(f"{source} ({source.collection.slug}): {result['status']}, {numbers}.")
        if result["error"]:
            self.stderr.write(f"{source}: {result['error']}")
        for name, why in result["details"].get("failures", []):
            self.stderr.write(f"{source}: {name}: {why}")
        for name, why in result["details"].get("left_out", []):
            self.stderr.write(f"{source}: left out: {name}: {why}")
        details = result["details"]
        for done, counts in (("opened", details.get("opened")), ("closed", details.get("closed"))):
            if counts:
                named = ", ".join(f"{'everybody' if name == ALL else name} {number}" for name, number in counts)
                self.stdout.write(f"{source}: documents {done} to: {named}.")
        for note in result["details"].get("about_readers", []):
            self.stderr.write(f"{source}: {note}")
        if result.get("kept_back"):
            self.stderr.write(
                f"{source}: {result['kept_back']} documents are gone, and wait for consent to be removed."
            )
        if result.get("kept"):
            self.stdout.write(f"{source}: {result['kept']} documents are no longer in the source, and are kept.")


def _choose_sources(names: list[str]) -> list[Source]:
    sources = Source.objects.select_related("collection").order_by("pk")
    if not names:
        return list(sources.filter(is_paused=False).exclude(kind=PUSH))
    chosen: list[Source] = []
    for name in names:
        found = list(sources.filter(Q(name=name) | Q(pk=int(name)) if name.isdecimal() else Q(name=name)))
        if not found:
            raise CommandError(f"There is no source {name}.")
        chosen += found
    return chosen


def _run(source: Source, *, is_preview: bool) -> SyncResult:
    try:
        run = finish_run_in_process(request_run(source, is_preview=is_preview, enqueue=False))
    except SourceRunRefused as error:
        return {"source": source.pk, "name": source.name, "status": "busy", "error": str(error), "details": {}}
    return {
        "source": source.pk,
        "name": source.name,
        "status": run.status,
        "added": run.added,
        "changed": run.changed,
        "unchanged": run.unchanged,
        "removed": run.removed,
        "failed": run.failed,
        "kept_back": run.kept_back,
        "kept": run.kept,
        "seconds": round(run.seconds, 2),
        "error": run.error,
        "details": run.details,
    }
