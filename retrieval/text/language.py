"""Identify a text's language by its most common words. PURE."""

from __future__ import annotations

import functools
import re
from collections import Counter

# Words common to both languages, or frequent in French, German or Spanish, would mislead.
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
_OTHERS = {
    "de": """
        der die das und nicht ist ein eine einen einem einer mit für auf den dem des sich auch wird werden
        sind von zu zum zur bei wie wann was wo wer ich sie wir oder nach im
        """,
    "fr": """
        le les des du et est une pour dans que qui sur pas avec au aux ce cette sont vous nous il elle ne ou
        leur quel quelle comment quand où combien être
        """,
    "es": """
        el los las del es una para con que por no se lo como más al su sus son está hay cómo cuándo dónde qué
        cuál cuánto pero este esta puede
        """,
    "it": """
        il lo gli della delle dei del di che una per con non si sono nel nella come più al alla anche quando
        dove quale quanto cosa questo questa ogni
        """,
    "pt": """
        os as do da dos das uma para com que não se em no na nos nas por mais como ao são está quando onde
        qual quanto pode você seu sua
        """,
    "da": """
        og det er ikke af til på med den som har jeg vi han skal kan hvad hvor hvornår hvordan også efter ved
        eller blive bliver være nogle mange
        """,
    "sv": """
        och det är inte av till på med den som har jag vi ska kan vad var när hur också efter vid eller blir
        att ett från för om många
        """,
    "no": """
        og det er ikke av til på med den som har jeg vi skal kan hva hvor når hvordan også etter ved eller
        blir være noen mange fra
        """,
    "fi": """
        ja on ei se että oli hän mutta ovat kun niin tai joka myös voi kuin mitä missä milloin miten sekä ole
        jos sen ovat tämä kanssa
        """,
}
# These words of English and Dutch also occur in other languages.
_MORE = {"en": "is in on or an no me was so we", "nl": "de en is in dat die met als of wie was na u den ik"}
_SCRIPT_SPANS = {
    "ja": "\u3041-\u30ff",
    "ko": "\uac00-\ud7af",
    "zh": "\u4e00-\u9fff",
    "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
}
_SCRIPTS = {code: re.compile(f"[{span}]") for code, span in _SCRIPT_SPANS.items()}
# This share of letters decides. It is low because Japanese mixes kana with Chinese characters.
_SCRIPT_SHARE = 0.2
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE_CHARS = 20_000
_MIN_SHARE = 0.08


def detect_language(*texts: str) -> str:
    """Return ``"en"`` or ``"nl"`` for the texts together; empty if unclear.

    A language needs two different common words, 8 % of all words, and twice the other language's.
    """
    counted = [_count_words(text) for text in texts]
    total = sum(words for words, _ in counted)
    hits = {language: sum(sum(common[language].values()) for _, common in counted) for language in _COMMON}
    best, other = sorted(hits, key=lambda language: (-hits[language], language))
    distinct = len(set().union(*(common[best] for _, common in counted)))
    if distinct < 2 or hits[best] < _MIN_SHARE * total or hits[best] < 2 * hits[other]:
        return ""
    return best


@functools.lru_cache(maxsize=1024)
def _count_words(text: str) -> tuple[int, dict[str, dict[str, int]]]:
    """Count all words, and common words by language. Cached: an answer needs its sources several times."""
    words = Counter(_WORD.findall(text[:_SAMPLE_CHARS].lower()))
    common = {language: {word: words[word] for word in words.keys() & known} for language, known in _COMMON.items()}
    return sum(words.values()), common


def identify_language(text: str) -> str:
    """Return the two-letter code of the text's language; empty if unclear. One common word can decide."""
    sample = text[:_SAMPLE_CHARS]
    letters = sum(map(str.isalpha, sample))
    for code, script in _SCRIPTS.items():
        if letters and len(script.findall(sample)) > _SCRIPT_SHARE * letters:
            return code
    words = Counter(_WORD.findall(sample.lower()))
    hits = {code: sum(words[word] for word in words.keys() & common) for code, common in _list_common_words().items()}
    (best, most), (_, second) = sorted(hits.items(), key=lambda item: -item[1])[:2]
    return best if most > max(second, _MIN_SHARE * words.total()) else ""


@functools.cache
def _list_common_words() -> dict[str, frozenset[str]]:
    english, dutch = (_COMMON[code] | frozenset(more.split()) for code, more in _MORE.items())
    return {"en": english, "nl": dutch} | {code: frozenset(listed.split()) for code, listed in _OTHERS.items()}
