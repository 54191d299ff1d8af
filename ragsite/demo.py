"""The documents a first visitor can ask, and questions to measure the answers by."""

from __future__ import annotations

import json
from pathlib import Path

from django.core.management.base import OutputWrapper
from django.db import transaction

from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from retrieval.documents.file_loading import Counts, ingest_paths
from retrieval.models import Collection

COLLECTIONS = {
    "handbook": ("Handbook", "english", "What this site does and how to run it."),
    "parts": ("Merwe Fluidics: parts and service", "english", "A pump maker's catalogue, manual and terms."),
    "lingo": ("Lingo language reference", "english", "A small scripting language, with its interpreter."),
    "ziekenhuis": ("Ziekenhuis Sint-Willibrord", "dutch", "Een gids voor patiënten en bezoekers."),
}


def load_demo(folder: Path, marker: Path, output: OutputWrapper) -> Counts | None:
    """Read the demo documents, once: an admin who deletes them later does not get them back. None when done before.

    ``marker`` is a file made when all have been read, so that an interrupted first run goes on where it was.
    """
    if marker.exists() or not folder.is_dir():
        return None
    output.write("Reading the demo documents …")
    counts = Counts()
    for slug, (name, configuration, description) in COLLECTIONS.items():
        collection, _ = Collection.objects.get_or_create(
            slug=slug, defaults={"name": name, "text_search_configuration": configuration, "description": description}
        )
        counts += ingest_paths([folder / slug], collection, output)
        _add_evaluation_set(folder / "questions.json", collection)
    marker.touch()
    return counts


def _add_evaluation_set(questions: Path, collection: Collection) -> None:
    """Make a set of the questions about the collection, and of those in its language that nothing answers."""
    if not questions.is_file():
        return
    known = json.loads(questions.read_text(encoding="utf-8"))
    language = "nl" if collection.text_search_configuration == "dutch" else "en"
    asked = [row for row in known["questions"] if row["collection"] == collection.slug]
    strange = [row for row in known["unanswerable"] if row["language"] == language]
    with transaction.atomic():
        made, is_new = EvaluationSet.objects.get_or_create(
            slug=f"demo-{collection.slug}",
            defaults={
                "name": f"Demo: {collection}",
                "collection": collection,
                "description": "The demo's questions; those without an answer are to be refused.",
            },
        )
        if not is_new:
            return
        for row in [*asked, *strange]:
            question = EvaluationQuestion.objects.create(
                evaluation_set=made,
                text=row["question"],
                expected_answer=row.get("answer", ""),
                expects_refusal="answer" not in row,
                origin=EvaluationQuestion.Origin.IMPORTED,
            )
            if document := row.get("document", ""):
                source = document.partition("/")[2]
                ExpectedPassage.objects.create(question=question, source=source)
