"""Sets made from canonical questions and from answers that did not help."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from retrieval.documents.drafts.editing import draft_of
from retrieval.models import Chunk, Collection, Document

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LONGEST_SLUG = 50
REFUSAL_HAS_NO_PASSAGE = _("A question that the documents do not answer has no passage to find.")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A canonical question, in the words of its first passage, and every passage that it is a question of."""

    text: str
    chunk_ids: list[int]


def set_from_canonical_questions(
    collection: Collection,
    number: int,
    *,
    seed: int = 0,
    name: str = "",
    created_by: AbstractBaseUser | AnonymousUser | None = None,
) -> EvaluationSet:
    """A new set of ``number`` of the collection's canonical questions, or of all when it has fewer.

    The same seed draws the same questions of the same passages, one of each passage. Passages that share a question are
    all expected. Such questions are indexed with their own passages: they flatter every search, by words most of all.
    Raises: EvaluationError when the collection has no canonical question, and for a draft's working copy.
    """
    require_in_service(collection)
    drawn = _draw(collection, seed)[:number]
    if not drawn:
        raise EvaluationError(_t("The passages of %s have no canonical questions.") % collection)
    chunks = Chunk.objects.prefetch_related("document").in_bulk([chunk for one in drawn for chunk in one.chunk_ids])
    with transaction.atomic():
        evaluation_set = EvaluationSet.objects.create(
            slug=_free_slug(name or f"{collection.slug}-canonical"),
            name=name or _t("%s: canonical questions") % collection,
            description=_t(
                "%(number)d canonical questions, drawn with seed %(seed)d. They are indexed with their own passages, "
                "which flatters search, by words most of all: compare profiles with them, and trust no figure alone."
            )
            % {"number": len(drawn), "seed": seed},
            collection=collection,
            created_by_id=created_by.pk if created_by else None,
        )
        questions = EvaluationQuestion.objects.bulk_create(
            EvaluationQuestion(evaluation_set=evaluation_set, text=one.text, origin=EvaluationQuestion.Origin.CANONICAL)
            for one in drawn
        )
        ExpectedPassage.objects.bulk_create(
            expected_of(question, chunks[chunk])
            for question, one in zip(questions, drawn, strict=True)
            for chunk in one.chunk_ids
            # A passage that a worker replaced since it was drawn is left out.
            if chunk in chunks
        )
    return evaluation_set


def _draw(collection: Collection, seed: int) -> list[_Asked]:
    """The collection's canonical questions, shuffled by the seed: first one of each passage."""
    by_words: dict[str, _Asked] = {}
    rows = (
        Chunk.objects.filter(collection=collection)
        .exclude(canonical_questions=[])
        .values_list("pk", "content_hash", "canonical_questions")
    )
    order: dict[str, str] = {}
    for pk, content_hash, questions in rows.order_by("document__source", "ordinal").iterator():
        text = next((" ".join(question.split()) for question in questions if question.strip()), "")
        if not text:
            continue
        words = text.casefold()
        by_words.setdefault(words, _Asked(text, [])).chunk_ids.append(pk)
        order.setdefault(words, hashlib.sha256(f"{seed}\x00{content_hash}\x00{words}".encode()).hexdigest())
    return [by_words[words] for words in sorted(by_words, key=lambda words: order[words])]


def question_from_answer(answer: Answer, evaluation_set: EvaluationSet) -> tuple[EvaluationQuestion, bool]:
    """The set's question for this answer, and whether it is new; a draft until somebody says what it should find.

    A follow-up is taken as it was rewritten, or with the question before it. A rewritten one may have words of all that
    the answer rests on; where this is more than the set's collection, which is all that readers of the set
    are sure to see, the question is taken as it was typed.
    """
    is_within = rests_within(answer, evaluation_set.collection)
    return EvaluationQuestion.objects.get_or_create(
        evaluation_set=evaluation_set,
        answer=answer,
        defaults={
            "text": answer.standing_alone if is_within else answer.question,
            "origin": EvaluationQuestion.Origin.FEEDBACK,
        },
    )


def rests_within(answer: Answer, collection: Collection) -> bool:
    """Whether all documents behind the answer lie in the collection, or in a working copy of it."""
    behind = Collection.objects.filter(pk__in=answer.source_collections)
    return all(_in_service(each) == collection for each in behind)


def complaints_of(collection: Collection) -> EvaluationSet:
    """The set that takes the answers of the collection that did not help, made when it is first needed."""
    slug = f"complaints-{collection.slug}"[:LONGEST_SLUG]
    if EvaluationSet.objects.filter(slug=slug).exclude(collection=collection).exists():
        # Two long names may begin alike; the id tells them apart.
        slug = f"complaints-{collection.pk}-{collection.slug}"[:LONGEST_SLUG]
    return EvaluationSet.objects.get_or_create(
        slug=slug,
        collection=collection,
        defaults={
            "name": _t("%s: answers that did not help") % collection,
            "description": _t("Questions whose answers did not help, with the passages that would have."),
        },
    )[0]


def collection_asked(answer: Answer) -> Collection | None:
    """The collection that the answer was looked for in; where all were, the one its sources come from mostly.

    Of an answer from a draft it is the draft's collection. None when there is no collection at all.
    """
    if answer.conversation.collection is not None:
        return _in_service(answer.conversation.collection)
    sources = [source["document"]["id"] for source in answer.sources]
    counted = Counter(Document.objects.filter(pk__in=sources).order_by("pk").values_list("collection", flat=True))
    if not counted:
        return Collection.objects.in_service().first()
    return _in_service(Collection.objects.get(pk=counted.most_common(1)[0][0]))


def require_in_service(collection: Collection) -> None:
    """Raises: EvaluationError for a draft's working copy, which goes with its draft, and its sets with it."""
    if (draft := draft_of(collection)) is not None:
        names = {"copy": collection, "collection": draft.collection}
        message = _t("%(copy)s is a draft: make the set for %(collection)s, and run it on the draft.")
        raise EvaluationError(message % names)


def _in_service(collection: Collection) -> Collection:
    """The collection itself; of a draft's working copy the one that it is a draft of."""
    draft = draft_of(collection)
    return collection if draft is None else draft.collection


def expect(question: EvaluationQuestion, chunk: Chunk, grade: int = 1) -> ExpectedPassage:
    """The passage as one that the question should find; expected before, it has the new grade. Saved.

    Raises: EvaluationError when the documents are expected not to answer the question.
    """
    if question.expects_refusal and grade > 0:
        raise EvaluationError(str(REFUSAL_HAS_NO_PASSAGE))
    expected = expected_of(question, chunk, grade)
    return ExpectedPassage.objects.update_or_create(
        question=question,
        source=expected.source,
        content_hash=expected.content_hash,
        defaults={"quote": expected.quote, "grade": grade},
    )[0]


def expected_of(question: EvaluationQuestion, chunk: Chunk, grade: int = 1) -> ExpectedPassage:
    """The passage as one that the question should find, not yet saved."""
    return ExpectedPassage(
        question=question,
        source=chunk.document.source,
        quote=chunk.content,
        content_hash=chunk.content_hash,
        grade=grade,
    )


def _free_slug(name: str) -> str:
    """A short name that no set has, made of ``name``."""
    start = slugify(name)[: LONGEST_SLUG - 5] or "set"
    taken = set(EvaluationSet.objects.filter(slug__startswith=start).values_list("slug", flat=True))
    return next(slug for slug in (start, *(f"{start}-{n}" for n in range(2, 10_000))) if slug not in taken)
