"""Prepare a new site: tables, the embedding model, an administrator, demo documents and an evaluation set."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.db import transaction

from core.exceptions import RagsiteError
from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from retrieval import backends
from retrieval.documents.file_loading import IngestionCounts, ingest_paths
from retrieval.index import embedder_choice
from retrieval.index.embedders.onnx import OnnxEmbedder
from retrieval.management.prepared import migrate
from retrieval.models import Collection, MarkedFilter
from retrieval.search.profiles.profiles import active_profile

COLLECTIONS = {
    "handbook": ("Handbook", "english", "What this site does and how to run it."),
    "parts": ("Merwe Fluidics: parts and service", "english", "A pump maker's catalogue, manual and terms."),
    "lingo": ("Lingo language reference", "english", "A small scripting language, with its interpreter."),
    "ziekenhuis": ("Ziekenhuis Sint-Willibrord", "dutch", "Een gids voor patiënten en bezoekers."),
}
SEARCHED_BY_NAME = "handbook"
SUGGESTED = {
    "handbook": ["How do I add documents?", "Who may read a collection?", "How do I make a backup?"],
    "parts": ["How heavy is the MX-9920-W?", "What does E-041 mean?", "What does the warranty cover?"],
    "lingo": [
        "How does forEach work?",
        "What is the difference between addVar and setVar?",
        "What does load_index return?",
    ],
    "ziekenhuis": ["Waar kan ik parkeren?", "Wat is een cardioversie?", "Moet ik nuchter zijn voor een operatie?"],
}

# The metadata fields of the demo documents by which readers can filter, with labels.
FILTERS = {
    "parts": {"kind": "Kind", "published": "Published"},
    "lingo": {"kind": "Kind", "published": "Published"},
    "ziekenhuis": {"afdeling": "Afdeling", "published": "Gepubliceerd"},
}


def prepare_site() -> tuple[str, str] | None:
    """Prepare the site before its processes start; return name and password of a new administrator."""
    output = OutputWrapper(sys.stdout)
    output.write("Preparing the database …")
    call_command("check")
    migrate()
    _prepare_model(output.write)
    credentials = None
    users = get_user_model().objects
    if not users.filter(is_superuser=True).exists():
        credentials = "admin", secrets.token_urlsafe(9)
        users.create_superuser("admin", password=credentials[1])
    load_demo_documents(settings.BASE_DIR / "demo", settings.DATA_DIR / "demo-loaded", output)
    return credentials


def _prepare_model(say: Callable[[str], None]) -> None:
    embedder = embedder_choice.get_embedder()
    # Only the process that forks all others may open a converted model.
    if not isinstance(embedder, OnnxEmbedder) or not embedder.has_cached_graph():
        embedder.prepare(say)
    profile = active_profile().settings
    if profile.is_reranked:
        try:
            backends.get_reranker(profile.reranker).prepare(say)
        except (RagsiteError, ImproperlyConfigured) as error:
            say(f"The reranker {profile.reranker} cannot be used, the fused order will stand: {error}")


def load_demo_documents(folder: Path, marker: Path, output: OutputWrapper) -> IngestionCounts | None:
    """Read the demo documents; return None if they were read before.

    The file ``marker`` is created at the end, so an interrupted first run is continued.
    """
    if marker.exists() or not folder.is_dir():
        return None
    output.write("Reading the demo documents …")
    counts = IngestionCounts()
    for slug, (name, configuration, description) in COLLECTIONS.items():
        collection, _ = Collection.objects.get_or_create(
            slug=slug,
            defaults={
                "name": name,
                "text_search_configuration": configuration,
                "description": description,
                "is_searched_by_name": slug == SEARCHED_BY_NAME,
                "suggested_questions": "\n".join(SUGGESTED[slug]),
            },
        )
        counts += ingest_paths([folder / slug], collection, output)
        _add_filters(folder / "metadata.json", collection)
        _add_evaluation_set(folder / "questions.json", collection)
    marker.touch()
    return counts


def _add_filters(metadata: Path, collection: Collection) -> None:
    known = json.loads(metadata.read_text(encoding="utf-8")) if metadata.is_file() else {}
    for source, values in known.get(collection.slug, {}).items():
        collection.documents.filter(source=source).update(metadata=values)
    for position, (field, label) in enumerate(FILTERS.get(collection.slug, {}).items()):
        kind = MarkedFilter.Kind.DATES if field == "published" else MarkedFilter.Kind.VALUES
        defaults = {"label": label, "kind": kind, "position": position}
        MarkedFilter.objects.get_or_create(collection=collection, field=field, defaults=defaults)


def _add_evaluation_set(questions: Path, collection: Collection) -> None:
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
