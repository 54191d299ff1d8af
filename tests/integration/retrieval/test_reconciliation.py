"""Every kind of damage is found, reported, and repaired where it can be."""

import io
import json
import os
import time

import pytest
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.core.management.base import CommandError

from retrieval import tasks
from retrieval.documents import ingestion, reconciliation
from retrieval.documents.reconciliation import (
    ProblemKind,
    find_inconsistencies,
    read_inconsistency_counts,
    reconcile_index,
)
from retrieval.exceptions import EmbeddingFailed
from retrieval.index import embedder_choice
from retrieval.index.chunk_writer import remove_chunks, replace_chunk_questions
from retrieval.models import (
    Chunk,
    ChunkEmbedding,
    Collection,
    CollectionStatistics,
    Document,
    DocumentText,
    IndexCheck,
    Lexeme,
)
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
@remembered
def library(collection, ingest):
    for number in range(3):
        filler = " ".join(f"Sentence {place} is about the pump and its {number} valves." for place in range(60))
        text = f"# Pump {number}\n\nThe pump weighs {number} grams. {filler}\n\n# Valve {number}\n\nA valve. {filler}"
        ingest(collection, f"{number}.md", text)
    assert collection.chunks.count() > 6
    assert find_inconsistencies() == []
    return collection


def file_left(age_seconds):
    storage = Document.file.field.storage
    name = storage.save("documents/left.md", ContentFile(b"left"))
    then = time.time() - age_seconds
    os.utime(storage.path(name), (then, then))
    return str(name)


def change(model, **values):
    """Write the values into every row, or into the rows of the first document or of the word "pump"."""
    only = {Lexeme: {"lexeme": "pump"}, Document: {"source": "0.md"}, DocumentText: {"document__source": "0.md"}}
    return lambda: model.objects.filter(**only.get(model, {})).update(**values)


def invent_a_lexeme():
    Lexeme.objects.create(collection=Collection.objects.get(), lexeme="zebra", document_frequency=3)


DAMAGE = {
    "vector": lambda: ChunkEmbedding.objects.order_by("pk")[0].delete(),
    "passages miscounted": change(CollectionStatistics, chunks=99),
    "one passage counted": change(CollectionStatistics, chunks=1),
    "length": change(CollectionStatistics, total_length=1),
    "statistics": lambda: CollectionStatistics.objects.all().delete(),
    "lexeme": lambda: Lexeme.objects.filter(lexeme="pump").delete(),
    "lexeme invented": invent_a_lexeme,
    "lexeme miscounted": change(Lexeme, document_frequency=1),
    "text of another file": change(DocumentText, content_hash="0" * 64),
    "no passages": lambda: remove_chunks(Document.objects.get(source="0.md")),
    "passages of a document miscounted": change(Document, chunk_count=7),
    "file left": lambda: file_left(3 * 86400),
    "file deleted": lambda: Document.objects.get(source="0.md").file.delete(save=False),
    "file cut off": lambda: os.truncate(Document.objects.get(source="0.md").file.path, 5),
}


def kinds():
    return {inconsistency.kind for inconsistency in find_inconsistencies()}


MENDABLE = [
    ("vector", {ProblemKind.MISSING_VECTORS}),
    ("passages miscounted", {ProblemKind.STATISTICS}),
    ("length", {ProblemKind.STATISTICS}),
    ("statistics", {ProblemKind.STATISTICS, ProblemKind.TERM_WEIGHTS}),
    ("lexeme miscounted", {ProblemKind.LEXEMES}),
    ("text of another file", {ProblemKind.UNFIT_TEXT}),
    ("no passages", {ProblemKind.UNFIT_TEXT}),
    ("passages of a document miscounted", {ProblemKind.UNFIT_TEXT}),
    ("file left", {ProblemKind.ORPHANED_FILES}),
]


def index_content():
    """All that search reads, as values that do not depend on row ids."""
    return (
        sorted(Chunk.objects.values_list("document__source", "ordinal", "content", "collection__slug", "length")),
        sorted(ChunkEmbedding.objects.values_list("document__source", "chunk__ordinal", "collection__slug")),
        sorted(Lexeme.objects.values_list("collection__slug", "lexeme", "document_frequency")),
        sorted(Document.objects.values_list("source", "status", "chunk_count")),
        [
            (row.chunks, pytest.approx(row.total_length), row.weighting)
            for row in CollectionStatistics.objects.filter(collection__slug="library")
        ],
    )


@pytest.mark.parametrize(("damage", "found"), MENDABLE)
def test_damage_is_found_and_repaired(library, damage, found):
    whole = index_content()
    DAMAGE[damage]()
    assert kinds() == found
    repaired = reconcile_index(repair=True)
    assert {inconsistency.kind for inconsistency in repaired} == found
    assert all(inconsistency.repaired for inconsistency in repaired)
    assert find_inconsistencies() == []
    for pk in Document.objects.filter(status=Document.Status.PENDING).values_list("pk", flat=True):
        ingestion.ingest_document(pk)
    assert find_inconsistencies() == []
    assert index_content() == whole
    result = search("Which pump weighs grams?", build_unrestricted_filters())
    assert result.trace.degraded == ()
    assert result.hits


