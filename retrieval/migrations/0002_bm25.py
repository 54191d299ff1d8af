"""BM25's SQL functions, and tables whose statistics follow what is written to them.

A question reads the term weights of every passage that matches: they stay in the row, where the large columns beside them
may be moved out of it. The planner chooses the GIN index only while it knows the lexemes, so tables are analysed early.
"""

from django.db import migrations

# A search vector labels each position with the field it came from, A to D; a term's frequency is the sum of the boosts
# of its positions. The dimension is the one of retrieval.text.terms.lexeme_dimension.
CREATE_FUNCTIONS = """
CREATE FUNCTION retrieval_bm25_length(vector tsvector, boosts float8[]) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(sum(boosts[ascii(label) - 64]), 0)
    FROM unnest(vector) AS term(lexeme, positions, labels), unnest(labels) AS label
$$;

CREATE FUNCTION retrieval_bm25_weights(
    vector tsvector, boosts float8[], k1 float8, b float8, reference_length float8
) RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH frequency AS (
        SELECT lexeme, sum(boosts[ascii(label) - 64]) AS tf
        FROM unnest(vector) AS term(lexeme, positions, labels), unnest(labels) AS label
        GROUP BY lexeme
    ), dimension AS (
        SELECT ('x' || left(md5(lexeme), 7))::bit(28)::int + 1 AS number,
               sum(tf * (k1 + 1) / (tf + k1 * (1 - b + b * (SELECT sum(tf) FROM frequency) / reference_length)))
                   AS weight
        FROM frequency
        WHERE tf > 0
        GROUP BY number
    )
    SELECT ('{' || coalesce(string_agg(number || ':' || weight::float4, ','), '') || '}/268435456')::sparsevec
    FROM dimension
$$;
"""

DROP_FUNCTIONS = """
DROP FUNCTION retrieval_bm25_weights(tsvector, float8[], float8, float8, float8);
DROP FUNCTION retrieval_bm25_length(tsvector, float8[]);
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_initial")]

    operations = [
        migrations.RunSQL(CREATE_FUNCTIONS, DROP_FUNCTIONS),
        migrations.RunSQL(
            """
            ALTER TABLE retrieval_chunk ALTER COLUMN bm25 SET STORAGE MAIN;
            ALTER TABLE retrieval_chunk ALTER COLUMN search_vector SET STATISTICS 1000;
            ALTER TABLE retrieval_chunk
                SET (autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
            ALTER TABLE retrieval_lexeme SET (fillfactor = 70);
            """,
            migrations.RunSQL.noop,
        ),
    ]
