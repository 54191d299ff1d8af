"""Check that killed processes neither lost nor doubled acknowledged data, and that the index is consistent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Count

from bench.reliability.load import DRAFTED, UPLOADED, SubmissionLedger, fresh_connection
from chat.models import Answer
from evaluation.models import Judgement, Score
from retrieval.documents import reconciliation
from retrieval.documents.reconciliation import reconcile_index
from retrieval.documents.submission import requeue_document
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Document, Draft


@fresh_connection()
def find_invariant_violations(ledger: SubmissionLedger, *, at_rest: bool) -> list[str]:
    found = [*_check_documents(ledger), *_check_answers(ledger), *_list_index_inconsistencies()]
    if at_rest:
        found += [*_list_unfinished_rows(), *_compare_passage_counts()]
    return found


@fresh_connection()
def requeue_interrupted_documents() -> int:
    """Queue documents again that failed because their reading was interrupted. Return their number."""
    interrupted = f"Reading it was interrupted {Document.MOST_ATTEMPTS} times"
    given_up = list(Document.objects.filter(status=Document.Status.FAILED, error__startswith=interrupted))
    for document in given_up:
        requeue_document(document, enqueue=False)
    return len(given_up)


@fresh_connection()
def count_files_left_behind() -> tuple[int, int]:
    """Repair the file storage. Return the numbers of files without a document before and after the repair.

    A file is stored before its document. If the process is killed in between, the file stays until the nightly check.
    """
    before = len(_list_stored_files() - _list_document_file_names())
    young, reconciliation.ORPHANED_AFTER = reconciliation.ORPHANED_AFTER, timedelta(0)
    try:
        reconcile_index(repair=True)
    finally:
        reconciliation.ORPHANED_AFTER = young
    return before, len(_list_stored_files() - _list_document_file_names())


def _check_documents(ledger: SubmissionLedger) -> list[str]:
    stored = dict(Document.objects.filter(collection__slug=UPLOADED).values_list("source", "content_hash"))
    acknowledged, versions = set(ledger.acknowledged), {name: list(all_) for name, all_ in ledger.versions.items()}
    found = [f"The document {name} was acknowledged and is not there." for name in acknowledged - set(stored)]
    found += [f"Nobody has sent the document {name}." for name in set(stored) - set(versions)]
    found += [
        f"The document {name} holds neither the last acknowledged version nor a later one."
        for name in acknowledged & set(stored)
        if stored[name] not in versions[name]
    ]
    lost = _list_document_file_names() - _list_stored_files()
    return found + [f"The file {name} of a document is not there." for name in sorted(lost)]


def _check_answers(ledger: SubmissionLedger) -> list[str]:
    told = dict(ledger.answers)
    stored = {str(pk): text for pk, text in Answer.objects.filter(pk__in=list(told)).values_list("pk", "text")}
    found = [f"The answer {pk} was given and is not there." for pk in told.keys() - stored.keys()]
    found += [f"The answer {pk} is not the one that was given." for pk in stored if stored[pk] != told[pk]]
    doubled = Answer.objects.order_by().values("question").annotate(rows=Count("pk")).filter(rows__gt=1)
    found += [
        f"The question {row['question'][:60]!r} was asked once and is there {row['rows']} times." for row in doubled
    ]
    for model, fields in ((Judgement, ("answer", "judge")), (Score, ("judgement", "metric"))):
        rows = model.objects.order_by().values(*fields).annotate(rows=Count("pk")).filter(rows__gt=1)
        found += [f"{model.__name__} {row} is there {row['rows']} times." for row in rows]
    return found


def _list_index_inconsistencies() -> list[str]:
    return [
        f"{one.count} {one.kind.label}, such as {', '.join(one.examples)}."
        for one in reconciliation.find_inconsistencies()
    ]


def _list_unfinished_rows() -> list[str]:
    found = []
    for what, rows in (
        ("document", Document.objects.exclude(status=Document.Status.READY)),
        ("answer", Answer.objects.filter(status__in=["pending", "generating"])),
        ("judgement", Judgement.objects.filter(status__in=["queued", "running", "failed"])),
        ("draft", Draft.objects.filter(status__in=["copying", "publishing"])),
    ):
        found += [f"The {what} {row.pk} is {row.status}: {getattr(row, 'error', '')[:200]}" for row in rows]
    unjudged = Answer.objects.filter(status="completed", judgements=None).values_list("pk", flat=True)
    return found + [f"The answer {pk} was never judged." for pk in unjudged]


def _compare_passage_counts() -> list[str]:
    chunks = Chunk.objects.count()
    vectors = ChunkEmbedding.objects.filter(embedder__is_active=True).count()
    statistics = sum(CollectionStatistics.objects.values_list("chunks", flat=True))
    if chunks == vectors == statistics:
        return []
    return [f"{chunks} passages, {vectors} vectors, {statistics} in the statistics."]


def _list_document_file_names() -> set[str]:
    return set(Document.objects.exclude(file="").values_list("file", flat=True))


def _list_stored_files() -> set[str]:
    media = Path(settings.MEDIA_ROOT)
    folder = media / reconciliation.UPLOAD_FOLDER
    return {str(path.relative_to(media)) for path in folder.rglob("*") if path.is_file()} if folder.is_dir() else set()


@fresh_connection()
def count_stored_rows() -> dict[str, int]:
    return {
        "documents": Document.objects.filter(collection__slug__in=[UPLOADED, DRAFTED]).count(),
        "passages": Chunk.objects.count(),
        "answers": Answer.objects.count(),
        "completed answers": Answer.objects.filter(status="completed").count(),
        "failed answers": Answer.objects.filter(status="failed").count(),
        "scores": Score.objects.count(),
        "published drafts": Draft.objects.filter(status="published").count(),
    }
