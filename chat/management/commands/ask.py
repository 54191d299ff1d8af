"""A cited answer in the terminal; nothing is saved."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from textwrap import indent
from typing import Any

from django.core.management.base import CommandError

from chat.answering import pipeline
from chat.api.serializers import with_answer
from chat.exceptions import InvalidQuestion
from chat.streaming import payloads
from chat.streaming.asking import checked
from chat.types import AnswerDraft, AnswerToken, Completed, Failed
from retrieval.exceptions import RetrievalError
from retrieval.management.prepared import PreparedCommand
from retrieval.rights import everything
from retrieval.types import Passage, SearchFilters

# What a question that is not saved has no use for.
_OF_SAVED_ANSWERS = ("answer_id", "conversation", "repeats", "repeated_from")


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
        draft, end = asyncio.run(self._ask(question, filters, quiet=options["json"]))
        if not isinstance(end, Completed):
            raise CommandError(end.message if end else "The answer broke off.")
        if options["json"]:
            written = payloads.completed(*payloads.unsaved_answer(question, draft, end))
            told = {name: value for name, value in with_answer(written).items() if name not in _OF_SAVED_ANSWERS}
            self.stdout.write(json.dumps(told, ensure_ascii=False))
        else:
            self._print(end)

    async def _ask(
        self, question: str, filters: SearchFilters, *, quiet: bool
    ) -> tuple[AnswerDraft | None, Completed | Failed | None]:
        draft: AnswerDraft | None = None
        end: Completed | Failed | None = None
        streamed = ""
        async for event in pipeline.answer(question, filters):
            match event:
                case AnswerDraft():
                    draft = event
                case AnswerToken():
                    streamed += event.text
                    if not quiet:
                        self.stdout.write(event.text, ending="")
                        self.stdout.flush()
                case Completed() | Failed():
                    end = event
        if isinstance(end, Completed) and not quiet and streamed.strip() != end.text:
            self.stdout.write(f"\n{end.text}" if streamed else end.text, ending="")
        return draft, end

    def _print(self, end: Completed) -> None:
        """Print the text around a finished answer: its notices and citations."""
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
        for choice in end.choices:
            self.stdout.write(f"\nDid you mean: {choice.question}")


def _place(passage: Passage) -> str:
    page = f", {passage.page_name}" if passage.page else ""
    return " › ".join(filter(None, [passage.document_title, passage.section])) + page
