"""How near the units of the context come to a question in meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chat.grounding.evidence.units import QuotableUnit
    from retrieval.types import Vectors


@dataclass(frozen=True, slots=True, eq=False)
class Closeness:
    """Of each unit its unit vector, shape (units, dimension), and the cosine with the question's on the scale that
    thresholds are on, shape (units,)."""

    vectors: Vectors
    similarities: Vectors


Compare = Callable[[str, Sequence["QuotableUnit"]], Closeness | None]
"""The closeness of units to a question; None when no vectors can be had."""
