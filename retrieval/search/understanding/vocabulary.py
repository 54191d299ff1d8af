"""Find the words and codes in the documents of collections, and those similar to a misspelt word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection as Container
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from core.read_once import get_or_read
from retrieval.index import embedder_choice
from retrieval.index.term_statistics import (
    count_passages_in,
    group_by_configuration,
    read_frequencies,
    read_lexemes,
    read_tokens,
)
from retrieval.models import Chunk, Document
from retrieval.models.narrowing import build_readable_condition
from retrieval.search.ranking.tsquery import quote_lexeme
from retrieval.search.understanding.spelling import NearWord
from retrieval.text.terms import compute_inverse_document_frequency, expand_identifiers, find_identifiers
from retrieval.types import ANYBODY, ReaderRights

# Longer terms are not compared, because edit distances are stored in eight bits.
LONGEST_TERM = 64


def get_allowed_edits(length: int) -> int:
    """Return how many letters may change: 0 if the term has at most 2 letters, 1 if at most 5, otherwise 2.

    Source: Elasticsearch's fuzziness AUTO.
    """
    if length <= 2:
        return 0
    return 1 if length <= 5 else 2


def compute_similarity(term: str, other: str, edits: int) -> float:
    """Return 1 - ``edits`` / the shorter word's length, as Lucene's fuzzy query does."""
    return 1.0 - edits / min(len(term), len(other))


def compute_edit_distances(term: str, others: Sequence[str], *, endings: int = 0) -> npt.NDArray[np.int8]:
    """Return the edit distances between ``others`` and ``term`` without its last 0 to ``endings`` letters.

    The shape is (endings + 1, len(others)); row j is for ``term`` without its last j letters. ``term`` has more than
    ``endings`` and at most LONGEST_TERM characters. Source: Damerau, "A Technique for Computer Detection and Correction
    of Spelling Errors", CACM 1964 (optimal string alignment).
    """
    terms = [term[: len(term) - ending] for ending in range(endings + 1)]
    return cdist(terms, others, scorer=OSA.distance, dtype=np.int8)


# At most this many similar words replace a word that no document contains, as in Elasticsearch's fuzziness AUTO.
#
# A misspelled word may be stemmed differently: the stem of *hospital* is *hospit*, but *hosptial* keeps its ending. So
# the typed word is also compared with each lexeme plus the ending of the typed word, *hospit* + *al*.

MAX_EXPANSIONS = 50
LONGEST_ENDING = 4
# A pasted log may have hundreds of unknown words.
MOST_TERMS = 8


def filter_readable_chunks(collections: Sequence[int], readers: Sequence[ReaderRights]) -> QuerySet[Chunk]:
    chunks = Chunk.objects.filter(collection__in=collections)
    return (
        chunks.filter(document__in=Document.objects.filter(build_readable_condition(readers)).order_by())
        if readers
        else chunks
    )


def filter_visible_lexemes(
    lexemes: Iterable[str], collections: Sequence[int], readers: Sequence[ReaderRights]
) -> set[str]:
    named = sorted(lexemes)
    if not readers or not named:
        return set(named)
    try:
        seen, parameters = (
            filter_readable_chunks(collections, readers).order_by().values("search_vector").query.sql_with_params()
        )
    except EmptyResultSet:
        return set()
    with connection.cursor() as cursor:
        # Each lexeme has its own subquery, because Citus refuses references to an outer row.
        look = f"(SELECT %s::text FROM ({seen}) AS seen(search_vector) WHERE search_vector @@ %s::tsquery LIMIT 1)"
        cursor.execute(
            " UNION ALL ".join([look] * len(named)),
            [value for lexeme in named for value in (lexeme, *parameters, quote_lexeme(lexeme))],
        )
        return {lexeme for (lexeme,) in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class TermExpansion:
    lexeme: str
    edits: int
    document_frequency: int
    weight: float


def find_unknown_terms(
    text: str, configurations: Sequence[str], known: Container[str]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the words of ``text`` that no document contains, with their lexemes by text-search configuration.

    ``known`` are the lexemes in the documents. At most MOST_TERMS words are returned, in the order of the text.
    """
    lexemes: dict[str, dict[str, tuple[str, ...]]] = {}
    typed: dict[str, str] = {}
    stop_words = set()
    for configuration, token, found in read_tokens(text, configurations):
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


