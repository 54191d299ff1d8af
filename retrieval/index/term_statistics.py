"""Read data for a search: collections' statistics, document frequencies, and the lexemes of a text.

Document frequencies are cached until the collection's statistics change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from core.read_once import get_or_read
from core.recent import LruCache
from retrieval.text.terms import expand_identifiers

WORD = re.compile(r"[^\W_]+")
WORD_KINDS = ["asciiword", "word", "hword_asciipart", "hword_part"]
"""PostgreSQL's names for words of letters. A hyphenated word counts in its parts, not as a whole."""


COLLECTIONS_KEPT = 64
WORDS_KEPT = 5_000
TEXTS_KEPT = 10_000
LONGEST_TEXT_KEPT = 300


@dataclass(frozen=True, slots=True)
class CollectionStatisticsSnapshot:
    """A collection's statistics at the start of a search.

    ``names`` are its slug and name. ``edition`` changes whenever the statistics change.
    """

    pk: int
    names: tuple[str, str]
    configurations: tuple[str, ...]
    chunks: int
    edition: tuple[int, str]


_frequencies: LruCache[tuple[int, tuple[int, str]], dict[str, int]] = LruCache(COLLECTIONS_KEPT)
_lexemes: LruCache[tuple[str, str], tuple[str, ...]] = LruCache(TEXTS_KEPT)


def read_collection_states(collections: Sequence[int]) -> list[CollectionStatisticsSnapshot]:
    wanted = frozenset(collections)
    return get_or_read(
        ("collections", wanted), lambda: sorted(_fetch_collection_states(collections), key=lambda state: state.pk)
    )


def _fetch_collection_states(collections: Sequence[int]) -> list[CollectionStatisticsSnapshot]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, slug, name, CASE text_search_configuration WHEN 'auto' THEN coalesce(configurations, '') "
            "ELSE text_search_configuration END, coalesce(chunks, 0), "
            "coalesce(version, 0), coalesce(statistics.xmin::text, '') "
            "FROM retrieval_collection LEFT JOIN retrieval_collectionstatistics AS statistics ON collection_id = id "
            "WHERE id = ANY(%s)",
            [list(collections)],
        )
        return [
            CollectionStatisticsSnapshot(pk, (slug, name), tuple(configurations.split()), chunks, (version, written))
            for pk, slug, name, configurations, chunks, version, written in cursor.fetchall()
        ]


def count_passages_in(collections: Sequence[int]) -> int:
    return sum(state.chunks for state in read_collection_states(collections))


def group_by_configuration(collections: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return collection ids by PostgreSQL text-search configuration (language), in alphabetical order.

    A collection can be under several configurations.
    """
    found: dict[str, tuple[int, ...]] = {}
    for name, pk in sorted(
        (name, state.pk) for state in read_collection_states(collections) for name in state.configurations
    ):
        found[name] = (*found.get(name, ()), pk)
    return found


def list_multilingual_collections(collections: Sequence[int]) -> tuple[int, ...]:
    return tuple(state.pk for state in read_collection_states(collections) if len(state.configurations) > 1)


def build_configuration_condition(configuration: str, collections: Sequence[int]) -> tuple[str, list[object]]:
    """Return an SQL condition, with its parameters: a passage is in ``collections`` and has this ``configuration``."""
    mixed = list_multilingual_collections(collections)
    if not mixed:
        return "collection_id = ANY(%s::bigint[])", [list(collections)]
    plain = [pk for pk in collections if pk not in mixed]
    return (
        "(collection_id = ANY(%s::bigint[]) OR (collection_id = ANY(%s::bigint[]) AND configuration = %s))",
        [plain, list(mixed), configuration],
    )


def list_words(text: str) -> list[str]:
    return sorted({word.lower() for word in WORD.findall(text)})


def prefetch_terms(texts: Sequence[str], collections: Sequence[int]) -> None:
    """Read the lexemes of the texts, and their document frequencies, into the cache. Raises: DatabaseError."""
    wanted = dict.fromkeys(each for text in texts for each in (expand_identifiers(text), *list_words(text)))
    found = read_lexemes(list(wanted), list(group_by_configuration(collections)))
    read_frequencies(collections, set().union(*found.values()))


def read_lexemes(texts: Sequence[str], configurations: Sequence[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return a mapping from (text-search configuration, text) to the lexemes of the text, in order."""
    wanted = [(configuration, text) for configuration in configurations for text in texts]
    found = {key: lexemes for key in wanted if (lexemes := _lexemes.get(key)) is not None}
    unknown = [key for key in wanted if key not in found]
    if unknown:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT configuration, said, tsvector_to_array(to_tsvector(configuration::regconfig, said)) "
                "FROM unnest(%s::text[], %s::text[]) AS each(configuration, said)",
                [[configuration for configuration, _ in unknown], [text for _, text in unknown]],
            )
            for configuration, text, lexemes in cursor.fetchall():
                found[configuration, text] = tuple(lexemes)
                if len(text) <= LONGEST_TEXT_KEPT:
                    _lexemes.put((configuration, text), tuple(lexemes))
    return found


def read_tokens(text: str, configurations: Sequence[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (configuration, word, lexemes) for each word in order. Stop words have no lexemes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT configuration, token, lexemes "
            "FROM unnest(%s::text[]) WITH ORDINALITY AS known(configuration, place), "
            "ts_debug(configuration::regconfig, %s) WITH ORDINALITY AS word WHERE alias = ANY(%s) "
            "ORDER BY place, word.ordinality",
            [list(configurations), text, WORD_KINDS],
        )
        return [(name, token, tuple(lexemes or ())) for name, token, lexemes in cursor.fetchall()]


def read_frequencies(collections: Sequence[int], lexemes: Iterable[str]) -> dict[str, int]:
    """Return the number of passages with each lexeme; lexemes without passages are missing."""
    wanted = set(lexemes)
    states = read_collection_states(collections)
    if not wanted or not states:
        return {}
    kept = [_frequencies.get((state.pk, state.edition)) or {} for state in states]
    unknown = sorted(lexeme for lexeme in wanted if any(lexeme not in known for known in kept))
    if unknown:
        fresh: dict[int, dict[str, int]] = {state.pk: dict.fromkeys(unknown, 0) for state in states}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT collection_id, lexeme, document_frequency FROM retrieval_lexeme "
                "WHERE collection_id = ANY(%s) AND lexeme = ANY(%s)",
                [list(fresh), unknown],
            )
            for pk, lexeme, frequency in cursor.fetchall():
                fresh[pk][lexeme] = frequency
        # Other threads may be reading these dictionaries, so they are replaced and not changed.
        kept = [
            (known if len(known) < WORDS_KEPT else {key: known[key] for key in wanted & known.keys()}) | fresh[state.pk]
            for state, known in zip(states, kept, strict=True)
        ]
        for state, known in zip(states, kept, strict=True):
            _frequencies.put((state.pk, state.edition), known)
    totals = {lexeme: sum(known[lexeme] for known in kept) for lexeme in wanted}
    return {lexeme: total for lexeme, total in totals.items() if total > 0}
