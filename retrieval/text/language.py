"""English or Dutch, told by the most common words. PURE."""

from __future__ import annotations

import functools
import re
from collections import Counter

# Words that the two languages share, or that French, German and Spanish use as often, would mislead.
_COMMON = {
    "en": frozenset(
        """
        the and of to that this with for are you your not from have has be by as it its can will would should which
        when how what does do did if but they there their been were or at these those than then who why many much his
        her she he more most some any about after into between during such only my our could while both other where
        whose must may before until
        """.split()  # noqa: SIM905
    ),
    "nl": frozenset(
        """
        het een van niet zijn voor met ook aan wordt worden deze dit maar naar bij kan kunnen heeft hebben je jij u
        uw ik wij jullie dan dat deze door om te wat welke waar wanneer hoe geen uit moet mag zich onze ons de zo
        nog wel er wie waarom hoeveel waren werd werden toen haar hun hij zij ze bij tot tussen tegen tijdens zonder
        volgens andere meer veel alle mijn op daar hier zou zouden iemand iets wil moeten mogen waarvan waarin
        """.split()  # noqa: SIM905
    ),
}
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE_CHARS = 20_000
_MIN_SHARE = 0.08


def detect_language(*texts: str) -> str:
    """``"en"`` or ``"nl"`` of the texts together; empty when the common words of neither, or those of both, stand out.

    At least two different common words, a twelfth of all words, and twice as many as of the other language are asked
    for.
    """
    counted = [_count(text) for text in texts]
    total = sum(words for words, _ in counted)
    hits = {language: sum(sum(common[language].values()) for _, common in counted) for language in _COMMON}
    best, other = sorted(hits, key=lambda language: (-hits[language], language))
    distinct = len(set().union(*(common[best] for _, common in counted)))
    if distinct < 2 or hits[best] < _MIN_SHARE * total or hits[best] < 2 * hits[other]:
        return ""
    return best


@functools.lru_cache(maxsize=1024)
def _count(text: str) -> tuple[int, dict[str, dict[str, int]]]:
    """How many words a text has, and how often the common words of each language that occur; an answer asks for those
    of its sources several times."""
    words = Counter(_WORD.findall(text[:_SAMPLE_CHARS].lower()))
    common = {language: {word: words[word] for word in words.keys() & known} for language, known in _COMMON.items()}
    return sum(words.values()), common
