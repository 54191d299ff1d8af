"""Create evaluation questions from unhelpful answers and from files, with the passages that a search should find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.exceptions import EvaluationError, UnreadableTestSet
from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from evaluation.sets.beir_files import ImportedQuestion, read_questions
from retrieval.documents.drafts.editing import find_draft
from retrieval.models import Chunk, Collection, Document

LONGEST_SLUG = 50
REFUSAL_HAS_NO_PASSAGE = _("A question that the documents do not answer has no passage to find.")


def get_or_create_question(answer: Answer, evaluation_set: EvaluationSet) -> tuple[EvaluationQuestion, bool]:
    """Return the set's question for this answer, without an expectation yet, and whether it is new.

    A follow-up question is stored as it was rewritten for the search. If other collections may have supplied words
    of it, the user's own words are stored.
    """
    is_within = has_only_sources_of(answer, evaluation_set.collection)
    return EvaluationQuestion.objects.get_or_create(
        evaluation_set=evaluation_set,
        answer=answer,
        defaults={
            "text": answer.standalone_question if is_within else answer.question,
            "origin": EvaluationQuestion.Origin.FEEDBACK,
        },
    )


def has_only_sources_of(answer: Answer, collection: Collection) -> bool:
    behind = Collection.objects.filter(pk__in=answer.source_collections)
    return all(_find_collection_in_service(each) == collection for each in behind)


def get_complaint_set(collection: Collection) -> EvaluationSet:
    """Return the evaluation set for the collection's unhelpful answers; create it if it does not exist."""
    slug = f"complaints-{collection.slug}"[:LONGEST_SLUG]
    if EvaluationSet.objects.filter(slug=slug).exclude(collection=collection).exists():
        slug = f"complaints-{collection.pk}-{collection.slug}"[:LONGEST_SLUG]
    return EvaluationSet.objects.get_or_create(
        slug=slug,
        collection=collection,
        defaults={
            "name": _t("%s: answers that did not help") % collection,
            "description": _t("Questions whose answers did not help, with passages that answer them."),
        },
    )[0]


def find_collection_of_answer(answer: Answer) -> Collection | None:
    """Return the collection that was searched, or else the one to which most of the answer's sources belong.

    For a working copy, return its original. If there are no sources, return the site's first collection in service, or
    None.
    """
    if answer.collection is not None:
        return _find_collection_in_service(answer.collection)
    sources = [source["document"]["id"] for source in answer.sources]
    counted = Counter(Document.objects.filter(pk__in=sources).order_by("pk").values_list("collection", flat=True))
    if not counted:
        return Collection.objects.in_service().first()
    return _find_collection_in_service(Collection.objects.get(pk=counted.most_common(1)[0][0]))


def _find_collection_in_service(collection: Collection) -> Collection:
    draft = find_draft(collection)
    return collection if draft is None else draft.collection


def add_expected_passage(question: EvaluationQuestion, chunk: Chunk, grade: int = 1) -> ExpectedPassage:
    """Store that a search for the question should find the passage. A new grade replaces an earlier one.

    Raises: EvaluationError if the right answer to the question is a refusal.
    """
    if question.expects_refusal and grade > 0:
        raise EvaluationError(str(REFUSAL_HAS_NO_PASSAGE))
    return ExpectedPassage.objects.update_or_create(
        question=question,
        source=chunk.document.source,
        content_hash=chunk.content_hash,
        defaults={"quote": chunk.content, "grade": grade},
    )[0]


def read_files(queries: bytes, judgements: bytes | None, collection: Collection) -> list[ImportedQuestion]:
    """Read questions and judgements in BEIR's format. The ids of documents are their sources in the collection.

    Raises: UnreadableTestSet, also for an unknown document.
    """
    questions = read_questions(queries, judgements)
    known = set(Document.objects.filter(collection=collection).values_list("source", flat=True))
    unknown = [judged for one in questions for judged in one.judged if judged.grade > 0 and judged.source not in known]
    if unknown:
        more = f", and {len(unknown) - 1} lines more name others" if len(unknown) > 1 else ""
        raise UnreadableTestSet(
            f"{unknown[0].where}: the collection {collection.slug} has no document {unknown[0].source!r}{more}."
        )
    return questions


def add_questions(evaluation_set: EvaluationSet, questions: Sequence[ImportedQuestion]) -> None:
    rows = EvaluationQuestion.objects.bulk_create(
        EvaluationQuestion(
            evaluation_set=evaluation_set,
            text=one.text,
            expected_answer=one.expected_answer,
            expects_refusal=one.expected.refusal,
            must=list(one.expected.must),
            must_not=list(one.expected.must_not),
            longest=one.expected.longest,
            origin=EvaluationQuestion.Origin.IMPORTED,
            external_id=one.id,
        )
        for one in questions
    )
    ExpectedPassage.objects.bulk_create(
        ExpectedPassage(question=row, source=judged.source, grade=judged.grade)
        for row, one in zip(rows, questions, strict=True)
        for judged in one.judged
    )
