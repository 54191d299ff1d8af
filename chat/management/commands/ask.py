from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from chat.answering import pipeline
from chat.exceptions import InvalidQuestion
from chat.pages.answer_text import render_whole_text
from chat.pages.cards import build_cited_passage
from chat.streaming import payloads
from chat.streaming.asking import clean_question
from chat.types import AnswerDraft, AnswerToken, CompletedEvent, FailedEvent
from core.exceptions import RagsiteError
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.types import SearchFilters

_OF_SAVED_ANSWERS = ("answer_id", "conversation", "repeats", "repeated_from")


class Command(MigratedDatabaseCommand):
    help = "Ask the documents a question and print the cited answer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--collection", default="", help="Short name of the only collection to ask.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            question = clean_question(options["question"])
            filters = build_unrestricted_filters(options["collection"])
        except (InvalidQuestion, RagsiteError) as error:
            raise CommandError(str(error)) from error
        draft, end = asyncio.run(self._ask(question, filters, quiet=options["json"]))
        if not isinstance(end, CompletedEvent):
            raise CommandError(end.message if end else "The answer broke off.")
        answer, citations = payloads.build_unsaved_answer(question, draft, end)
        written = payloads.build_completed_payload(answer, citations)
        if options["json"]:
            told = {name: value for name, value in written.items() if name not in _OF_SAVED_ANSWERS}
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        self.stdout.write(render_whole_text(written).removeprefix(end.text))
        if end.notice:
            self.stdout.write(f"\n{end.notice}")
        for citation in citations:
            cited = build_cited_passage(citation)
            place = " · ".join(filter(None, [cited.title, cited.where]))
            self.stdout.write(f"\n[{cited.marker}] {place}, characters {citation.start}-{citation.end}")
            self.stdout.write(f"    “{cited.preview}”")

    async def _ask(
        self, question: str, filters: SearchFilters, *, quiet: bool
    ) -> tuple[AnswerDraft | None, CompletedEvent | FailedEvent | None]:
        draft: AnswerDraft | None = None
        end: CompletedEvent | FailedEvent | None = None
        streamed = ""
        async for event in pipeline.answer_question(question, filters):
            match event:
                case AnswerDraft():
                    draft = event
                case AnswerToken():
                    streamed += event.text
                    if not quiet:
                        self.stdout.write(event.text, ending="")
                        self.stdout.flush()
                case CompletedEvent() | FailedEvent():
                    end = event
        if isinstance(end, CompletedEvent) and not quiet and streamed.strip() != end.text:
            self.stdout.write(f"\n{end.text}" if streamed else end.text, ending="")
        return draft, end
