"""Look for instructions to a model in documents that were read before the rules, or by older ones."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from retrieval.models import Document, DocumentText
from retrieval.text.instructions import find_instructions, to_rows


class Command(BaseCommand):
    help = "Flag the documents whose text instructs a language model, without reading their files again."

    def handle(self, *args: Any, **options: Any) -> None:
        read = flagged = 0
        for pk in list(DocumentText.objects.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                # The document first, as whoever reads it does.
                document = Document.objects.select_for_update().filter(pk=pk).first()
                text = DocumentText.objects.filter(pk=pk).first()
                if document is None or text is None:
                    continue
                found = find_instructions(text.text)
                DocumentText.objects.filter(pk=pk).update(instructions=to_rows(found))
                Document.objects.filter(pk=pk).update(instruction_count=len(found))
            read += 1
            flagged += bool(found)
        self.stdout.write(f"{read} documents looked at, {flagged} hold instructions to a model.")
