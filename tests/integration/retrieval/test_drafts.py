"""A draft from its beginning to its end: what readers find changes as a whole, or not at all."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chat.models import Answer, Citation, Conversation
from core.job_queue import enqueue_forgotten_jobs
from retrieval import gates
from retrieval.documents import submission
from retrieval.documents.drafts import copying, lifecycle
from retrieval.documents.drafts.editing import find_reason_not_to_change, lock_collections_for_change
from retrieval.documents.drafts.lifecycle import DraftChanges, DraftRefused, find_draft_changes
from retrieval.documents.reconciliation import find_inconsistencies
from retrieval.exceptions import DocumentRejected, InvalidQuery
from retrieval.gates import Gate, PublicationObjection
from retrieval.index import embedder_choice
from retrieval.index.chunk_writer import recompute_term_weights, replace_chunk_questions
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, Draft
from retrieval.rights.search_filters import build_filters, build_unrestricted_filters
from retrieval.search.pipeline import search
from tests.integration.conftest import lose_tasks
from tests.support.libraries import remembered
from tests.support.site import database_url

pytestmark = pytest.mark.django_db(transaction=True)

# Long enough that two headings are two passages.
FILLER = " ".join(f"Sentence {place} tells nothing of importance to anyone." for place in range(40))
PUMP = f"# Pump\n\nThe pump weighs 3450 grams. {FILLER}\n\n# Seal\n\nThe seal kit is SK-9920. {FILLER}\n"
VALVE = "# Valve\n\nThe valve closes at ten bar.\n"
FAILED_STEP = "This step failed; it is tried again by itself. The log says why."
HEATER = "# Heater\n\nThe heater takes 40 watts.\n"


@pytest.fixture
@remembered
def library(collection, ingest):
    for source, text in (("pump.md", PUMP), ("valve.md", VALVE), ("heater.md", HEATER)):
        ingest(collection, source, text, metadata={"site": "north"})
    recompute_term_weights(collection)
    return collection


@pytest.fixture
def draft(library):
    return copied(lifecycle.begin_draft(library))


@pytest.fixture
def guarded(library, monkeypatch):
    """Give the library a gate; return the list of its objections."""
    objections = []
    gate = Gate(guards=lambda one: one.pk == library.pk, find_objections=lambda _: objections)
    monkeypatch.setattr(gates, "GATES", [gate])
    return objections


def copied(draft):
    found = lifecycle.resume_draft(draft.pk)
    assert (found.status, found.error) == (Draft.Status.OPEN, "")
    return found


def working_copy(draft):
    return Collection.objects.get(draft=draft)


def published(draft, **options):
    lifecycle.publish_draft(draft, **options)
    found = lifecycle.resume_draft(draft.pk)
    assert (found.status, found.error) == (Draft.Status.PUBLISHED, "")
    return found


def contents(collection):
    """All that search reads of a collection, without ids and without what depends on their order."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT document.source, document.title, document.metadata::text, chunk.ordinal, chunk.content,
                chunk.canonical_questions, chunk.questions_edited, chunk.heading_path, chunk.search_vector::text,
                chunk.bm25::text, encoded.embedder_id, encoded.vector::text, text.text, chunk.blocks::text
            FROM retrieval_document AS document
            JOIN retrieval_documenttext AS text ON text.document_id = document.id
            JOIN retrieval_chunk AS chunk ON chunk.document_id = document.id AND chunk.collection_id = %s
            JOIN retrieval_chunkembedding AS encoded ON encoded.chunk_id = chunk.id
                AND encoded.document_id = document.id AND encoded.collection_id = %s
            WHERE document.collection_id = %s
            ORDER BY document.source, chunk.ordinal
            """,
            [collection.pk] * 3,
        )
        return [tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row) for row in cursor]


def first_sources(question, slug=""):
    return [hit.passage.source for hit in search(question, build_unrestricted_filters(slug)).hits]


def test_the_working_copy_is_the_collection_to_the_last_weight_and_nothing_is_embedded_again(library, monkeypatch):
    monkeypatch.setattr(
        embedder_choice.get_embedder(), "embed_documents", lambda _: pytest.fail("A passage was embedded.")
    )
    draft = copied(lifecycle.begin_draft(library))
    copy = working_copy(draft)
    assert contents(copy) == contents(library) != []
    assert draft.copied == 3
    assert not find_draft_changes(draft)
    assert (copy.visibility, copy.text_search_configuration) == ("granted", "english")
    before, after = (CollectionStatistics.objects.get(pk=one.pk) for one in (library, copy))
    assert (after.chunks, after.reference_length) == (before.chunks, before.reference_length)
    assert after.total_length == pytest.approx(before.total_length)
    assert find_inconsistencies() == []
    # The dates by which documents are filtered, too.
    for name in ("created_at", "updated_at", "ingested_at"):
        assert set(copy.documents.values_list("source", name)) == set(library.documents.values_list("source", name))
    copy.documents.get(source="valve.md").delete()
    published(draft)


def test_only_its_name_finds_a_working_copy(library, draft):
    copy = working_copy(draft)
    staff = User(username="staff", is_staff=True)
    assert build_unrestricted_filters().collections == build_filters(staff).collections == (library.pk,)
    assert (
        build_unrestricted_filters(copy.slug).collections == build_filters(staff, copy.slug).collections == (copy.pk,)
    )
    with pytest.raises(InvalidQuery):
        build_filters(None, copy.slug)
    assert set(first_sources("How much does the pump weigh?", copy.slug)) <= {"pump.md", "valve.md", "heater.md"}


def test_a_copy_is_continued_where_a_worker_died(library, monkeypatch):
    draft = lifecycle.begin_draft(library)
    calls = []

    def dies_at_the_second(documents, collection):
        calls.append([document.source for document in documents])
        copying.copy_documents(documents, collection)
        if len(calls) == 2:
            raise RuntimeError("killed")

    monkeypatch.setattr(lifecycle, "copy_documents", dies_at_the_second)
    monkeypatch.setattr(lifecycle, "DOCUMENTS_A_STEP", 1)
    broken = lifecycle.resume_draft(draft.pk)
    assert (broken.status, broken.error, broken.copied) == (Draft.Status.COPYING, FAILED_STEP, 1)
    assert broken.retry_at is not None
    Draft.objects.update(retry_at=timezone.now())
    assert enqueue_forgotten_jobs(Draft) == 1
    done = copied(draft)
    assert done.copied == 3
    assert calls == [["pump.md"], ["valve.md"], ["valve.md"], ["heater.md"], []]
    assert contents(working_copy(done)) == contents(library)


def test_a_worker_does_not_wait_for_another(library):
    draft = lifecycle.begin_draft(library)
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as other:
        other.execute("SELECT 1 FROM retrieval_draft WHERE id = %s FOR NO KEY UPDATE", [draft.pk])
        assert lifecycle.resume_draft(draft.pk) is None
    copied(draft)


def test_a_collection_has_one_open_draft(library, draft):
    with pytest.raises(DraftRefused, match="has a draft already"):
        lifecycle.begin_draft(library)
    with pytest.raises(DraftRefused, match="itself a draft"):
        lifecycle.begin_draft(working_copy(draft))
    with pytest.raises(IntegrityError), transaction.atomic():
        Draft.objects.create(collection=library)
    lifecycle.discard_draft(draft)
    assert lifecycle.begin_draft(library).pk != draft.pk


def test_the_names_of_a_working_copy_fit(collection):
    Collection.objects.filter(pk=collection.pk).update(slug="s" * 50, name="n" * 200)
    copy = working_copy(lifecycle.begin_draft(collection))
    assert len(copy.slug) <= 50
    assert copy.name.endswith("n (draft)")


def test_a_collection_with_a_draft_changes_by_it_alone(library):
    draft = lifecycle.begin_draft(library)
    copy = working_copy(draft)
    assert "being copied" in find_reason_not_to_change(copy)
    copied(draft)
    with pytest.raises(DocumentRejected, match="Library is changed in its draft: choose Library \\(draft\\) instead"):
        submission.submit(library, "new.md", b"# New\n\nNew.")
    assert not library.documents.filter(source="new.md").exists()
    assert find_reason_not_to_change(copy) == ""
    copy.documents.get(source="valve.md").delete()
    lifecycle.publish_draft(draft)
    assert "being published" in find_reason_not_to_change(copy)
    assert "is changed in its draft" in find_reason_not_to_change(library)
    Draft.objects.filter(pk=draft.pk).update(status=Draft.Status.OPEN)
    lifecycle.discard_draft(draft)
    assert find_reason_not_to_change(library) == ""
    with pytest.raises(DocumentRejected, match="discarded"):
        submission.submit(copy, "new.md", b"# New\n\nNew.")


def test_a_published_draft_is_what_readers_find(library, draft, ingest):
    copy = working_copy(draft)
    pump = library.chunks.get(content__contains="3450 grams")
    seal = library.chunks.get(content__contains="SK-9920")
    heater = library.documents.get(source="heater.md")
    storage = heater.file.storage
    old = {document.source: str(document.file.name) for document in library.documents.all()}
    ingest(copy, "fan.md", "# Fan\n\nThe fan turns at 900 rpm.")
    ingest(copy, "pump.md", PUMP.replace("SK-9920", "SK-9921"))
    copy.documents.get(source="valve.md").delete()
    wanted = contents(copy)
    assert all(storage.exists(name) for name in old.values())
    assert find_draft_changes(draft) == DraftChanges(("fan.md",), ("pump.md",), ("valve.md",))
    assert "fan.md" not in first_sources("fan 900 rpm")

    done = published(draft)

    assert done.changes == {"added": ["fan.md"], "changed": ["pump.md"], "removed": ["valve.md"]}
    assert done.published_at is not None
    assert [row[:9] for row in contents(library)] == [row[:9] for row in wanted]
    assert [row[10:] for row in contents(library)] == [row[10:] for row in wanted]
    assert first_sources("fan 900 rpm")[0] == "fan.md"
    assert find_inconsistencies() == []
    # Unchanged documents keep their ids, so that citations stay valid.
    assert library.documents.get(source="heater.md").pk == heater.pk
    assert Chunk.objects.get(pk=pump.pk).content == pump.content
    assert not Chunk.objects.filter(pk=seal.pk).exists()
    # The copy is gone, the files that are still needed are not.
    assert not Collection.objects.filter(pk=copy.pk).exists()
    assert ChunkEmbedding.objects.exclude(collection=library).count() == 0
    assert {source for source, name in old.items() if storage.exists(name)} == {"heater.md"}
    assert all(storage.exists(str(document.file.name)) for document in library.documents.all())
    assert b"SK-9921" in library.documents.get(source="pump.md").file.read()


def test_what_stands_beside_the_text_is_a_change_too(library, draft):
    pump = Document.objects.filter(collection=working_copy(draft), source="pump.md")
    change = {
        "title": "The pump of all pumps", "url": "https://example.com/pump", "language": "nl",
        "metadata": {"site": "south"},
    }  # fmt: skip
    before = pump.values(*change).get()
    for name, value in change.items():
        pump.update(**{name: value})
        assert find_draft_changes(draft) == DraftChanges(changed=("pump.md",)), name
        pump.update(**before)
    assert not find_draft_changes(draft)
    pump.update(**change)
    version = CollectionStatistics.objects.get(pk=library.pk).version
    published(draft)
    assert library.documents.filter(source="pump.md", **change).exists()
    # Answers that were kept, and runs, are of other documents than these.
    assert CollectionStatistics.objects.get(pk=library.pk).version > version


def test_questions_written_in_a_draft_are_published_with_it(library, draft):
    pump, *_, seal = library.chunks.filter(document__source="pump.md").order_by("ordinal")
    replace_chunk_questions(pump, ["How heavy is it, then?"])
    held = working_copy(draft).chunks.get(document__source="pump.md", ordinal=pump.ordinal)
    replace_chunk_questions(held, ["What does the machine weigh?"])
    assert find_draft_changes(draft) == DraftChanges(changed=("pump.md",))
    published(draft)
    now = library.chunks.filter(document__source="pump.md").order_by("ordinal")
    assert [chunk.canonical_questions for chunk in now][0] == ["What does the machine weigh?"]
    assert now[0].questions_edited
    assert list(now)[-1].pk == seal.pk
    assert find_inconsistencies() == []


def test_passages_that_say_the_same_keep_their_places(collection, ingest):
    note = f"# Note\n\nSwitch it off. {FILLER}\n\n"
    twice = f"{note}# Other\n\nSwitch it on. {FILLER}\n\n{note}"
    ingest(collection, "notes.md", twice, title="Notes")
    draft = copied(lifecycle.begin_draft(collection))
    ingest(working_copy(draft), "notes.md", f"# Before\n\nRead this first. {FILLER}\n\n{twice}")
    ids = set(collection.chunks.values_list("pk", flat=True))
    wanted = [row[3:5] for row in contents(working_copy(draft))]
    published(draft)
    assert [row[3:5] for row in contents(collection)] == wanted
    assert ids <= set(collection.chunks.values_list("pk", flat=True))
    assert find_inconsistencies() == []


def test_a_draft_without_changes_or_with_unread_documents_is_not_published(library, draft):
    with pytest.raises(DraftRefused, match="changes nothing"):
        lifecycle.publish_draft(draft)
    submission.submit(working_copy(draft), "new.md", b"# New\n\nNew.", enqueue=False)
    with pytest.raises(DraftRefused, match="1 document is still being read"):
        lifecycle.publish_draft(draft)
    lifecycle.discard_draft(draft)
    submission.submit(library, "new.md", b"# New\n\nNew.", enqueue=False)
    with pytest.raises(DraftRefused, match="1 document is still being read"):
        lifecycle.begin_draft(library)


def test_a_permission_waits_for_a_change_that_is_being_made(library, draft):
    document = working_copy(draft).documents.get(source="pump.md")
    asked = threading.Event()

    def publish():
        asked.set()
        lifecycle.publish_draft(draft)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        with lock_collections_for_change(document.collection_id):
            asking = pool.submit(publish)
            asked.wait(10)
            with pytest.raises(TimeoutError):
                asking.result(0.5)
            Document.objects.filter(pk=document.pk).update(url="https://example.com/pump")
        asking.result(30)
    assert Draft.objects.get().status == Draft.Status.PUBLISHING
    lifecycle.resume_draft(draft.pk)
    assert library.documents.get(source="pump.md").url == "https://example.com/pump"


def test_a_change_after_the_permission_undoes_it(library, draft):
    working_copy(draft).documents.get(source="valve.md").delete()
    lifecycle.publish_draft(draft)
    working_copy(draft).documents.get(source="heater.md").delete()
    back = lifecycle.resume_draft(draft.pk)
    assert back.status == Draft.Status.OPEN
    assert "changed while the draft waited" in back.error
    assert library.documents.count() == 3
    published(back)
    assert library.documents.count() == 1


def test_a_publication_that_fails_changes_nothing(library, draft, ingest, guarded, monkeypatch):
    before = contents(library)
    ingest(working_copy(draft), "fan.md", "# Fan\n\nThe fan turns at 900 rpm.")
    working_copy(draft).documents.get(source="valve.md").delete()
    guarded.append(PublicationObjection("It finds less."))
    lifecycle.publish_draft(draft, override="I know.")

    def breaks(documents, collection):
        copying.copy_documents(documents, collection)
        raise RuntimeError("disk full")

    monkeypatch.setattr(lifecycle, "copy_documents", breaks)
    back = lifecycle.resume_draft(draft.pk)
    assert (back.status, back.error) == (
        Draft.Status.OPEN,
        "Publishing it failed, and nothing was changed. The log says why.",
    )
    assert (back.objections, back.override, back.published_by_id) == ([], "", None)
    assert contents(library) == before
    assert find_inconsistencies() == []


def test_a_publication_that_ends_its_worker_each_time_is_given_back(library, draft, monkeypatch):
    class Killed(BaseException):
        """Acts as kill -9: the worker's later steps are not done."""

    def killed(*_):
        raise Killed

    working_copy(draft).documents.get(source="valve.md").delete()
    lifecycle.publish_draft(draft)
    with monkeypatch.context() as patched:
        patched.setattr(lifecycle, "find_draft_changes", killed)
        for _ in range(Draft.MOST_ATTEMPTS):
            assert Draft.objects.get().status == Draft.Status.PUBLISHING
            with pytest.raises(Killed):
                lifecycle.resume_draft(draft.pk)
            Draft.objects.update(heartbeat_at=timezone.now() - 2 * Draft.SILENT_AFTER)
            enqueue_forgotten_jobs(Draft)
    back = Draft.objects.get()
    assert (back.status, back.attempts) == (Draft.Status.OPEN, 0)
    assert "interrupted 5 times" in back.error
    assert library.documents.count() == 3
    published(back)


