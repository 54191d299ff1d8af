"""What was probably meant by words that the documents do not know.

Fuzziness AUTO, as Elasticsearch defines it: the number of edits goes by the word's length, the first letter is taken to
be right (prefix_length 1), and at most 50 words stand in for one (max_expansions). The first letter makes it cheap: an
index finds the few thousand of 300,000 lexemes that begin alike and are about as long. Comparing all of them took many
times as long, and few misspellings begin with it.

Documents are known by lexemes, and a misspelt word is often reduced differently: *hospital* to *hospit*, *hosptial* not
at all. So two comparisons are made, of the word's lexeme with each candidate, and of the word as it was typed with each
candidate plus the word's own ending, *hospit* + *al*, where that is a form of the candidate's. A mistake within the
ending itself (*circulaton*) is found only where the first comparison finds it.

Only words of letters are expanded, and only into such: a wrong part number or year silently put right is a wrong
answer, so one that the documents lack stays unknown. Quoted words are meant as they are written.
"""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from retrieval.index.term_statistics import frequencies_in, tokens_of
from retrieval.infrastructure.servers import connection
from retrieval.models import Chunk, Document
from retrieval.models.narrowing import seen_by
from retrieval.search.near_spelling import LONGEST_TERM, allowed_edits, edit_distances, similarity
from retrieval.search.tsquery import quote
from retrieval.text.terms import inverse_document_frequency
from retrieval.types import ANYBODY, Reader

MAX_EXPANSIONS = 50
# The longest ending that a candidate may have lost to reduction and is tried with: "ness", "ment", "ings".
LONGEST_ENDING = 4
# A question has few misspelt words; a pasted log has hundreds of unknown ones.
MOST_TERMS = 8


def chunks_seen(collections: Sequence[int], readers: Sequence[Reader]) -> QuerySet[Chunk]:
    """The passages of the collections that all of the readers may see."""
    chunks = Chunk.objects.filter(collection__in=collections)
    return chunks.filter(document__in=Document.objects.filter(seen_by(readers)).order_by()) if readers else chunks


