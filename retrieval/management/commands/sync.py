from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Q

from retrieval.management.prepared import PreparedCommand
from retrieval.models import Source, SourceRun
from retrieval.sources.sync_runs import RunRefused, finish_in_process, request_run

NUMBERS = ("added", "changed", "unchanged", "removed", "failed", "kept_back")


class Command(PreparedCommand):
    help = "Bring sources up to date. The worker reads what came; 1 is returned when a run failed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "sources", nargs="*", metavar="SOURCE", help="Name or number; none: all that are not paused."
        )
        parser.add_argument("--dry-run", action="store_true", help="Say what a run would do, and do none of it.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        results = []
        for source in _choose(options["sources"]):
            result = _run(source, is_preview=options["dry_run"])
            results.append(result)
            if not options["json"]:
                self._report(source, result)
        if options["json"]:
            self.stdout.write(json.dumps(results))
        if any(result["status"] != SourceRun.Status.DONE for result in results):
            raise SystemExit(1)

    def _report(self, source: Source, result: dict[str, Any]) -> None:
        numbers = ", ".join(f"{result.get(name, 0)} {name}" for name in NUMBERS if name != "kept_back")
        self.stdout.write(f"{source} ({source.collection.slug}): {result['status']}, {numbers}.")
        if result["error"]:
            self.stderr.write(f"{source}: {result['error']}")
        for kind in ("failures", "left_out"):
            for name, why in result["details"].get(kind, []):
                self.stderr.write(f"{source}: {'left out: ' if kind == 'left_out' else ''}{name}: {why}")
        if result.get("kept_back"):
            self.stderr.write(
                f"{source}: {result['kept_back']} documents are gone, and wait for consent to be removed."
            )


def _choose(names: list[str]) -> list[Source]:
    sources = Source.objects.select_related("collection").order_by("pk")
    if not names:
        return list(sources.filter(is_paused=False))
    chosen: list[Source] = []
    for name in names:
        found = list(sources.filter(Q(name=name) | Q(pk=int(name)) if name.isdecimal() else Q(name=name)))
        if not found:
            raise CommandError(f"There is no source {name}.")
        chosen += found
    return chosen


def _run(source: Source, *, is_preview: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"source": source.pk, "name": source.name}
    try:
        run = finish_in_process(request_run(source, is_preview=is_preview, enqueue=False))
    except RunRefused as error:
        return {**result, "status": "busy", "error": str(error), "details": {}}
    numbers = {name: getattr(run, name) for name in NUMBERS}
    return {
        **result, "status": run.status, **numbers, "seconds": round(run.seconds, 2), "error": run.error,
        "details": run.details,
    }  # fmt: skip
