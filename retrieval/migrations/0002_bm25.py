"""BM25's SQL functions, and a chunk table laid out for reading term weights.

The weights of a few thousand matching chunks are read for one question. They stay in the row, and the two large columns
beside them are moved out of it, so that a page of the table holds the weights of as many chunks as fit.
"""

from django.db import migrations

from retrieval.lexical.sql import CREATE_FUNCTIONS, DROP_FUNCTIONS


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_initial")]

    operations = [
        migrations.RunSQL(CREATE_FUNCTIONS, DROP_FUNCTIONS),
        migrations.RunSQL(
            """
            ALTER TABLE retrieval_chunk ALTER COLUMN bm25 SET STORAGE MAIN;
            ALTER TABLE retrieval_chunk SET (toast_tuple_target = 256, fillfactor = 90);
            ALTER TABLE retrieval_lexeme SET (fillfactor = 70);
            """,
            migrations.RunSQL.noop,
        ),
    ]
