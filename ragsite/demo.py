"""The documents a first visitor can ask."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import OutputWrapper

from retrieval.ingest.folders import Counts, ingest_paths
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
    marker.touch()
    return counts
