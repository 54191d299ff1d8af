"""What the words of a question match: how many passages, and where in their text.

Worked out when somebody looks at a search, never while one runs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from retrieval.infrastructure.servers import connection
from retrieval.infrastructure.timeouts import statement_timeout
from retrieval.models import Chunk
from retrieval.rights import restrict
from retrieval.search.lexical_query import build_queries
from retrieval.search.tsquery import MatchesTsQuery
from retrieval.text.terms import expand_identifiers
from retrieval.types import Retriever, SearchFilters

Span = tuple[int, int]

# A word with what joins it to the next one, so that codes, paths and versions are looked at as a whole.
_WORD = re.compile(r"\w+(?:[.\-/\\:@#+>'’]{1,3}\w+)*[+#]{0,2}")


def count_matches(query: str, filters: SearchFilters, *, fuzzy: bool = True, timeout_seconds: float = 2.0) -> int:
    """How many passages the lexical retriever could have ranked: those that hold a telling word and what must occur.

    0 when the documents know none of the words. Raises: InvalidQuery, and RetrieverFailed when the count takes too
    long.
    """
    with statement_timeout(Retriever.LEXICAL, timeout_seconds):
        return sum(
            restrict(Chunk.objects.filter(collection__in=one.collections), filters)
            .filter(MatchesTsQuery("search_vector", one.tsquery))
            .count()
            for one in build_queries(query, filters.collections, readers=filters.readers, fuzzy=fuzzy)
        )


def matched_spans(texts: Mapping[int, str], terms: Mapping[int, Sequence[str]]) -> dict[int, tuple[Span, ...]]:
    """For each passage the places ``[start, end)`` of the words that come down to one of its lexemes in ``terms``.

    ``texts`` are the passages' contents by chunk id. Words are reduced as they are for the index, in the language of
    the passage's collection. A passage that is gone, or without terms, has no places.
    """
    wanted = {pk: frozenset(terms[pk]) for pk in texts if terms.get(pk)}
    if not wanted:
        return {}
    configuration_of = dict(
        Chunk.objects.filter(pk__in=wanted).values_list("pk", "collection__text_search_configuration")
    )
    words: dict[str, set[str]] = defaultdict(set)
    for pk, configuration in configuration_of.items():
        words[configuration].update(_WORD.findall(texts[pk]))
    lexemes = {configuration: _lexemes(sorted(found), configuration) for configuration, found in words.items()}
    return {
        pk: tuple(
            match.span()
            for match in _WORD.finditer(texts[pk])
            if not wanted[pk].isdisjoint(lexemes[configuration][match.group()])
        )
        for pk, configuration in configuration_of.items()
    }


def _lexemes(words: Sequence[str], configuration: str) -> dict[str, list[str]]:
    """What each word comes down to in one text-search configuration; nothing for a stop word."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word, tsvector_to_array(to_tsvector(%s::regconfig, spelt)) "
            "FROM unnest(%s::text[], %s::text[]) AS each(word, spelt)",
            [configuration, list(words), [expand_identifiers(word) for word in words]],
        )
        return dict(cursor.fetchall())
