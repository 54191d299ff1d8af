"""Which misspellings a hand makes: those that leave no doubt of the word that was meant. PURE.

Four of five misspellings are one letter too many, one too few, a wrong one, or two exchanged (Damerau, "A Technique for
Computer Detection and Correction of Spelling Errors", CACM 1964). But *contact* is one letter from *contract* too. What
certainly is a slip exchanges neighbours, doubles a letter, or hits the next key; in a long word a letter more or less.
Where nobody can tell whether what was typed is a word itself, more is asked for: Dutch has *richten* and *rechten*,
*spelen* and *spellen*.
"""

from __future__ import annotations

from retrieval.search.question_words import words

_SHORTEST_EXCHANGED = 4
_SHORTEST_SUBSTITUTED = 6
# Where what was typed is known to be no word, and where it may be one.
_SHORTEST_DOUBLED = {True: 5, False: 8}
_SHORTEST_LEFT_OUT = {True: 7, False: 10}
# A letter more or less at the end may make another form of the word.
_ENDING = 2
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE = {
    frozenset(pair)
    for row, below in zip(_KEYS, (*_KEYS[1:], ""), strict=True)
    for place, key in enumerate(row)
    for pair in (
        (key, other) for other in row[place + 1 : place + 2] + below[max(0, place - 1) : place + 1] if other != key
    )
}
_SOUND_ALIKE = {frozenset(pair) for pair in ("ck", "cs", "sz", "iy", "dt", "fv", "ae", "ei", "gh", "ou")}


def is_certain_slip(typed: str, meant: str, *, is_no_word: bool) -> bool:
    """Whether ``typed`` is ``meant`` with one slip in it that leaves no doubt. Both in lower case.

    ``is_no_word`` says that ``typed`` is known not to be a word of the language.
    """
    if typed == meant or abs(len(typed) - len(meant)) > 1:
        return False
    start = _common_prefix(typed, meant)
    if len(typed) == len(meant):
        rest, expected = typed[start:], meant[start:]
        if len(rest) > 1 and rest[0] == expected[1] and rest[1] == expected[0] and rest[2:] == expected[2:]:
            return len(typed) >= _SHORTEST_EXCHANGED
        alike = frozenset((rest[0], expected[0])) in _BESIDE | _SOUND_ALIKE
        inside = 0 < start < len(typed) - 1
        return is_no_word and rest[1:] == expected[1:] and alike and inside and len(typed) >= _SHORTEST_SUBSTITUTED
    longer, shorter = (typed, meant) if len(typed) > len(meant) else (meant, typed)
    if longer[start + 1 :] != shorter[start:]:
        return False
    if start > 1 and longer[start] == longer[start - 1]:
        return len(longer) > _SHORTEST_DOUBLED[is_no_word]
    return 0 < start < len(longer) - _ENDING - 1 and len(longer) > _SHORTEST_LEFT_OUT[is_no_word]


def _common_prefix(first: str, second: str) -> int:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return length


# The words that questions are made of; of three letters or more, in English and Dutch.
_FREQUENT = words(
    """the and are was what when where which who why how much many does did can could should would will have has from
    with for about this that there they their your you not our
    het een van wat wanneer waar waarom welke wie hoe hoeveel veel zijn kan kunnen mag moet heeft hebben voor met naar
    deze dit dat mijn niet ook onze"""
)


def small_word_meant(typed: str) -> str:
    """The frequent word that ``typed`` is with two neighbours exchanged ("teh"); empty when it is none, or several.

    The first letter is mostly right: "hwo" is "how" rather than "who".
    """
    if not 3 <= len(typed) <= 7 or typed in _FREQUENT:
        return ""
    exchanged = {
        typed[:place] + typed[place + 1] + typed[place] + typed[place + 2 :] for place in range(len(typed) - 1)
    }
    meant = exchanged & _FREQUENT
    meant = {word for word in meant if word[0] == typed[0]} or meant
    return meant.pop() if len(meant) == 1 else ""
