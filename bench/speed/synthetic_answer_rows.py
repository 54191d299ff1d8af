"""Putting made-up answers into the database, and taking them out again, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction
from django.db.models import AutoField, Model

from chat.models import Answer, Citation, Conversation, Feedback
from evaluation.models import EvaluationQuestion, Experiment, Exposure, Judgement, Score
from retrieval.models import Collection, Document, SearchProfile

SLUG = "benchmark-answers"
TABLES = (Answer, Citation, Conversation, Document, Experiment, Exposure, Feedback, Judgement, Score)

# Whatever hangs on a made-up answer, before what it hangs on; by statements of the database, for to collect a hundred
# thousand objects and their kin takes minutes.
_CONVERSATIONS = "SELECT id FROM chat_conversation WHERE title = %(title)s AND starts_with(visitor, %(title)s)"
_ANSWERS = f"SELECT id FROM chat_answer WHERE conversation_id IN ({_CONVERSATIONS})"
_MADE_UP = {
    "evaluation_score": f"judgement_id IN (SELECT id FROM evaluation_judgement WHERE answer_id IN ({_ANSWERS}))",
    "evaluation_judgement": f"answer_id IN ({_ANSWERS})",
    "evaluation_exposure": f"answer_id IN ({_ANSWERS})",
    "chat_feedback": f"answer_id IN ({_ANSWERS})",
    "chat_citation": f"answer_id IN ({_ANSWERS})",
    "chat_answer": f"conversation_id IN ({_CONVERSATIONS})",
    "chat_conversation": f"id IN ({_CONVERSATIONS})",
}


def remove() -> None:
    """Delete what an earlier :func:`load` made, and have the indexes forget it."""
    with transaction.atomic():
        Experiment.objects.filter(name=SLUG).delete()
        EvaluationQuestion.objects.filter(answer__conversation__title=SLUG).update(answer=None)
        with connection.cursor() as cursor:
            for table, theirs in _MADE_UP.items():
                cursor.execute(f"DELETE FROM {table} WHERE {theirs}", {"title": SLUG})
        Document.objects.filter(collection__slug=SLUG).only(
            "pk", "collection_id", "file", "title", "source", "created_at"
        ).delete()
        Collection.objects.filter(slug=SLUG).delete()
        SearchProfile.objects.filter(slug=SLUG).delete()
    settle()


def settle() -> None:
    """Have PostgreSQL do now what it would do within minutes, so that it does not do it while things are timed."""
    vacuum = "ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)"
    with connection.cursor() as cursor:
        for model in TABLES:
            cursor.execute(f"{vacuum} {connection.ops.quote_name(model._meta.db_table)}")


def copy(rows: Iterable[Model]) -> None:
    """Write the rows as they are: `bulk_create` would put the present into the times at which they were made.

    Keys that the database gives are left to it.
    """
    remaining = iter(rows)
    first = next(remaining, None)
    if first is None:
        return
    fields = [
        field for field in first._meta.concrete_fields if not isinstance(field, AutoField) and not field.generated
    ]
    quote = connection.ops.quote_name
    names = ", ".join(quote(str(field.column)) for field in fields)

    def values(row: Model) -> list[Any]:
        return [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]

    with connection.cursor() as cursor, cursor.copy(f"COPY {quote(first._meta.db_table)} ({names}) FROM STDIN") as copy:
        copy.write_row(values(first))
        for row in remaining:
            copy.write_row(values(row))