def find_similar_lexemes(
    typed: str,
    lexeme: str,
    configuration: str,
    collections: Sequence[int],
    searched: Sequence[int],
    passages: int,
    readers: Sequence[ReaderRights] = (ANYBODY,),
) -> tuple[TermExpansion, ...]:
    """Return the lexemes that the user may have meant by ``typed``, nearest first, with document frequencies.

    The lexemes are from ``collections``, which use ``configuration``. The frequencies include all collections
    ``searched``.
    """
    edits = get_allowed_edits(len(lexeme))
    if not edits or max(len(lexeme), len(typed)) > LONGEST_TERM or not (lexeme.isalpha() and typed.isalpha()):
        return ()
    # One search reads the same words twice: for the spelling correction, and for the keyword retriever.
    key = ("near", typed.lower(), lexeme, configuration, frozenset(collections))
    near = get_or_read(key, lambda: _find_near_lexemes(typed.lower(), lexeme, edits, configuration, collections))
    frequencies = read_document_frequencies(near, searched, readers)
    kept = sorted(frequencies, key=lambda found: (near[found][0], -near[found][1], -frequencies[found], found))
    kept = kept[:MAX_EXPANSIONS]
    if not kept:
        return ()
    idf = compute_inverse_document_frequency(max(frequencies[found] for found in kept), passages)
    return tuple(TermExpansion(found, near[found][0], frequencies[found], idf * near[found][1]) for found in kept)


def _find_near_lexemes(
    typed: str, lexeme: str, edits: int, configuration: str, collections: Sequence[int]
) -> dict[str, tuple[int, float]]:
    endings = min(LONGEST_ENDING, len(typed) - 1)
    shortest = max(1, min(len(lexeme), len(typed) - endings) - edits)
    longest = max(len(lexeme), len(typed)) + edits
    candidates = find_lexemes_by_length(lexeme, shortest, longest, collections)
    near = {}
    distances = compute_edit_distances(lexeme, candidates)[0]
    for place in np.nonzero(distances <= edits)[0]:
        candidate, distance = candidates[place], int(distances[place])
        near[candidate] = distance, compute_similarity(lexeme, candidate, distance)
    of_typed = compute_edit_distances(typed, candidates, endings=endings)
    # A short lexeme is near many words by chance.
    lengths = np.fromiter(map(len, candidates), np.intp, len(candidates))
    allowed = np.array([min(edits, get_allowed_edits(length)) for length in range(longest + 1)])[lengths]
    forms = [
        (candidates[place], typed[len(typed) - ending :] if ending else "", int(of_typed[ending, place]))
        for ending, place in np.argwhere((of_typed <= allowed) & (of_typed > 0))
    ]
    for candidate, ending, distance in _keep_forms_of_their_lexeme(forms, configuration):
        rated = distance, compute_similarity(typed, candidate + ending, distance)
        near[candidate] = min(near.get(candidate, rated), rated, key=lambda rating: (rating[0], -rating[1]))
    return {found: rating for found, rating in near.items() if found.isalpha()}


def _keep_forms_of_their_lexeme(
    forms: Sequence[tuple[str, str, int]], configuration: str
) -> list[tuple[str, str, int]]:
    if not forms:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS form(lexeme, word, place) "
            "WHERE tsvector_to_array(to_tsvector(%s::regconfig, word)) = ARRAY[lexeme]",
            [[lexeme for lexeme, _, _ in forms], [lexeme + ending for lexeme, ending, _ in forms], configuration],
        )
        return [forms[place - 1] for (place,) in cursor.fetchall()]


def read_document_frequencies(
    lexemes: Iterable[str], collections: Sequence[int], readers: Sequence[ReaderRights]
) -> dict[str, int]:
    """Return the number of passages with each lexeme, without lexemes that are hidden from the ``readers``."""
    frequencies = read_frequencies(collections, lexemes)
    seen = filter_visible_lexemes(frequencies, collections, readers)
    return {lexeme: frequency for lexeme, frequency in frequencies.items() if lexeme in seen}


