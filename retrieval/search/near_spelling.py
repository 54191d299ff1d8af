"""How far apart two words are, and how far a misspelt one may be from what was meant.

Sources: Damerau, "A Technique for Computer Detection and Correction of Spelling Errors", CACM 1964; the dynamic
programme is Wagner and Fischer's, JACM 1974, with Damerau's transposition, run over all candidates at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Longer words are hardly ever typed, and distances are counted in eight bits.
LONGEST_TERM = 64


def allowed_edits(length: int) -> int:
    """Edits that a term of ``length`` characters may have: Elasticsearch's AUTO, 0 up to 2, 1 up to 5, else 2."""
    if length <= 2:
        return 0
    return 1 if length <= 5 else 2


def similarity(term: str, other: str, edits: int) -> float:
    """1 for the same word, less with each edit, by the shorter of the two words, as Lucene's fuzzy query has it.

    Between 0.5 and 1 for the edits that :func:`allowed_edits` allows.
    """
    return 1.0 - edits / min(len(term), len(other))


def edit_distances(term: str, others: Sequence[str], *, endings: int = 0) -> npt.NDArray[np.int8]:
    """Edits between ``term`` without its last 0, 1, ... ``endings`` letters and each of ``others``.

    Shape (endings + 1, len(others)). Row j is as well the number of edits between ``term`` and the others with its last
    j letters appended, since an ending that two words share adds nothing to their distance.

    An insertion, a deletion, a substitution and the transposition of two neighbours count one each; no part of a word
    is edited twice (optimal string alignment). Domain: ``term`` and ``others`` of at most LONGEST_TERM characters,
    0 <= ``endings`` < len(term).
    """
    longest = max(map(len, others), default=0)
    if not others or not longest:
        return np.full((endings + 1, len(others)), np.arange(len(term), len(term) - endings - 1, -1)[:, None], np.int8)
    # One row for each place in a word, one column for each word: a step of the programme is one operation on a row.
    letters = np.array(others, dtype=f"U{longest}").view(np.uint32).reshape(len(others), longest).T.copy()
    lengths = np.fromiter(map(len, others), np.intp, len(others))
    codes = [ord(letter) for letter in term]
    columns = np.arange(len(others))
    distances = np.empty((endings + 1, len(others)), np.int8)
    before = previous = np.repeat(np.arange(longest + 1, dtype=np.int8)[:, None], len(others), axis=1)
    for i, code in enumerate(codes, start=1):
        current = np.empty_like(previous)
        current[0] = i
        np.minimum(previous[1:] + np.int8(1), previous[:-1] + (letters != code), out=current[1:])
        if i > 1:
            swapped = (letters[:-1] == code) & (letters[1:] == codes[i - 2])
            np.minimum(current[2:], before[:-2] + np.int8(1), out=current[2:], where=swapped)
        for j in range(1, longest + 1):
            np.minimum(current[j], current[j - 1] + np.int8(1), out=current[j])
        before, previous = previous, current
        if len(term) - i <= endings:
            distances[len(term) - i] = current[lengths, columns]
    return distances
