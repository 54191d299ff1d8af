"""Which passages can still be among the best: BM25's upper bound as a matching condition. PURE.

A term's weight in a passage is below k1 + 1, so that a passage scores less than k1 + 1 times what the terms it holds
are worth together. Once ``depth`` passages are known, one whose bound is below the worst of their scores need not be
looked at, and whether its bound is depends only on which terms it holds: a formula of terms, which the index answers
without reading a passage. The passages left out are exactly those that cannot enter the list; nothing is approximated,
but for lexemes whose hashes collide (see :mod:`retrieval.text.terms`).

Sources: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", Information Processing & Management 1995
(MaxScore); Broder, Carmel, Herscovici, Soffer, Zien, "Efficient Query Evaluation using a Two-Level Retrieval Process",
CIKM 2003 (the formula: "weak AND").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Beyond so many terms in the formula, the index spends longer on it than it saves.
LARGEST_FORMULA = 100
# Scores are sums of single-precision numbers: what a bound may miss by rounding.
ROUNDING = 1e-4
# The terms considered for it; a question has about six, a pasted log has hundreds.
MOST_TERMS = 20


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a question, or several that stand for one and count once.

    ``notation`` matches a passage that holds it, in tsquery's notation; it adds less than ``bound`` to a score.
    ``document_frequency`` is of how many passages that is true, at most. A ``common`` one does not make a passage a
    candidate by itself.
    """

    notation: str
    bound: float
    document_frequency: int
    common: bool = False


def rarest(terms: Sequence[Term], passages: int) -> list[Term]:
    """The rarest of the terms that are not common, as many as match about ``passages`` together; at least one.

    Empty only when all are common.
    """
    chosen: list[Term] = []
    total = 0
    for term in sorted((term for term in terms if not term.common), key=lambda term: term.document_frequency):
        total += term.document_frequency
        if chosen and total > passages:
            break
        chosen.append(term)
    return chosen


def candidates(terms: Sequence[Term], threshold: float) -> str:
    """A tsquery that every passage matches that can score ``threshold`` or more and holds a term that is not common.

    Of the others it matches as few as a formula of at most LARGEST_FORMULA terms can. Empty when no passage can.
    """
    # Falling bounds keep the formula small. Common terms last, so that what stands before decides on candidacy.
    ordered = sorted(terms, key=lambda term: (term.common, -term.bound, term.notation))
    needed = threshold - ROUNDING * max(1.0, abs(threshold))
    # The least telling terms are taken to be in every passage, as many as it takes for the formula to be small: it lets
    # more passages through then, and none that must not be missed as long as those terms alone are not enough.
    granted = sum(term.bound for term in ordered[MOST_TERMS:])
    del ordered[MOST_TERMS:]
    while granted < needed and ordered:
        try:
            return _Formula(ordered).needing(needed - granted) or ""
        except _TooLarge:
            granted += ordered.pop().bound
    return " | ".join(term.notation for term in terms if not term.common)


class _TooLarge(Exception):
    pass


class _Formula:
    """Formulas over one list of terms."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._left = LARGEST_FORMULA
        # What all terms from a place on can add together.
        self._rest = [0.0] * (len(terms) + 1)
        for place in reversed(range(len(terms))):
            self._rest[place] = self._rest[place + 1] + terms[place].bound

    def needing(self, needed: float) -> str | None:
        """For passages whose terms' bounds sum to ``needed`` or more; None when there can be none."""
        return self._from(0, needed, False)

    def _from(self, place: int, needed: float, is_candidate: bool) -> str | None:
        """What the terms from ``place`` on must fulfil; "" when nothing, None when they cannot."""
        if is_candidate and needed <= 0:
            return ""
        if self._rest[place] < needed or place == len(self._terms):
            return None
        term = self._terms[place]
        if term.common and not is_candidate:
            return None
        held = self._from(place + 1, needed - term.bound, True)
        lacking = self._from(place + 1, needed, is_candidate)
        if held is None or lacking == "":
            return lacking
        self._left -= 1
        if self._left < 0:
            raise _TooLarge
        with_term = f"{term.notation} & ( {held} )" if held else term.notation
        return with_term if lacking is None else f"{with_term} | {lacking}"
