"""The two SQL functions that turn a search vector into BM25's numbers.

A search vector labels each position with the field it came from: A title, B headings, C canonical questions, D body. A
term's frequency is the sum of its positions' boosts, the simple form of BM25F (Zaragoza, Craswell, Taylor, Saria,
Robertson, "Microsoft Cambridge at TREC 13", 2004).
"""

from __future__ import annotations

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
               sum(tf * (k1 + 1) / (tf + k1 * (1 - b + b * (SELECT sum(tf) FROM frequency) / reference_length))) AS weight
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

# Boost of each field, in the order of the labels A to D: title, headings, canonical questions, body.
FIELD_BOOSTS = [1.0, 1.0, 0.5, 1.0]