def test_a_discarded_draft_leaves_nothing(library, draft, ingest):
    before, copy = contents(library), working_copy(draft)
    new = ingest(copy, "fan.md", "# Fan\n\nThe fan turns at 900 rpm.")
    lifecycle.discard_draft(draft)
    # The broker lost it.
    lose_tasks()
    Draft.objects.update(enqueued_at=timezone.now() - timedelta(minutes=10))
    assert enqueue_forgotten_jobs(Draft) == 1
    lifecycle.resume_draft(draft.pk)
    assert enqueue_forgotten_jobs(Draft) == 0
    assert contents(library) == before
    assert not Collection.objects.filter(pk=copy.pk).exists()
    assert not new.file.storage.exists(str(new.file.name))
    assert all(one.file.storage.exists(str(one.file.name)) for one in library.documents.all())
    assert find_inconsistencies() == []
    with pytest.raises(DraftRefused, match="discarded"):
        lifecycle.discard_draft(draft)
    with pytest.raises(DraftRefused, match="discarded"):
        lifecycle.publish_draft(draft)


def asked(collection):
    """Return a saved answer that cites a passage of the collection."""
    chunk = Chunk.objects.filter(collection=collection).select_related("document").order_by("pk")[0]
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(),
        collection=collection,
        question="What does the pump weigh?",
        text="It weighs 3450 grams [1].",
        status=Answer.Status.COMPLETED,
    )
    Citation.objects.create(
        answer=answer, marker=1, marker_start=21, marker_end=24, chunk=chunk, document=chunk.document,
        document_title=chunk.document.title, quote="The pump weighs 3450 grams.", start=0, end=27,
    )  # fmt: skip
    return answer


@pytest.mark.parametrize("is_published", [True, False], ids=["published", "discarded"])
def test_a_draft_that_was_asked_is_cleared_away(library, draft, is_published):
    copy, reader, curator = working_copy(draft), asked(library), asked(working_copy(draft))
    quoted = reader.citations.get().chunk
    if is_published:
        copy.documents.get(source="valve.md").delete()
        published(draft)
    else:
        lifecycle.discard_draft(draft)
        lifecycle.resume_draft(draft.pk)
    draft.refresh_from_db()
    assert (draft.error, draft.working_copy_id) == ("", None)
    assert not Document.objects.filter(collection=copy.pk).exists()
    # The words stay with the answer, and a reader's citation leads to its passage still.
    kept = curator.citations.get()
    assert (kept.quote, kept.chunk, kept.document) == ("The pump weighs 3450 grams.", None, None)
    assert quoted is not None
    assert reader.citations.get().chunk == quoted
    assert find_inconsistencies() == []


def test_a_deleted_collection_takes_its_draft_along(library, draft):
    library.delete()
    assert not Draft.objects.exists()
    assert not Collection.objects.exists()
    assert not Chunk.objects.exists()
