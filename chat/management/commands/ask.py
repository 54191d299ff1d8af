"""A cited answer in the terminal; nothing is saved."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

from django.core.management.base import CommandError

from chat.answering import pipeline
from chat.streaming import payloads
from chat.streaming.asking import InvalidQuestion, checked
from chat.types import AnswerToken, Choice, Completed, Failed, Searched
from retrieval.exceptions import RetrievalError
from retrieval.management.prepared import PreparedCommand
from retrieval.rights import everything
from retrieval.types import Passage, SearchFilters


@dataclass(slots=True)
class Outcome:
    searched: Searched | None = None
    pieces: list[str] = field(default_factory=list)
    end: Completed | Failed | None = None


class Command(PreparedCommand):
    help = "Ask the documents a question and print the cited answer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--collection", default="", help="Short name of the only collection to ask.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            question = checked(options["question"])
            filters = everything(options["collection"])
        except (InvalidQuestion, RetrievalError) as error:
            raise CommandError(str(error)) from error
        outcome = asyncio.run(self._ask(question, filters, quiet=options["json"]))
        if not isinstance(outcome.end, Completed):
            raise CommandError(outcome.end.message if outcome.end else "The answer broke off.")
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(outcome, outcome.end), ensure_ascii=False))
        else:
            self._print(outcome, outcome.end)

    async def _ask(self, question: str, filters: SearchFilters, *, quiet: bool) -> Outcome:
        outcome = Outcome()
        async for event in pipeline.answer(question, filters):
            match event:
                case Searched():
                    outcome.searched = event
                case AnswerToken():
                    outcome.pieces.append(event.text)
                    if not quiet:
                        self.stdout.write(event.text, ending="")
                        self.stdout.flush()
                case Completed() | Failed():
                    outcome.end = event
        return outcome

    def _print(self, outcome: Outcome, end: Completed) -> None:
        if "".join(outcome.pieces).strip() != end.text:
            self.stdout.write(f"\n{end.text}" if outcome.pieces else end.text, ending="")
        self.stdout.write("\n")
        if end.approval:
            self.stdout.write(f"\nApproved by {end.approval.by} on {end.approval.on}.")
        if end.notice:
            self.stdout.write(f"\n{end.notice}")
        for citation in end.citations:
            place = f"{_place(citation.passage)}, characters {citation.start}-{citation.end}"
            self.stdout.write(f"\n[{citation.marker}] {place}")
            self.stdout.write(f"    “{' '.join(citation.quote.split())[:160]}”")
        for near in end.near:
            self.stdout.write(f"\nNear: {_place(near.passage)}, characters {near.start}-{near.end}")
            self.stdout.write(indent(near.quote, "    "))
        self._print_choices(end.choices)

    def _print_choices(self, choices: Sequence[Choice]) -> None:
        for choice in choices:
            self.stdout.write(f"\nDid you mean: {choice.question}")


def _place(passage: Passage) -> str:
    page = f", {passage.page_name}" if passage.page else ""
    return " › ".join(filter(None, [passage.document_title, passage.section])) + page


def _as_json(outcome: Outcome, end: Completed) -> dict[str, Any]:
    computed = payloads.computed(outcome.searched, end)
    return {
        "answer": end.text,
        "refused": end.refused,
        "near": [payloads.near_place(place) for place in end.near],
        "choices": [payloads.choice(offered) for offered in end.choices],
        "citations": [
            {
                "marker": citation.marker,
                "marker_start": citation.marker_start,
                "marker_end": citation.marker_end,
                "chunk_id": citation.passage.chunk_id,
                "collection": citation.passage.collection_name,
                "document": payloads.document(citation.passage),
                "section": citation.passage.section,
                "page": citation.passage.page,
                "page_unit": citation.passage.page_unit,
                "quote": citation.quote,
                "start": citation.start,
                "end": citation.end,
                "support": citation.support,
                "verbatim": citation.verbatim,
                "marked_start": citation.marked_start,
                "marked_end": citation.marked_end,
            }
            for citation in end.citations
        ],
        "search_method": outcome.searched.trace.search_method if outcome.searched else "",
        "degraded": list(outcome.searched.trace.degraded) if outcome.searched else [],
        "generator": end.generator,
        "notice": end.notice,
        "statements": [payloads.statement(statement) for statement in end.statements],
        "confidence": outcome.searched.confidence if outcome.searched else None,
        "usage": payloads.usage(end.usage),
        "approved": payloads.approval(end.approval),
        **({"computed": computed} if computed else {}),
    }
