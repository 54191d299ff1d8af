"""The words and codes of the collections that are searched, as their documents write them.

The index holds lexemes; how a word is written is read from a few passages that hold its lexeme. Every look goes through
an index, so that it costs the same with 300,000 lexemes as with 3,000.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from django.core.exceptions import EmptyResultSet

from retrieval import conf
from retrieval.index.term_statistics import by_configuration, lexemes_of, passages_in
from retrieval.infrastructure.servers import connection
from retrieval.models import Document
from retrieval.search.fuzzy import (
    LONGEST_ENDING,
    beginning_alike,
    chunks_seen,
    document_frequencies,
    expand,
    unknown_terms,
)
from retrieval.search.near_spelling import LONGEST_TERM, allowed_edits, edit_distances
from retrieval.search.spelling import NearWord
from retrieval.search.tsquery import quote
from retrieval.text.terms import expand_identifiers, identifiers
from retrieval.types import ANYBODY, Reader

# Of so many passages is read how they write a lexeme, and for so many lexemes near a word.
PASSAGES_READ = 8
LEXEMES_READ = 10
MOST_CODES = 5
SHORTEST_BEGINNING = 4
# A tokenizer that has these whole has the words of their language; an estimate of tokens counts several.
_LONG_WORDS = {"en": "information", "nl": "informatie"}
_LANGUAGES = {"english": "en", "dutch": "nl"}
_SUFFIXES = ("s", "ed", "er", "ing", "ly", "able", "al", "ment", "ness")
_WORD = re.compile(r"[^\W\d_]+")


class CollectionVocabulary:
    """Implements ``Vocabulary`` for these collections, as far as the readers may see their documents."""

    def __init__(self, collections: Sequence[int], readers: Sequence[Reader] = (ANYBODY,)) -> None:
        self._collections = list(collections)
        self._readers = readers

    @cached_property
    def _configurations(self) -> dict[str, tuple[int, ...]]:
        return by_configuration(self._collections)

    def unknown_words(self, text: str) -> list[str]:
        configurations = list(self._configurations)
        spoken = expand_identifiers(text)
        lexemes = set().union(*lexemes_of([spoken], configurations).values())
        known = document_frequencies(lexemes, self._collections, self._readers)
        if len(known) == len(lexemes):
            return []
        return list(unknown_terms(spoken, configurations, known))

    def is_ordinary(self, word: str) -> bool:
        # A model's tokenizer has the frequent words of its languages whole, and no misspelt ones.
        stems = [word.removesuffix(suffix) for suffix in _SUFFIXES if word.endswith(suffix)]
        forms = [word, *(form for stem in stems if len(stem) >= SHORTEST_BEGINNING for form in (stem, f"{stem}e"))]
        return 1 in conf.embedder().count_tokens(forms)

    @property
    def language(self) -> str:
        languages = {_LANGUAGES.get(configuration, "") for configuration in self._configurations}
        return languages.pop() if len(languages) == 1 else ""

    def knows_words_of(self, language: str) -> bool:
        return language in _LONG_WORDS and conf.embedder().count_tokens([_LONG_WORDS[language]]) == [1]

    def near(self, word: str, language: str = "") -> list[NearWord]:
        passages = passages_in(self._collections)
        near: dict[str, NearWord] = {}
        for configuration, collections in self._configurations.items():
            if _LANGUAGES.get(configuration, language) != language and language:
                continue
            for lexeme in lexemes_of([word.lower()], [configuration])[configuration, word.lower()][:1]:
                expansions = expand(
                    word, lexeme, configuration, collections, self._collections, passages, self._readers
                )
                frequencies = {each.lexeme: each.document_frequency for each in expansions[:LEXEMES_READ]}
                frequencies |= document_frequencies(_beginnings(word.lower()), collections, self._readers)
                for text, (meant, is_written) in self._forms(word.lower(), list(frequencies), configuration).items():
                    edits = int(edit_distances(word.lower(), [text.lower()])[0][0])
                    near.setdefault(text.lower(), NearWord(text, edits, frequencies[meant], is_written))
        return sorted(near.values(), key=lambda each: (each.edits, -each.passages, each.text))

    def written(self, codes: Sequence[str]) -> Mapping[str, list[str]]:
        known = document_frequencies(codes, self._collections, self._readers)
        return {code: ways for code in known if (ways := self._ways(code))}

    def codes_near(self, code: str) -> list[str]:
        edits = allowed_edits(len(code))
        if len(code) > LONGEST_TERM:
            return []
        alike = beginning_alike(code, max(3, len(code) - edits), len(code) + edits, self._collections)
        candidates = [each for each in alike if each.isalnum() and not each.isalpha() and not each.isdigit()]
        distances = edit_distances(code, candidates)[0]
        near = sorted((int(distances[place]), candidates[place]) for place in np.nonzero(distances <= edits)[0])
        ways = [self._ways(each) for _, each in near[:MOST_CODES]]
        return [way[0] for way in ways if way]

    def _forms(self, typed: str, lexemes: Sequence[str], configuration: str) -> dict[str, tuple[str, bool]]:
        """For each of the lexemes its word that is nearest to the typed one; with the lexeme, and whether the passages
        that were read hold that very word."""
        words: Counter[str] = Counter()
        for text in self._passages(lexemes):
            words.update(word for word in _WORD.findall(text) if word[:1].lower() == typed[:1])
        # A form that those passages lack: *production*, of a lexeme that they hold as *product*.
        endings = [typed[len(typed) - length :] for length in range(LONGEST_ENDING + 2)]
        made = (lexeme + ending for lexeme in lexemes for ending in endings)
        words.update({word: 0 for word in made if self.is_ordinary(word)})
        near = [word for word in words if len(word) <= LONGEST_TERM and abs(len(word) - len(typed)) <= 2]
        if not near:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT word, (tsvector_to_array(to_tsvector(%s::regconfig, word)))[1] FROM unnest(%s::text[]) AS word",
                [configuration, near],
            )
            meant = {word: lexeme for word, lexeme in cursor.fetchall() if lexeme in lexemes}
        distances = dict(zip(near, edit_distances(typed, [word.lower() for word in near])[0].tolist(), strict=True))
        forms: dict[str, tuple[str, bool]] = {}
        # The way it is written most often: a capital may only begin a sentence.
        for word in sorted(meant, key=lambda word: (distances[word], -words[word], word)):
            if (meant[word], words[word] > 0) not in forms.values():
                forms[word] = meant[word], words[word] > 0
        return forms

    def _ways(self, code: str) -> list[str]:
        """How the documents write a code, the most frequent way first."""
        written: Counter[str] = Counter()
        for text in self._passages([code]):
            written.update(way for whole, way in identifiers(text) if whole == code)
        return [way for way, _ in sorted(written.items(), key=lambda item: (-item[1], item[0]))]

    def _passages(self, lexemes: Sequence[str]) -> list[str]:
        """The texts of a few passages that hold each of the lexemes, with all that is indexed of them."""
        if not lexemes:
            return []
        chunks = chunks_seen(self._collections, self._readers)
        fields = ("document_id", "heading_path", "canonical_questions", "content", "search_vector")
        try:
            seen, parameters = chunks.order_by().values_list(*fields).query.sql_with_params()
        except EmptyResultSet:  # no collection
            return []
        with connection.cursor() as cursor:
            look = (
                f"(SELECT document_id, heading_path, canonical_questions, content FROM ({seen}) "
                "AS seen(document_id, heading_path, canonical_questions, content, search_vector) "
                "WHERE search_vector @@ %s::tsquery LIMIT %s)"
            )
            cursor.execute(
                " UNION ALL ".join([look] * len(lexemes)),
                [value for lexeme in lexemes for value in (*parameters, quote(lexeme), PASSAGES_READ)],
            )
            rows = cursor.fetchall()
        titles = dict(Document.objects.filter(pk__in={row[0] for row in rows}).values_list("pk", "title"))
        return ["\n".join((titles.get(pk, ""), *headings, *asked, text)) for pk, headings, asked, text in rows]


def _beginnings(word: str) -> list[str]:
    """What the word may come down to when the slip is in its ending: *incid* of *incidnet*."""
    return [word[:length] for length in range(max(SHORTEST_BEGINNING, len(word) - LONGEST_ENDING), len(word))]