def keep_seen(lexemes: Iterable[str], collections: Sequence[int], readers: Sequence[Reader]) -> set[str]:
    """Those of the lexemes that stand in a passage which all of the readers may see. One look at the index for each."""
    named = sorted(lexemes)
    if not readers or not named:
        return set(named)
    try:
        seen, parameters = chunks_seen(collections, readers).order_by().values("search_vector").query.sql_with_params()
    except EmptyResultSet:  # no collection
        return set()
    with connection.cursor() as cursor:
        # One look for each, and no subquery that refers to the lexeme outside: a distributed database cannot run that.
        look = f"(SELECT %s::text FROM ({seen}) AS seen(search_vector) WHERE search_vector @@ %s::tsquery LIMIT 1)"
        cursor.execute(
            " UNION ALL ".join([look] * len(named)),
            [value for lexeme in named for value in (lexeme, *parameters, quote(lexeme))],
        )
        return {lexeme for (lexeme,) in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class Expansion:
    """A lexeme that stands in for a term. ``weight``, > 0, is what it is worth: see :func:`expand`."""

    lexeme: str
    edits: int
    document_frequency: int
    weight: float


def unknown_terms(
    text: str, configurations: Sequence[str], known: Container[str]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """For each word of ``text`` that the documents lack, as it was typed, its lexemes in each configuration.

    A word is known when its lexeme in one of the configurations is among ``known``, or when one leaves it out as a stop
    word: a Dutch word is not misspelt English. At most MOST_TERMS, in the order of the text.
    """
    lexemes: dict[str, dict[str, tuple[str, ...]]] = {}
    typed: dict[str, str] = {}
    stop_words = set()
    for configuration, token, found in tokens_of(text, configurations):
        word = token.lower()
        typed.setdefault(word, token)
        lexemes.setdefault(word, {})[configuration] = found
        if not found:
            stop_words.add(word)
    unknown = {
        typed[word]: of_word
        for word, of_word in lexemes.items()
        if word not in stop_words and not any(lexeme in known for found in of_word.values() for lexeme in found)
    }
    return dict(list(unknown.items())[:MOST_TERMS])


def expand(
    typed: str,
    lexeme: str,
    configuration: str,
    collections: Sequence[int],
    searched: Sequence[int],
    passages: int,
    readers: Sequence[Reader] = (ANYBODY,),
) -> tuple[Expansion, ...]:
    """The lexemes of ``collections`` that may have been meant by a word and its lexeme, nearest first.

    Of equally near ones the more frequent comes first, then the alphabet decides; at most MAX_EXPANSIONS, none for a
    term that is short, long or has other characters than letters. An expansion weighs its similarity times the inverse
    document frequency of the most frequent of them: with each one's own, the rarest, which often is a misspelling in a
    document, would win over what was meant (Lucene blends frequencies for this reason). Frequencies are those of all
    collections ``searched``, which hold ``passages``.
    """
    edits = allowed_edits(len(lexeme))
    if not edits or max(len(lexeme), len(typed)) > LONGEST_TERM or not (lexeme.isalpha() and typed.isalpha()):
        return ()
    near = _near(typed.lower(), lexeme, edits, configuration, collections)
    frequencies = document_frequencies(near, searched, readers)
    kept = sorted(frequencies, key=lambda found: (near[found][0], -near[found][1], -frequencies[found], found))
    kept = kept[:MAX_EXPANSIONS]
    if not kept:
        return ()
    idf = inverse_document_frequency(max(frequencies[found] for found in kept), passages)
    return tuple(Expansion(found, near[found][0], frequencies[found], idf * near[found][1]) for found in kept)


def _near(
    typed: str, lexeme: str, edits: int, configuration: str, collections: Sequence[int]
) -> dict[str, tuple[int, float]]:
    """Edits and similarity of each of the collections' lexemes that is near the typed word or its lexeme."""
    endings = min(LONGEST_ENDING, len(typed) - 1)
    shortest = max(1, min(len(lexeme), len(typed) - endings) - edits)
    longest = max(len(lexeme), len(typed)) + edits
    candidates = beginning_alike(lexeme, shortest, longest, collections)
    near = {}
    distances = edit_distances(lexeme, candidates)[0]
    for place in np.nonzero(distances <= edits)[0]:
        candidate, distance = candidates[place], int(distances[place])
        near[candidate] = distance, similarity(lexeme, candidate, distance)
    of_typed = edit_distances(typed, candidates, endings=endings)
    # A short lexeme within two edits of a part of the word has little to do with it.
    lengths = np.fromiter(map(len, candidates), np.intp, len(candidates))
    allowed = np.array([min(edits, allowed_edits(length)) for length in range(longest + 1)])[lengths]
    forms = [
        (candidates[place], typed[len(typed) - ending :] if ending else "", int(of_typed[ending, place]))
        for ending, place in np.argwhere((of_typed <= allowed) & (of_typed > 0))
    ]
    for candidate, ending, distance in _real_forms(forms, configuration):
        rated = distance, similarity(typed, candidate + ending, distance)
        near[candidate] = min(near.get(candidate, rated), rated, key=lambda rating: (rating[0], -rating[1]))
    return {found: rating for found, rating in near.items() if found.isalpha()}


def _real_forms(forms: Sequence[tuple[str, str, int]], configuration: str) -> list[tuple[str, str, int]]:
    """Those of the forms (lexeme, ending, edits) that the configuration reduces to their lexeme."""
    if not forms:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS form(lexeme, word, place) "
            "WHERE tsvector_to_array(to_tsvector(%s::regconfig, word)) = ARRAY[lexeme]",
            [[lexeme for lexeme, _, _ in forms], [lexeme + ending for lexeme, ending, _ in forms], configuration],
        )
        return [forms[place - 1] for (place,) in cursor.fetchall()]


def document_frequencies(
    lexemes: Iterable[str], collections: Sequence[int], readers: Sequence[Reader]
) -> dict[str, int]:
    """In how many passages of the collections together each lexeme occurs; those that do not are missing, and those
    that occur in no passage which the readers may see.
    """
    frequencies = frequencies_in(collections, lexemes)
    seen = keep_seen(frequencies, collections, readers)
    return {lexeme: frequency for lexeme, frequency in frequencies.items() if lexeme in seen}


def beginning_alike(lexeme: str, shortest: int, longest: int, collections: Sequence[int]) -> list[str]:
    """The collections' lexemes with the same first letter and such a length: one value, as many rows cost more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(lexeme, E'\\n') FROM retrieval_lexeme WHERE collection_id = ANY(%s) "
            "AND left(lexeme, 1) = %s AND length(lexeme) BETWEEN %s AND %s AND document_frequency > 0",
            [list(collections), lexeme[0], shortest, longest],
        )
        found = cursor.fetchone()[0]
    return list(dict.fromkeys(found.split("\n"))) if found else []
