"""Sets made of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _t

from evaluation.exceptions import EvaluationError, UnreadableTestSet
from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from evaluation.sets.beir_files import ImportedQuestion, read_questions
from retrieval.documents.drafts.editing import draft_of
from retrieval.models import Collection, Document

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


def import_beir(
    queries: bytes,
    judgements: bytes | None,
    collection: Collection,
    *,
    slug: str,
    name: str = "",
    created_by: AbstractBaseUser | AnonymousUser | None = None,
) -> EvaluationSet:
    """A new set of the queries and judgements of two files, whose document ids are sources of the collection.

    All of it is there, or nothing. Raises: UnreadableTestSet, naming file and line, also for a document that the
    collection does not have; EvaluationError when there is a set of that short name, and for a draft's working copy.
    """
    if (draft := draft_of(collection)) is not None:
        names = {"copy": collection, "collection": draft.collection}
        message = _t("%(copy)s is a draft: make the set for %(collection)s, and run it on the draft.")
        raise EvaluationError(message % names)
    if slug != slugify(slug) or not slug:
        raise EvaluationError(f"{slug!r} is no short name: it is made of letters, digits and hyphens.")
    if EvaluationSet.objects.filter(slug=slug).exists():
        raise EvaluationError(f"There is an evaluation set named {slug!r} already.")
    questions = read_questions(queries, judgements)
    _check_documents(questions, collection)
    try:
        with transaction.atomic():
            evaluation_set = EvaluationSet.objects.create(
                slug=slug,
                name=name or slug,
                description=f"{len(questions)} questions, imported from files in BEIR's form.",
                collection=collection,
                created_by_id=created_by.pk if created_by else None,
            )
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
    except IntegrityError as error:
        raise EvaluationError(f"There is an evaluation set named {slug!r} already.") from error
    return evaluation_set


def _check_documents(questions: list[ImportedQuestion], collection: Collection) -> None:
    known = set(Document.objects.filter(collection=collection).values_list("source", flat=True))
    unknown = [judged for one in questions for judged in one.judged if judged.grade > 0 and judged.source not in known]
    if unknown:
        more = f", and {len(unknown) - 1} lines more name others" if len(unknown) > 1 else ""
        raise UnreadableTestSet(
            f"{unknown[0].where}: the collection {collection.slug} has no document {unknown[0].source!r}{more}."
        )
