"""Words that are written as one: which parts a compound has, told without a dictionary. PURE.

Dutch and German write *visiting hours* as one word, *bezoekuren*, which a question about a *bezoek* does not match. A
collection's own words are all the dictionary there is: the parts of a compound mostly stand alone elsewhere, and where
they do not, a word that another one begins or ends with is most often a part of it, unless what is left over is known
to make words that are no compounds (*over-*, *ver-*, *-lijk*).

Sources: Koehn and Knight, "Empirical Methods for Compound Splitting", EACL 2003 (the split whose parts have the highest
geometric mean of frequencies, linking letters); Monz and de Rijke, "Shallow Morphological Analysis in Monolingual
Information Retrieval for Dutch, German, and Italian", CLEF 2001 (parts join the compound, they do not replace it).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

# In letters. Shorter words begin and end too many others by accident.
SHORTEST_PART = 4
# From here on a part is told by itself, whatever the rest of the compound is.
TELLING_PART = 5
# What is left of a compound beside a part: less is a plural or a verb's ending.
SHORTEST_REST = 3
LONGEST_COMPOUND = 40


@dataclass(frozen=True, slots=True)
class Compounding:
    """How a language makes compounds: the letters that may link two parts, the empty link aside, and what stands before
    or behind a word without making a compound of it. ``short_words`` are lexemes below SHORTEST_REST that do."""

    links: tuple[str, ...]
    prefixes: frozenset[str]
    suffixes: frozenset[str]
    short_words: frozenset[str] = frozenset()


DUTCH = Compounding(
    links=("s", "e", "en", "er", "n"),
    prefixes=frozenset(
        """
        aan achter aller door her mee ont onder over tegen terug toe uit veel ver vol voor weg
        aange afge bijge doorge inge opge overge terugge toege uitge
        """.split()  # noqa: SIM905
    ),
    suffixes=frozenset(
        """
        aar ator atie baar dom eerd eert elijk enaar end heid ief iek iel ier ing isch ist istisch iteit lijk loos schap
        ster
        """.split()  # noqa: SIM905
    ),
    short_words=frozenset({"ur"}),  # *uur*, hour, as the end of a word is reduced
)
GERMAN = Compounding(
    links=("s", "es", "e", "en", "er", "n"),
    prefixes=frozenset(
        """
        auf aus aufge ausge bei durch ent ein einge her hin mit miss nach nachge über unter ver vor vorge wider zer
        zurück zuge
        """.split()  # noqa: SIM905
    ),
    suffixes=frozenset(
        """
        bar end haft heit ieren ig isch ist ität keit lich los sam schaft tum ung
        """.split()  # noqa: SIM905
    ),
)
BY_CONFIGURATION: Mapping[str, Compounding] = {"dutch": DUTCH, "german": GERMAN}
"""The languages whose compounds are taken apart, by PostgreSQL's text-search configuration."""


def has_part(compound: str, part: str, language: Compounding, known: Container[str] | None = None) -> bool:
    """Whether ``compound`` begins or ends with the word ``part`` and is, most likely, made of it and another.

    Both are words or lexemes of letters, in lower case. Among many words a part below TELLING_PART letters counts only
    where the rest, linking letters off, is one of those ``known``; None asks nothing of the rest, which serves where
    few words are compared.
    """
    if len(part) < SHORTEST_PART or not (compound.isalpha() and part.isalpha()):
        return False
    if compound.startswith(part):
        rest, affixes = compound[len(part) :], language.suffixes
    elif compound.endswith(part):
        rest, affixes = compound[: -len(part)], language.prefixes
    else:
        return False
    if rest in affixes or len(rest) < SHORTEST_REST:
        return rest in language.short_words
    if known is None or len(part) >= TELLING_PART:
        return True
    return any(each in known for each in rests_of(compound, part, language))


def rests_of(compound: str, part: str, language: Compounding) -> set[str]:
    """What ``compound`` is beside ``part`` that it begins or ends with, with and without linking letters; of
    SHORTEST_REST letters or more."""
    if compound.startswith(part):
        rest = compound[len(part) :]
        rests = {rest, *(rest.removeprefix(link) for link in language.links)}
    else:
        rest = compound[: -len(part)]
        rests = {rest, *(rest.removesuffix(link) for link in language.links)}
    return {rest for rest in rests if len(rest) >= SHORTEST_REST}


def pieces_of(word: str, language: Compounding) -> Iterator[str]:
    """Every string that may be a part of ``word``, linking letters off; of SHORTEST_PART letters or more, repeats too.

    None of a word that is too short to have two parts, longer than LONGEST_COMPOUND, or not of letters alone.
    """
    if not word.isalpha() or not 2 * SHORTEST_PART <= len(word) <= LONGEST_COMPOUND:
        return
    for start, end in _places(word):
        yield from _unlinked(word, start, end, language)


def split(
    word: str, lexemes: Mapping[str, str], frequencies: Mapping[str, int], language: Compounding
) -> tuple[str, ...]:
    """The parts of ``word``, in order, as they stand in it; empty when it is not made of two or more known words.

    ``lexemes`` has what each of its :func:`pieces_of` comes down to, ``frequencies`` those of the lexemes that are
    known, all positive. Of several splits the one whose parts have the highest geometric mean of frequencies; of equals
    the one of fewer parts, then the one whose first part is longer.
    """
    found: dict[tuple[int, int], str] = {}
    if word.isalpha() and 2 * SHORTEST_PART <= len(word) <= LONGEST_COMPOUND:
        for start, end in _places(word):
            known = [
                piece for piece in _unlinked(word, start, end, language) if frequencies.get(lexemes.get(piece, ""), 0)
            ]
            if known:
                found[start, end] = known[0]
    # The best way to lay known pieces end to end from each place, by their number: from the end of the word backwards.
    best: dict[int, dict[int, tuple[str, ...]]] = {len(word): {0: ()}}

    def merit(way: tuple[str, ...]) -> tuple[float, int, int]:
        mean = math.fsum(math.log(frequencies[lexemes[piece]]) for piece in way) / len(way)
        return round(mean, 9), -len(way), len(way[0])

    for (start, end), piece in sorted(found.items(), key=lambda item: (-item[0][0], item[0][1])):
        ways = best.setdefault(start, {})
        for count, rest in best.get(end, {}).items():
            ways[count + 1] = max(ways.get(count + 1, (piece, *rest)), (piece, *rest), key=merit)
    return max((way for way in best.get(0, {}).values() if len(way) > 1), key=merit, default=())


def _places(word: str) -> Iterator[tuple[int, int]]:
    """Where a part of ``word`` may stand: what is left before and behind it is nothing, or long enough for another."""
    cuts = [0, *range(SHORTEST_PART, len(word) - SHORTEST_PART + 1), len(word)]
    for start in cuts:
        for end in cuts:
            if end - start >= SHORTEST_PART and end - start < len(word):
                yield start, end


def _unlinked(word: str, start: int, end: int, language: Compounding) -> Iterator[str]:
    """The piece between two places, and without the letters that link it to what follows."""
    piece = word[start:end]
    yield piece
    if end < len(word):
        for link in language.links:
            bare = piece.removesuffix(link)
            if bare != piece and len(bare) >= SHORTEST_PART:
                yield bare
