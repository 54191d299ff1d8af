from collections import defaultdict, deque

import django.contrib.postgres.fields
from django.db import migrations, models

OWN = """
UPDATE chat_answer SET source_collections = ARRAY(
    SELECT DISTINCT COALESCE(document.collection_id, conversation.collection_id, 0)
    FROM jsonb_array_elements(chat_answer.sources) AS listed(entry)
    LEFT JOIN retrieval_document AS document ON document.id = (listed.entry -> 'document' ->> 'id')::bigint
    ORDER BY 1
)
FROM chat_conversation AS conversation
WHERE conversation.id = chat_answer.conversation_id AND chat_answer.sources <> '[]'::jsonb
"""


def fill(apps, schema_editor):
    """Of a document that is gone, the conversation's collection counts, and without one a collection that nobody reads."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(OWN)
    _add_what_is_retold(apps.get_model("chat", "Answer"))


def _add_what_is_retold(Answer):
    """A follow-up may say again what up to three answers before it said."""
    before = defaultdict(lambda: deque(maxlen=3))
    changed = []
    conversation = None
    rows = Answer.objects.order_by("conversation_id", "created_at").only(
        "conversation_id", "source_collections", "completed_question", "prompt_version", "history", "refused", "status"
    )
    for answer in rows.iterator():
        if answer.conversation_id != conversation:
            before.clear()
            conversation = answer.conversation_id
        told = before[conversation]
        if answer.history is None and (answer.completed_question or answer.prompt_version is not None):
            behind = sorted(set(answer.source_collections).union(*told))
            if behind != sorted(answer.source_collections):
                answer.source_collections = behind
                changed.append(answer)
        if answer.status in ("completed", "stopped"):
            told.append(() if answer.refused else answer.source_collections)
        if len(changed) >= 500:
            Answer.objects.bulk_update(changed, ["source_collections"])
            changed = []
    Answer.objects.bulk_update(changed, ["source_collections"])


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0008_copies_serve_nobody"),
        ("retrieval", "0002_bm25"),
    ]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="source_collections",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), blank=True, default=list, editable=False, size=None
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