def find_lexemes_by_length(lexeme: str, shortest: int, longest: int, collections: Sequence[int]) -> list[str]:
    """Return the lexemes with ``shortest`` to ``longest`` letters and the same first letter as ``lexeme``."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(lexeme, E'\\n') FROM retrieval_lexeme WHERE collection_id = ANY(%s) "
            "AND left(lexeme, 1) = %s AND length(lexeme) BETWEEN %s AND %s AND document_frequency > 0",
            [list(collections), lexeme[0], shortest, longest],
        )
        found = cursor.fetchone()[0]
    return list(dict.fromkeys(found.split("\n"))) if found else []


# Passages that are read for each lexeme, and lexemes that are tried for each word.
PASSAGES_READ = 8
LEXEMES_READ = 10
MOST_CODES = 5
SHORTEST_BEGINNING = 4
# If a tokenizer encodes this word as one token, its vocabulary has common words.
_LONG_WORD = "information"
_SUFFIXES = ("s", "ed", "er", "ing", "ly", "able", "al", "ment", "ness")
_WORD = re.compile(r"[^\W\d_]+")


class CollectionVocabulary:
    """The words of those documents in ``collections`` that ``readers`` may read.

    With a ``language``, similar words are not taken from documents in other languages.
    """

    def __init__(
        self, collections: Sequence[int], readers: Sequence[ReaderRights] = (ANYBODY,), language: str = ""
    ) -> None:
        self._collections = list(collections)
        self._readers = readers
        self._language = language

    @cached_property
    def _collections_by_configuration(self) -> dict[str, tuple[int, ...]]:
        return group_by_configuration(self._collections)

    def find_unknown_words(self, text: str) -> list[str]:
        configurations = list(self._collections_by_configuration)
        spoken = expand_identifiers(text)
        lexemes = set().union(*read_lexemes([spoken], configurations).values())
        known = read_document_frequencies(lexemes, self._collections, self._readers)
        if len(known) == len(lexemes):
            return []
        return list(find_unknown_terms(spoken, configurations, known))

    def is_ordinary(self, word: str) -> bool:
        # The embedder's tokenizer encodes a common word as one token, and a misspelt word as several. It may also split
        # an ending from a common word, so the word is also tried without its ending.
        stems = [word.removesuffix(suffix) for suffix in _SUFFIXES if word.endswith(suffix)]
        forms = [word, *(form for stem in stems if len(stem) >= SHORTEST_BEGINNING for form in (stem, f"{stem}e"))]
        return 1 in embedder_choice.get_embedder().count_tokens(forms)

    @property
    def can_recognise_words(self) -> bool:
        return embedder_choice.get_embedder().count_tokens([_LONG_WORD]) == [1]

    def find_near_words(self, word: str) -> list[NearWord]:
        typed, passages = word.lower(), count_passages_in(self._collections)
        lexemes: set[str] = set()
        for configuration, collections in self._collections_by_configuration.items():
            for lexeme in read_lexemes([typed], [configuration])[configuration, typed][:1]:
                expansions = find_similar_lexemes(
                    word, lexeme, configuration, collections, self._collections, passages, self._readers
                )
                lexemes.update(each.lexeme for each in expansions[:LEXEMES_READ])
            # The typing error may be in the ending: *incid* of *incidnet*.
            beginnings = [typed[:length] for length in range(max(SHORTEST_BEGINNING, len(typed) - 4), len(typed))]
            lexemes |= read_document_frequencies(beginnings, collections, self._readers).keys()
        written: Counter[str] = Counter()
        for text in self._read_passages(sorted(lexemes)):
            written.update({found for found in _WORD.findall(text) if found[:1].lower() == typed[:1]})
        near: dict[str, NearWord] = {}
        # The most frequent form decides about capitals, because a word may have a capital only at the beginning of a
        # sentence.
        for text, count in written.most_common():
            if 0 < (edits := OSA.distance(typed, text.lower())) <= 2:
                near.setdefault(text.lower(), NearWord(text, edits, count))
        return sorted(near.values(), key=lambda each: (each.edits, -each.passages, each.text))

    def find_code_spellings(self, codes: Sequence[str]) -> Mapping[str, list[str]]:
        known = read_document_frequencies(codes, self._collections, self._readers)
        return {code: ways for code in known if (ways := self._find_code_spellings(code))}

    def find_similar_codes(self, code: str) -> list[str]:
        edits = get_allowed_edits(len(code))
        if len(code) > LONGEST_TERM:
            return []
        alike = find_lexemes_by_length(code, max(3, len(code) - edits), len(code) + edits, self._collections)
        candidates = [each for each in alike if each.isalnum() and not each.isalpha() and not each.isdigit()]
        distances = compute_edit_distances(code, candidates)[0]
        near = sorted((int(distances[place]), candidates[place]) for place in np.nonzero(distances <= edits)[0])
        ways = [self._find_code_spellings(each) for _, each in near[:MOST_CODES]]
        return [way[0] for way in ways if way]

    def _find_code_spellings(self, code: str) -> list[str]:
        written: Counter[str] = Counter()
        for text in self._read_passages([code]):
            written.update(way for whole, way in find_identifiers(text) if whole == code)
        return [way for way, _ in sorted(written.items(), key=lambda item: (-item[1], item[0]))]

    def _read_passages(self, lexemes: Sequence[str]) -> list[str]:
        if not lexemes:
            return []
        fields = ("document__title", "heading_path", "canonical_questions", "content", "search_vector")
        readable = filter_readable_chunks(self._collections, self._readers)
        if self._language:
            readable = readable.filter(document__language__in=(self._language, ""))
        chunks = readable.order_by().values(*fields)
        try:
            seen, parameters = chunks.query.sql_with_params()
        except EmptyResultSet:
            return []
        # Each lexeme has its own subquery, because Citus refuses references to an outer row.
        look = f"(SELECT * FROM ({seen}) AS seen WHERE search_vector @@ %s::tsquery LIMIT {PASSAGES_READ})"
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join([look] * len(lexemes)),
                [value for lexeme in lexemes for value in (*parameters, quote_lexeme(lexeme))],
            )
            return [
                "\n".join((title, *headings, *asked, text)) for title, headings, asked, text, _ in cursor.fetchall()
            ]