@pytest.mark.parametrize(
    ("drifts", "ending"),
    [
        (("lexeme", "one passage counted"), "deleted"),
        (("lexeme miscounted", "length"), "replaced"),
        (("lexeme invented", "statistics"), "reworded"),
    ],
)
def test_counts_that_drifted_block_nobody(library, ingest, drifts, ending):
    for drift in drifts:
        DAMAGE[drift]()
    document = Document.objects.get(source="0.md")
    if ending == "deleted":
        document.delete()
        assert not Chunk.objects.filter(document=document.pk).exists()
    elif ending == "replaced":
        assert ingest(library, "0.md", "# Fan\n\nThe fan turns.").status == Document.Status.READY
    else:
        replace_chunk_questions(document.chunks.order_by("ordinal")[0], ["Which fan is the pump?"])
    assert not Lexeme.objects.filter(document_frequency__lte=0).exists()
    reconcile_index(repair=True)
    assert find_inconsistencies() == []


@pytest.mark.parametrize("damage", ["file deleted", "file cut off"])
def test_a_file_that_is_gone_cannot_be_repaired_and_its_document_goes_on_serving(library, damage):
    DAMAGE[damage]()
    DAMAGE["text of another file"]()
    document = Document.objects.get(source="0.md")
    text, file = reconcile_index(repair=True)
    assert (text.kind, text.repaired, text.examples) == (ProblemKind.UNFIT_TEXT, False, (str(document.pk),))
    assert (file.kind, file.repaired) == (ProblemKind.MISSING_FILES, False)
    document.refresh_from_db()
    assert document.status == Document.Status.READY
    assert document.chunks.exists()


def test_the_file_of_an_upload_that_is_still_being_saved_stays(library):
    name = file_left(90)
    reconcile_index(repair=True)
    assert Document.file.field.storage.exists(name)
    Document.file.field.storage.delete(name)


def test_a_test_collection_without_files_is_in_order(collection):
    """Bulk loading keeps no files, and keeps documents without text."""
    from bench.bulk import DocumentToWrite, replace_documents
    from retrieval.index.active_embedder import active_embedder

    replace_documents(collection, [DocumentToWrite("a", "A", "en", "", "0" * 64, "0" * 64, ())], active_embedder())
    assert find_inconsistencies() == []


def test_a_document_being_read_is_left_to_its_reader(library):
    DAMAGE["text of another file"]()
    Document.objects.filter(source="0.md").update(status=Document.Status.PROCESSING)
    assert find_inconsistencies() == []


def test_what_the_embedder_cannot_do_does_not_keep_the_rest_from_being_repaired(library, monkeypatch):
    def fail(texts):
        raise EmbeddingFailed("The embedding server does not answer.")

    DAMAGE["vector"]()
    DAMAGE["passages miscounted"]()
    monkeypatch.setattr(embedder_choice.get_embedder(), "embed_documents", fail)
    with pytest.raises(CommandError, match="does not answer"):
        call_command("reconcile", "--repair")
    assert kinds() == {ProblemKind.MISSING_VECTORS}


def test_writers_and_repair_take_turns(library, ingest):
    """A document that arrives between the check and the repair is counted."""
    DAMAGE["passages miscounted"]()
    original = reconciliation.find_inconsistencies

    def check_then_write():
        found = original()
        if not Document.objects.filter(source="late.md").exists():
            ingest(library, "late.md", "A pump that came late.")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reconciliation, "find_inconsistencies", check_then_write)
        reconcile_index(repair=True)
    assert find_inconsistencies() == []
    assert CollectionStatistics.objects.get(pk=library.pk).chunks == library.chunks.count()


def run(*arguments):
    """Return the output of the command, and its final error."""
    out = io.StringIO()
    try:
        call_command("reconcile", *arguments, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_the_command_for_people(library):
    assert run() == ("Everything agrees.\n", "")
    DAMAGE["lexeme"]()
    out, error = run()
    assert kinds() == {ProblemKind.LEXEMES}  # unchanged
    assert out.splitlines()[0].split() == ["count", "collection", "what", "for", "example"]
    assert out.splitlines()[1].split()[:2] == ["1", "library"]
    assert "pump" in out
    assert "--repair" in error
    out, error = run("--repair")
    assert out.splitlines()[1].endswith("repaired")
    assert error == ""
    assert run() == ("Everything agrees.\n", "")


def test_the_command_for_scripts(library):
    DAMAGE["lexeme miscounted"]()
    Document.objects.filter(source="2.md").update(status=Document.Status.FAILED)
    out, error = run("--json")
    assert error
    assert json.loads(out) == {
        "inconsistencies": [
            {"kind": "lexemes", "collection": "library", "count": 1, "examples": ["pump"], "repaired": False}
        ],
        "unrepaired": 1,
        "failed_documents": 1,
    }
    out, error = run("--json", "--repair")
    assert json.loads(out)["unrepaired"] == 0
    assert error == ""


def test_another_embedder_is_not_switched_to(library, monkeypatch):
    monkeypatch.setattr(embedder_choice.get_embedder(), "name", "another")
    assert "reembed" in run("--repair")[1]


def test_the_result_is_kept_for_those_who_look(library):
    assert read_inconsistency_counts() == {}
    DAMAGE["lexeme miscounted"]()
    tasks.reconcile.apply(throw=True)
    counts = read_inconsistency_counts()
    assert set(counts) == set(ProblemKind)
    assert counts["lexemes"] == 1
    assert sum(counts.values()) == 1
    tasks.reconcile.apply(kwargs={"repair": True}, throw=True)
    assert IndexCheck.objects.first().inconsistencies[0]["repaired"] is True
    assert sum(read_inconsistency_counts().values()) == 0
