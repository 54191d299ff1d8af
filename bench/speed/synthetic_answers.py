"""Made-up answers with all that hangs on them, for timing what is reckoned over many of them.

Nothing in them means anything, but what time depends on is as in real ones: how wide the rows are and which of their
values lie out of line, how many scores, citations and marks an answer has, and that answers lie in the table in the
order in which they were asked. PostgreSQL draws them: a row is made with Django, and copied with other values.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from bench.reporting import Report
from chat.models import Answer, Citation, Conversation, Feedback
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, Experiment, Judgement, Score
from retrieval.models import Collection, Document, SearchProfile, SearchProfileVersion, Visibility
from retrieval.profile_settings import to_json
from retrieval.search import profiles

SLUG = "benchmark-answers"
DAYS = 90
ANSWERS_A_VISITOR = 2
# A document for so many answers; of five, one is never cited.
ANSWERS_A_DOCUMENT = 20

_OFFLINE = {"groundedness": 0.5, "citation_support": 0.8, "answer_relevancy": 0.3, "contextual_relevancy": 0.3}
_MODEL = {"faithfulness": 0.5, "answer_relevancy": 0.5}

# Whatever hangs on a made-up answer, before what it hangs on; by statements of the database, for to collect a hundred
# thousand objects and their kin takes minutes.
_CONVERSATIONS = f"SELECT id FROM chat_conversation WHERE title = '{SLUG}' AND starts_with(visitor, '{SLUG}')"
_ANSWERS = f"SELECT id FROM chat_answer WHERE conversation_id IN ({_CONVERSATIONS})"
_MADE_UP = {
    Score: f"judgement_id IN (SELECT id FROM evaluation_judgement WHERE answer_id IN ({_ANSWERS}))",
    Judgement: f"answer_id IN ({_ANSWERS})",
    Feedback: f"answer_id IN ({_ANSWERS})",
    Citation: f"answer_id IN ({_ANSWERS})",
    Answer: f"conversation_id IN ({_CONVERSATIONS})",
    Conversation: f"id IN ({_CONVERSATIONS})",
}
_FIRST_DOCUMENT = f"(SELECT min(id) FROM retrieval_document WHERE starts_with(source, '{SLUG}'))"
# Random digits, which do not shrink where they are stored.
_DIGITS = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, {pieces}) WHERE row IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class LoadedAnswers:
    """``experiment`` ran the whole time, and every visitor took part."""

    number: int
    collection: Collection
    experiment: Experiment
    build_seconds: float


def load(number: int, report: Report) -> LoadedAnswers:
    """About that many answers of the last 90 days, of a collection of their own or of all collections.

    All appear in one transaction. Raises: EvaluationError when an experiment runs, which they would disturb.
    """
    if Experiment.objects.filter(state=Experiment.State.RUNNING).exists():
        raise EvaluationError("An experiment is running: made-up answers would be counted among its own.")
    remove()
    started = time.perf_counter()
    with transaction.atomic():
        collection = Collection.objects.create(
            slug=SLUG,
            name="Benchmark of answers",
            description="Made up by `manage.py benchmark_dashboard`; can be deleted.",
            visibility=Visibility.STAFF,
        )
        experiment = _experiment()
        steps = _steps(number, collection)
        for place, step in enumerate(steps):
            report("making up answers", place, len(steps))
            _copy(*step)
    _settle()
    return LoadedAnswers(number, collection, experiment, time.perf_counter() - started)


def remove() -> None:
    """Delete what an earlier :func:`load` made, and have the indexes forget it."""
    with transaction.atomic():
        Experiment.objects.filter(name=SLUG).delete()
        EvaluationQuestion.objects.filter(answer__conversation__title=SLUG).update(answer=None)
        with connection.cursor() as cursor:
            for model, theirs in _MADE_UP.items():
                cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE {theirs}")
        Document.objects.filter(collection__slug=SLUG).only(
            "pk", "collection_id", "file", "title", "source", "created_at"
        ).delete()
        Collection.objects.filter(slug=SLUG).delete()
        SearchProfile.objects.filter(slug=SLUG).delete()
    _settle()


def _settle() -> None:
    """Have PostgreSQL do now what it would do within minutes, so that it does not do it while things are timed."""
    vacuum = "ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)"
    with connection.cursor() as cursor:
        for model in (*_MADE_UP, Document):
            cursor.execute(f"{vacuum} {model._meta.db_table}")


def _experiment() -> Experiment:
    """As if it had just ended: only one may run, and what is timed reads one that ended today like a running one."""
    profile = SearchProfile.objects.create(slug=SLUG, name=SLUG)
    settings = to_json(profiles.built_in_profile())
    version = SearchProfileVersion.objects.create(profile=profile, number=1, settings=settings)
    now = timezone.now()
    return Experiment.objects.create(
        name=SLUG,
        treatment=version,
        control_settings=settings,
        salt=SLUG,
        state=Experiment.State.ENDED,
        started_at=now - timedelta(days=DAYS),
        ended_at=now,
    )


Step = tuple[Model, str, Mapping[str, str]]


def _steps(number: int, collection: Collection) -> list[Step]:
    """What is copied: a row, a query that has a row for each copy, and what is other in the copy, as SQL by column."""
    document = Document(collection=collection, title="x", source="x", chunk_count=5, status=Document.Status.READY)
    conversation = Conversation(visitor=SLUG, title=SLUG)
    answer = Answer(
        conversation=conversation, question="x", status=Answer.Status.COMPLETED, search_method="adaptive",
        generator="extractive", confidence=0.5, attempts=1,
    )  # fmt: skip
    citation = Citation(
        answer=answer, marker=1, marker_start=0, marker_end=3, document_title="Document", quote="x" * 160, start=0,
        end=160, support=0.9,
    )  # fmt: skip
    documents, visitors = max(5, number // ANSWERS_A_DOCUMENT), -(-number // ANSWERS_A_VISITOR)
    first, second, cited = (
        f"{_FIRST_DOCUMENT} + mod(row.place * 7 + {step}, {among})"
        for step, among in ((0, documents), (1, documents), (0, max(1, documents * 4 // 5)))
    )
    finished = f"SELECT *, row_number() OVER () AS place FROM chat_answer WHERE id IN ({_ANSWERS})"
    complete = f"{finished} AND status = 'completed'"
    return [
        (
            document,
            f"SELECT place FROM generate_series(1, {documents}) AS place",
            {
                "id": "nextval(pg_get_serial_sequence('retrieval_document', 'id'))",
                **dict.fromkeys(("title", "source", "content_hash"), f"'{SLUG}-' || row.place"),
            },
        ),
        (
            # In the order in which they began, the last one before now; three of five ask the collection alone.
            conversation,
            "SELECT row_number() OVER () AS place, at FROM (SELECT now() - interval '10 min' "
            f"- random() * interval '{DAYS - 1} days' AS at FROM generate_series(1, {visitors}) ORDER BY 1) AS drawn",
            {
                "id": "gen_random_uuid()",
                "visitor": f"'{SLUG}-' || row.place",
                "created_at": "row.at",
                "updated_at": "row.at",
                "collection_id": f"CASE WHEN random() < .6 THEN {collection.pk} END",
            },
        ),
        (
            # Of ten one refuses, of fifty one failed, of twenty one repeats another.
            answer,
            "SELECT conversation.id AS conversation, row_number() OVER (ORDER BY created_at, turn) AS place, "
            "created_at + turn * interval '2 min' AS at, random() AS fate, exp(6.8 + .6 * random()) AS total "
            f"FROM chat_conversation AS conversation, generate_series(0, {ANSWERS_A_VISITOR - 1}) AS turn "
            f"WHERE id IN ({_CONVERSATIONS}) ORDER BY place LIMIT {number}",
            {
                "id": "gen_random_uuid()",
                "conversation_id": "row.conversation",
                "collection_id": "(SELECT collection_id FROM chat_conversation WHERE id = row.conversation)",
                "question": "'How does thing ' || mod(row.place, 5000) || ' work with ' || md5(row.place::text) || '?'",
                "status": "CASE WHEN row.fate < .02 THEN 'failed' WHEN row.fate < .03 THEN 'stopped' "
                "ELSE 'completed' END",
                "refused": "row.fate > .9",
                "degraded": "CASE WHEN random() < .025 THEN '[\"vector\"]'::jsonb ELSE '[]'::jsonb END",
                "text": _DIGITS.format(pieces=10),
                # Both wide enough to lie out of line, as those of real answers do.
                "sources": f"jsonb_build_array(jsonb_build_object('content', {_DIGITS.format(pieces=30)}, "
                f"'document', jsonb_build_object('id', {first})), "
                f"jsonb_build_object('document', jsonb_build_object('id', {second})))",
                "trace": f"jsonb_build_object('candidates', {_DIGITS.format(pieces=78)})",
                "timings_ms": 'CASE WHEN row.fate BETWEEN .03 AND .08 THEN \'{"repeated": 2, "total": 3}\'::jsonb '
                "ELSE jsonb_build_object('first_token', row.total * .6, 'total', row.total) END",
                "created_at": "row.at",
                "completed_at": "row.at + row.total * interval '1 ms'",
            },
        ),
        (
            # Every seventh answer is marked, and two of three of those helped.
            Feedback(answer=answer, helpful=True),
            f"SELECT * FROM ({finished}) AS done WHERE random() < 1.0 / 7",
            {
                "id": "nextval(pg_get_serial_sequence('chat_feedback', 'id'))",
                "answer_id": "row.id",
                "helpful": "random() < .67",
                "created_at": "row.completed_at + interval '1 min'",
            },
        ),
        (
            citation,
            f"SELECT done.*, marker FROM ({complete} AND NOT refused) AS done, generate_series(1, 2) AS marker",
            {
                "id": "nextval(pg_get_serial_sequence('chat_citation', 'id'))",
                "answer_id": "row.id",
                "marker": "row.marker",
                "document_id": cited,
            },
        ),
        *_judged(answer, complete, Judgement.Judge.OFFLINE, _OFFLINE, share=1.0),
        *_judged(answer, complete, Judgement.Judge.MODEL, _MODEL, share=0.1),
    ]


def _judged(
    answer: Answer, complete: str, judge: Judgement.Judge, thresholds: Mapping[str, float], share: float
) -> list[Step]:
    """Of a share of the complete answers; of a hundred scores one is an error."""
    judgement = Judgement(answer=answer, judge=judge, judge_name="made up", status=Judgement.Status.DONE, attempts=1)
    score = Score(
        judgement=judgement, metric="groundedness", score=0.5, reason="Because the passages say so, or do not."
    )
    metrics = ", ".join(f"('{metric}', {threshold})" for metric, threshold in thresholds.items())
    return [
        (
            judgement,
            f"SELECT * FROM ({complete}) AS done WHERE random() < {share}",
            {
                "id": "nextval(pg_get_serial_sequence('evaluation_judgement', 'id'))",
                "answer_id": "row.id",
                **dict.fromkeys(("created_at", "enqueued_at", "finished_at"), "row.completed_at + interval '5 s'"),
            },
        ),
        (
            score,
            "SELECT judgement.id, judgement.created_at, metric, threshold, random() < .01 AS fails "
            f"FROM evaluation_judgement AS judgement, (VALUES {metrics}) AS metrics(metric, threshold) "
            f"WHERE judge = '{judge}' AND answer_id IN ({_ANSWERS})",
            {
                "id": "nextval(pg_get_serial_sequence('evaluation_score', 'id'))",
                "judgement_id": "row.id",
                "metric": "row.metric",
                "threshold": "row.threshold",
                "score": "CASE WHEN NOT row.fails THEN 1 - random() * random() END",
                "error": "CASE WHEN row.fails THEN 'The judge is away.' ELSE '' END",
                "details": f"jsonb_build_array(jsonb_build_object('text', {_DIGITS.format(pieces=15)}))",
                "created_at": "row.created_at",
            },
        ),
    ]


def _copy(prototype: Model, rows: str, values: Mapping[str, str]) -> None:
    """A copy of the row for each of ``rows``; the row itself goes. Foreign keys are checked at the end alone."""
    for name, related in list(prototype._state.fields_cache.items()):
        setattr(prototype, name, related)  # its key, which it has by now
    model: Any = type(prototype)
    model.objects.bulk_create([prototype])
    table = model._meta.db_table
    changed = ", ".join(f"'{column}', {value}" for column, value in values.items())
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} SELECT made.* FROM {table} AS prototype, ({rows}) AS row, "
            f"LATERAL jsonb_populate_record(prototype, jsonb_build_object({changed})) AS made WHERE prototype.id = %s",
            [prototype.pk],
        )
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", [prototype.pk])
