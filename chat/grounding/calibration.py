"""Which embedders the weights and thresholds of similarity were fitted with. PURE.

Each embedder's cosines lie on a scale of their own. With another one, answerability and support are judged by words
alone, by weights that were fitted for that.
"""

from __future__ import annotations

CALIBRATED_FOR = frozenset({"all-MiniLM-L6-v2/int8", "all-MiniLM-L6-v2/fp32"})
"""Names of vector spaces."""


def is_calibrated(embedder: str) -> bool:
    return embedder in CALIBRATED_FOR
