from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q

BATCH = 1000
# Answers of copies took their trace from the first answer.
FILL = """
WITH batch AS (SELECT id FROM chat_answer WHERE id > %s ORDER BY id LIMIT %s),
filled AS (
    UPDATE chat_answer
       SET total_ms = (timings_ms ->> 'total')::float,
           search_ms = CASE WHEN repeats_id IS NULL AND NOT timings_ms ? 'repeated'
                            THEN (trace -> 'timings_ms' ->> 'total')::float END
     WHERE id IN (SELECT id FROM batch) AND total_ms IS NULL AND timings_ms ? 'total'
)
SELECT max(id::text) FROM batch
"""


def fill(apps, schema_editor):
    """Copy the durations in batches, each of which is a transaction."""
    last = "00000000-0000-0000-0000-000000000000"
    with schema_editor.connection.cursor() as cursor:
        while last:
            cursor.execute(FILL, [last, BATCH])
            [last] = cursor.fetchone()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('chat', '0010_durations_of_answers'),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        AddIndexConcurrently(
            'answer',
            models.Index(F('total_ms').asc(nulls_first=True), F('id').asc(), name='answer_by_total_ms'),
        ),
        AddIndexConcurrently(
            'answer',
            models.Index(F('search_ms').asc(nulls_first=True), F('id').asc(), name='answer_by_search_ms'),
        ),
        AddIndexConcurrently(
            'answer',
            models.Index(F('confidence').asc(nulls_first=True), F('id').asc(), name='answer_by_confidence'),
        ),
        AddIndexConcurrently(
            'answer',
            models.Index(fields=['-created_at', '-id'], condition=Q(refused=True), name='answer_refused_by_time'),
        ),
    ]
