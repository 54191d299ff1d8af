"""Change the documents of a collection in a draft, from the command line."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from retrieval import gates
from retrieval.documents.drafts import lifecycle
from retrieval.documents.drafts.lifecycle import changes_of
from retrieval.exceptions import RetrievalError
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Collection, Document, Draft


class Command(PreparedCommand):
    help = (
        "Begin, look at, publish or discard the draft of a collection. Documents are put into it with "
        "`manage.py ingest --collection` and the short name of its working copy. No worker is needed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["begin", "show", "publish", "discard"])
        parser.add_argument("collection", help="The short name of the collection, not of the working copy.")
        parser.add_argument("--override", default="", metavar="REASON", help="Publish against objections, because.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        collection = Collection.objects.in_service().filter(slug=options["collection"]).first()
        if collection is None:
            raise CommandError(f"There is no collection named {options['collection']!r}.")
        started = time.monotonic()
        try:
            if options["action"] == "begin":
                draft = lifecycle.begin(collection)
            else:
                draft = self._open_draft(collection)
                if options["action"] == "publish":
                    lifecycle.publish(draft, override=options["override"])
                elif options["action"] == "discard":
                    lifecycle.discard(draft)
        except RetrievalError as error:
            raise CommandError(str(error)) from error
        if options["action"] != "show":
            draft = lifecycle.resume(draft.pk) or draft
        draft.refresh_from_db()
        if draft.error:
            raise CommandError(f"{draft}: {draft.error}")
        told = _describe(draft) | {"seconds": round(time.monotonic() - started, 2)}
        self.stdout.write(json.dumps(told, ensure_ascii=False) if options["json"] else _text(told))

    def _open_draft(self, collection: Collection) -> Draft:
        draft = collection.drafts.open().first()
        if draft is None:
            raise CommandError(f"{collection} has no open draft: begin one first.")
        return draft


def _describe(draft: Draft) -> dict[str, Any]:
    changes = asdict(changes_of(draft)) if draft.is_open else draft.changes
    copy = draft.working_copy
    return {
        "draft": draft.pk,
        "status": draft.status,
        "working_copy": copy.slug if copy is not None else None,
        "documents": Document.objects.filter(collection=copy).count() if copy is not None else None,
        "changes": changes,
        "objections": [str(one) for one in gates.objections_to_draft(draft)]
        if draft.status == draft.Status.OPEN
        else [],
        "override": draft.override,
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"Draft {told['draft']} is {told['status']} ({told['seconds']:.1f} s)."]
    if told["working_copy"] is not None:
        lines.append(f"Its working copy is {told['working_copy']}, with {told['documents']} documents.")
    for kind, sources in told["changes"].items():
        lines += [f"{kind}: {source}" for source in sources]
    lines += [f"objection: {objection}" for objection in told["objections"]]
    if told["override"]:
        lines.append(f"Published all the same because: {told['override']}")
    return "\n".join(lines)
