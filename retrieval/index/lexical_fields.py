"""The fields of a passage in keyword search, and what a word in each is worth.

A search vector labels each position with the field it came from. A term's frequency is the sum of its positions'
boosts, the simple form of BM25F (Zaragoza, Craswell, Taylor, Saria, Robertson, "Microsoft Cambridge at TREC 13",
2004). The SQL functions `retrieval_bm25_weights` and `retrieval_bm25_length`, made by a migration, turn a search
vector into BM25's term weights and length.
"""

from __future__ import annotations

# In the order of the labels A to D: title, headings, canonical questions, body.
FIELD_BOOSTS = [1.0, 1.0, 0.5, 1.0]


def weighting(k1: float, b: float) -> str:
    """All that shapes a stored term weight, as one string: what was stored with another is out of date."""
    return f"k1={k1:g} b={b:g} boosts={FIELD_BOOSTS}"


def stored_k1(weighting: str) -> float:
    """The k1 that weights were stored with, from what :func:`weighting` said then; 0 where nothing is stored."""
    return float(weighting.split()[0].removeprefix("k1=")) if weighting else 0.0
