"""The fields of a passage in keyword search, and what a word in each is worth.

A search vector labels each position with the field it came from. A term's frequency is the sum of its positions'
boosts, the simple form of BM25F (Zaragoza, Craswell, Taylor, Saria, Robertson, "Microsoft Cambridge at TREC 13",
2004). The SQL functions `retrieval_bm25_weights` and `retrieval_bm25_length`, made by a migration, turn a search
vector into BM25's term weights and length.
"""

from __future__ import annotations

# In the order of the labels A to D: title, headings, canonical questions, body.
FIELD_BOOSTS = [1.0, 1.0, 0.5, 1.0]
