"""Every kind of damage is found, told, and repaired where it can be."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Sequence

import pytest
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.core.management.base import CommandError

from retrieval import conf, tasks
from retrieval.documents import ingestion, reconciliation
from retrieval.documents.reconciliation import ProblemKind, check, last_counts, reconcile
from retrieval.exceptions import EmbeddingFailed
from retrieval.index.chunk_writer import remove_chunks, rewrite_questions
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
from retrieval.rights import everything
from retrieval.search.pipeline import search
from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Callable[..., Document]) -> Collection:
    for number in range(3):
        filler = " ".join(f"Sentence {place} is about the pump and its {number} valves." for place in range(60))
        text = f"# Pump {number}\n\nThe pump weighs {number} grams. {filler}\n\n# Valve {number}\n\nA valve. {filler}"
        ingest(collection, f"{number}.md", text)
    assert collection.chunks.count() > 6
    assert check() == []
    return collection


def delete_a_vector() -> None:
    ChunkEmbedding.objects.order_by("pk")[0].delete()


def miscount_passages() -> None:
    CollectionStatistics.objects.update(chunks=99)


def miscount_one_passage() -> None:
    CollectionStatistics.objects.update(chunks=1)


def lengthen() -> None:
    CollectionStatistics.objects.update(total_length=1)


def lose_statistics() -> None:
    CollectionStatistics.objects.all().delete()


def lose_a_lexeme() -> None:
    Lexeme.objects.filter(lexeme="pump").delete()


def invent_a_lexeme() -> None:
    Lexeme.objects.create(collection=Collection.objects.get(), lexeme="zebra", document_frequency=3)


def miscount_a_lexeme() -> None:
    Lexeme.objects.filter(lexeme="pump").update(document_frequency=1)


def outdate_a_text() -> None:
    DocumentText.objects.filter(document__source="0.md").update(content_hash="0" * 64)


def empty_a_document() -> None:
    remove_chunks(Document.objects.get(source="0.md"))


def miscount_a_document() -> None:
    Document.objects.filter(source="0.md").update(chunk_count=7)


def delete_a_file() -> None:
    document = Document.objects.get(source="0.md")
    document.file.storage.delete(document.file.name)


def leave_a_file() -> None:
    storage = Document.file.field.storage
    name = storage.save("documents/left.md", ContentFile(b"left"))
    old = time.time() - 3 * 86400
    os.utime(storage.path(name), (old, old))


def kinds() -> set[ProblemKind]:
    return {inconsistency.kind for inconsistency in check()}


MENDABLE = [
    (delete_a_vector, {ProblemKind.MISSING_VECTORS}),
    (miscount_passages, {ProblemKind.STATISTICS}),
    (lengthen, {ProblemKind.STATISTICS}),
    (lose_statistics, {ProblemKind.STATISTICS, ProblemKind.TERM_WEIGHTS}),
    (miscount_a_lexeme, {ProblemKind.LEXEMES}),
    (outdate_a_text, {ProblemKind.UNFIT_TEXT}),
    (empty_a_document, {ProblemKind.UNFIT_TEXT}),
    (miscount_a_document, {ProblemKind.UNFIT_TEXT}),
    (leave_a_file, {ProblemKind.ORPHANED_FILES}),
]


def read_what_waits() -> None:
    for pk in Document.objects.filter(status=Document.Status.PENDING).values_list("pk", flat=True):
        ingestion.ingest(pk)


def index_content() -> tuple[object, ...]:
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


@pytest.mark.parametrize(("damage", "found"), MENDABLE, ids=lambda value: getattr(value, "__name__", ""))
def test_damage_is_found_and_repaired(library: Collection, damage: Callable[[], None], found: set[ProblemKind]) -> None:
    whole = index_content()
    damage()
    assert kinds() == found
    repaired = reconcile(repair=True)
    assert {inconsistency.kind for inconsistency in repaired} == found
    assert all(inconsistency.repaired for inconsistency in repaired)
    assert check() == []
    read_what_waits()
    assert check() == []
    assert index_content() == whole
    result = search("Which pump weighs grams?", everything())
    assert result.trace.degraded == ()
    assert result.hits


DRIFTS = [
    (lose_a_lexeme, "deleted"),
    (miscount_a_lexeme, "replaced"),
    (invent_a_lexeme, "reworded"),
    (miscount_one_passage, "deleted"),
    (lengthen, "replaced"),
    (lose_statistics, "reworded"),
]


@pytest.mark.parametrize(("drift", "ending"), DRIFTS, ids=lambda value: getattr(value, "__name__", value))
def test_counts_that_drifted_block_nobody(
    library: Collection, ingest: Callable[..., Document], drift: Callable[[], None], ending: str
) -> None:
    drift()
    document = Document.objects.get(source="0.md")
    if ending == "deleted":
        document.delete()
        assert not Chunk.objects.filter(document=document.pk).exists()
    elif ending == "replaced":
        assert ingest(library, "0.md", "# Fan\n\nThe fan turns.").status == Document.Status.READY
    else:
        rewrite_questions(document.chunks.order_by("ordinal")[0], ["Which fan is the pump?"])
    assert not Lexeme.objects.filter(document_frequency__lte=0).exists()
    reconcile(repair=True)
    assert check() == []


def test_a_check_changes_nothing(library: Collection) -> None:
    miscount_passages()
    delete_a_vector()
    assert [(one.kind, one.repaired) for one in reconcile()] == [
        (ProblemKind.MISSING_VECTORS, False),
        (ProblemKind.STATISTICS, False),
    ]
    assert kinds() == {ProblemKind.MISSING_VECTORS, ProblemKind.STATISTICS}


def cut_a_file_off() -> None:
    with open(Document.objects.get(source="0.md").file.path, "r+b") as file:
        file.truncate(5)


@pytest.mark.parametrize("damage", [delete_a_file, cut_a_file_off])
def test_a_file_that_is_gone_cannot_be_repaired_and_its_document_goes_on_serving(
    library: Collection, damage: Callable[[], None]
) -> None:
    damage()
    outdate_a_text()
    document = Document.objects.get(source="0.md")
    text, file = reconcile(repair=True)
    assert (text.kind, text.repaired, text.examples) == (ProblemKind.UNFIT_TEXT, False, (str(document.pk),))
    assert (file.kind, file.repaired) == (ProblemKind.MISSING_FILES, False)
    document.refresh_from_db()
    assert document.status == Document.Status.READY
    assert document.chunks.exists()


@pytest.mark.parametrize(("age_seconds", "is_left"), [(90, True), (4000, False)])
def test_what_a_failed_upload_left_is_deleted(library: Collection, age_seconds: int, is_left: bool) -> None:
    storage = Document.file.field.storage
    name = storage.save("documents/left.md", ContentFile(b"a"))
    then = time.time() - age_seconds
    os.utime(storage.path(name), (then, then))
    reconcile(repair=True)
    assert storage.exists(name) is is_left
    storage.delete(name)


def test_a_test_collection_without_files_is_in_order(collection: Collection) -> None:
    """Bulk loading keeps no files, and keeps documents without text."""
    from bench.bulk import NewDocument, replace_documents
    from retrieval.index.active_embedder import active_embedder

    replace_documents(collection, [NewDocument("a", "A", "en", "", "0" * 64, "0" * 64, ())], active_embedder())
    assert check() == []


def test_a_document_being_read_is_left_to_its_reader(library: Collection) -> None:
    outdate_a_text()
    Document.objects.filter(source="0.md").update(status=Document.Status.PROCESSING)
    assert check() == []


def test_what_the_embedder_cannot_do_does_not_keep_the_rest_from_being_repaired(
    library: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(texts: Sequence[str]) -> None:
        raise EmbeddingFailed("The embedding server does not answer.")

    delete_a_vector()
    miscount_passages()
    monkeypatch.setattr(conf.embedder(), "embed_documents", fail)
    with pytest.raises(CommandError, match="does not answer"):
        call_command("reconcile", "--repair")
    assert kinds() == {ProblemKind.MISSING_VECTORS}


def test_writers_and_repair_take_turns(library: Collection, ingest: Callable[..., Document]) -> None:
    """A document that arrives between the check and the repair is counted, not counted away."""
    miscount_passages()
    original = reconciliation.check

    def check_then_write() -> list[reconciliation.Inconsistency]:
        found = original()
        if not Document.objects.filter(source="late.md").exists():
            ingest(library, "late.md", "A pump that came late.")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reconciliation, "check", check_then_write)
        reconcile(repair=True)
    assert check() == []
    assert CollectionStatistics.objects.get(pk=library.pk).chunks == library.chunks.count()


def run(*arguments: str) -> tuple[str, str]:
    """What the command prints, and the error it ends with."""
    out = io.StringIO()
    try:
        call_command("reconcile", *arguments, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_the_command_for_people(library: Collection) -> None:
    assert run() == ("Everything agrees.\n", "")
    lose_a_lexeme()
    out, error = run()
    assert out.splitlines()[0].split() == ["count", "collection", "what", "for", "example"]
    assert out.splitlines()[1].split()[:2] == ["1", "library"]
    assert "pump" in out
    assert "--repair" in error
    out, error = run("--repair")
    assert out.splitlines()[1].endswith("repaired")
    assert error == ""
    assert run() == ("Everything agrees.\n", "")


def test_the_command_for_scripts(library: Collection) -> None:
    miscount_a_lexeme()
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


def test_another_embedder_is_not_switched_to(library: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf.embedder(), "name", "another")
    assert "reembed" in run("--repair")[1]


def test_the_result_is_kept_for_those_who_look(library: Collection) -> None:
    assert last_counts() == {}
    miscount_a_lexeme()
    tasks.reconcile.apply(throw=True)
    counts = last_counts()
    assert set(counts) == set(ProblemKind)
    assert counts["lexemes"] == 1
    assert sum(counts.values()) == 1
    tasks.reconcile.apply(kwargs={"repair": True}, throw=True)
    assert IndexCheck.objects.first().inconsistencies[0]["repaired"] is True
    assert sum(last_counts().values()) == 0
