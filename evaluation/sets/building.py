"""Questions made of answers that did not help, and the passages that questions expect."""

from __future__ import annotations

from collections import Counter

from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationSet, ExpectedPassage
from retrieval.documents.drafts.editing import draft_of
from retrieval.models import Chunk, Collection, Document

LONGEST_SLUG = 50
REFUSAL_HAS_NO_PASSAGE = _("A question that the documents do not answer has no passage to find.")


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
            "description": _t("Questions whose answers did not help, with passages that answer them."),
        },
    )[0]


def collection_asked(answer: Answer) -> Collection | None:
    """The collection that the answer was looked for in; where all were, the one its sources come from mostly.

    Of an answer from a draft it is the draft's collection. None when there is no collection at all.
    """
    if answer.collection is not None:
        return _in_service(answer.collection)
    sources = [source["document"]["id"] for source in answer.sources]
    counted = Counter(Document.objects.filter(pk__in=sources).order_by("pk").values_list("collection", flat=True))
    if not counted:
        return Collection.objects.in_service().first()
    return _in_service(Collection.objects.get(pk=counted.most_common(1)[0][0]))


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
    return ExpectedPassage.objects.update_or_create(
        question=question,
        source=chunk.document.source,
        content_hash=chunk.content_hash,
        defaults={"quote": chunk.content, "grade": grade},
    )[0]
