"""What a question's words are worth in compounds, told by the words of the collections searched.

A word of the question stands as well for the compounds that begin or end with it, and a compound in the question for
its parts. What is indexed stays as it is. It costs a look at the collections' lexemes, in languages that make
compounds; in others it is not even asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Mapping, Sequence

from retrieval.database.servers import connection
from retrieval.lexical.statistics import tokens_of
from retrieval.lexical.words.fuzzy import Expansion, document_frequencies
from retrieval.lexical.words.spelling import LONGEST_TERM
from retrieval.text.compounds import BY_CONFIGURATION, SHORTEST_PART, Compounding, has_part, pieces_of, rests_of, split
from retrieval.text.terms import inverse_document_frequency
from retrieval.types import ANYBODY, Reader

# What a compound is worth beside the word itself, and what a part is beside the compound.
WORTH = 0.6
# Each costs an inner product a passage; the most frequent of them find most.
MOST_COMPOUNDS = 16
# A question has about six words that carry meaning, a pasted log has hundreds.
MOST_WORDS = 16


def compound_expansions(
    text: str,
    configuration: str,
    said: Container[str],
    collections: Sequence[int],
    searched: Sequence[int],
    passages: int,
    readers: Sequence[Reader] = (ANYBODY,),
) -> dict[str, tuple[Expansion, ...]]:
    """For each word of ``text``, as it was typed, its lexeme and the compounds of ``collections`` that it is part of,
    and for each part of a compound in ``text`` its lexeme: what is worth most first.

    A word that is part of none is left out, and all are in a language without compounds; so are compounds and parts
    that are ``said``, the lexemes of the whole question. A known word keeps its worth; a compound has WORTH times the
    inverse document frequency of the most frequent of the group, as misspelt words have (see
    :func:`retrieval.lexical.words.fuzzy.expand`), and a part WORTH times its own. Of compounds the more frequent come
    first, then the alphabet decides; at most MOST_COMPOUNDS. Frequencies are those of all collections ``searched``,
    which hold ``passages``.
    """
    language = BY_CONFIGURATION.get(configuration)
    words = _words(text, configuration) if language is not None else {}
    if language is None or not words:
        return {}
    expansions = {}
    compounds = _compounds(words, language, collections, searched, readers)
    frequencies = document_frequencies({*words.values(), *itertools.chain(*compounds.values())}, searched, readers)
    for typed, lexeme in words.items():
        found = [each for each in compounds[typed] if each in frequencies and each not in said]
        if not found:
            continue
        found.sort(key=lambda each: (-frequencies[each], each))
        own = frequencies.get(lexeme, 0)
        worth = WORTH * inverse_document_frequency(max(own, frequencies[found[0]]), passages)
        itself = (Expansion(lexeme, 0, own, inverse_document_frequency(own, passages)),) if own else ()
        others = (Expansion(each, 0, frequencies[each], worth) for each in found[:MOST_COMPOUNDS])
        expansions[typed] = (*itself, *others)
    for piece, lexeme, frequency in _parts(words, said, language, configuration, searched, readers):
        worth = WORTH * inverse_document_frequency(frequency, passages)
        expansions[piece] = (Expansion(lexeme, 0, frequency, worth),)
    return expansions


def _words(text: str, configuration: str) -> dict[str, str]:
    """The words of letters that carry meaning, as they were typed, and their lexemes, each of which occurs once."""
    typed: dict[str, str] = {}
    for _, token, lexemes in tokens_of(text, (configuration,)):
        if lexemes and len(token) <= LONGEST_TERM and len(lexemes[0]) >= SHORTEST_PART and lexemes[0].isalpha():
            typed.setdefault(lexemes[0], token)
    return {token: lexeme for lexeme, token in list(typed.items())[:MOST_WORDS]}


def _compounds(
    words: Mapping[str, str],
    language: Compounding,
    collections: Sequence[int],
    searched: Sequence[int],
    readers: Sequence[Reader],
) -> dict[str, list[str]]:
    """For each of the words, as they were typed, the lexemes of the collections that are compounds of it.

    A word's lexeme is looked for and the word itself: *school* comes down to *schol*, but stays whole in *schoolbord*.
    """
    forms = {typed: {lexeme, typed.lower()} for typed, lexeme in words.items()}
    candidates = _sharing_an_end(set().union(*forms.values()), collections)
    sharing = {
        (typed, form): [each for each in candidates if each.startswith(form) or each.endswith(form)]
        for typed in words
        for form in forms[typed]
    }
    rests = {rest for (_, form), found in sharing.items() for each in found for rest in rests_of(each, form, language)}
    known = document_frequencies(rests, searched, readers)
    compounds: dict[str, list[str]] = {typed: [] for typed in words}
    for (typed, form), found in sharing.items():
        compounds[typed] += [each for each in found if has_part(each, form, language, known)]
    return {typed: list(dict.fromkeys(found)) for typed, found in compounds.items()}


def _sharing_an_end(parts: Collection[str], collections: Sequence[int]) -> list[str]:
    """The collections' lexemes that begin or end with one of the parts, long enough to be compounds.

    Written so that an index on the lexemes, and one on the lexemes reversed, can find them.
    """
    if not parts:
        return []
    ends = " OR ".join(["lexeme LIKE %s OR reverse(lexeme) LIKE %s"] * len(parts))
    patterns = [pattern for part in parts for pattern in (f"{part}%", f"{part[::-1]}%")]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT lexeme FROM retrieval_lexeme WHERE collection_id = ANY(%s) "
            f"AND document_frequency > 0 AND length(lexeme) > %s AND ({ends})",
            [list(collections), SHORTEST_PART, *patterns],
        )
        return [lexeme for (lexeme,) in cursor.fetchall()]


def known_parts(
    words: Collection[str],
    configuration: str,
    collections: Sequence[int],
    readers: Sequence[Reader] = (ANYBODY,),
) -> set[str]:
    """Those of the words, in lower case, that are made of two or more words of the collections."""
    language = BY_CONFIGURATION.get(configuration)
    if language is None:
        return set()
    lexemes, frequencies = _pieces(words, language, configuration, collections, readers)
    return {word for word in map(str.lower, words) if split(word, lexemes, frequencies, language)}


def _parts(
    words: Collection[str],
    said: Container[str],
    language: Compounding,
    configuration: str,
    searched: Sequence[int],
    readers: Sequence[Reader],
) -> list[tuple[str, str, int]]:
    """The parts of the compounds among ``words``, as they stand in them, with their lexemes and frequencies."""
    words = [word.lower() for word in words]
    lexemes, frequencies = _pieces(words, language, configuration, searched, readers)
    # Two compounds of the question may share a part.
    parts = {lexemes[piece]: piece for word in words for piece in split(word, lexemes, frequencies, language)}
    return [(piece, lexeme, frequencies[lexeme]) for lexeme, piece in parts.items() if lexeme not in said]


def _pieces(
    words: Collection[str],
    language: Compounding,
    configuration: str,
    searched: Sequence[int],
    readers: Sequence[Reader],
) -> tuple[dict[str, str], dict[str, int]]:
    """The lexemes of all that may be a part of the words, and the frequencies of those that are known."""
    pieces = sorted({piece for word in words for piece in pieces_of(word.lower(), language)})
    if not pieces:
        return {}, {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT piece, (tsvector_to_array(to_tsvector(%s::regconfig, piece)))[1] FROM unnest(%s::text[]) AS piece",
            [configuration, pieces],
        )
        lexemes = {piece: lexeme for piece, lexeme in cursor.fetchall() if lexeme is not None}
    return lexemes, document_frequencies(lexemes.values(), searched, readers)
