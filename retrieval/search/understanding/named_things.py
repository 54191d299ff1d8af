"""Find the collections, sections and codes, such as part numbers, that a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.index.term_statistics import (
    count_passages_in,
    group_by_configuration,
    read_collection_states,
    read_frequencies,
    read_lexemes,
)
from retrieval.search.understanding.syntax import parse_question
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.text.terms import SYMBOL_TERM, expand_identifiers
from retrieval.text.word_lists import fill_in

_WORDS = re.compile(r"\w+")


# A version number, or a word of letters and digits, but no ordinal, decade or measure (19th, 1970s, 500mg).
_CODE = re.compile(
    rf"(?!\d+[^\W\d_]{{1,3}}$|{SYMBOL_TERM}(?:2[0-2])?..$)(?=\w*[^\W\d_])(?=\w*\d)\w{{3,}}|\d+(?:\.\d+){{2,}}"
)


_SECTION = re.compile(fill_in(r"(\b<section>|§) ?(\d{1,3}(?:\.\d{1,3}){0,4})\b", "documents"), re.I)


# A one-word collection name is rare if at most this share of the passages in other collections contains it.
RARE_SHARE = 0.01


def find_named_collections(question: str, collection_ids: Sequence[int]) -> tuple[str, ...]:
    """Return the slugs of the collections whose name or slug the question contains.

    Frequent words such as "parts" name no collection.
    """
    said = f" {' '.join(_WORDS.findall(question.casefold()))} "
    named = []
    for state in read_collection_states(collection_ids):
        others = [pk for pk in collection_ids if pk != state.pk]
        names = [_WORDS.findall(name.casefold()) for name in state.names]
        if any(
            f" {' '.join(words)} " in said and (len(words) > 1 or _is_rare(words[0], others))
            for words in names
            if words
        ):
            named.append(state.names[0])
    return tuple(named)


def _is_rare(word: str, collection_ids: Sequence[int]) -> bool:
    if CollectionVocabulary(collection_ids).is_ordinary(word):
        return False
    lexemes = set().union(*read_lexemes([word], list(group_by_configuration(collection_ids))).values())
    found = read_frequencies(collection_ids, lexemes)
    return max(found.values(), default=0) <= RARE_SHARE * count_passages_in(collection_ids)


def find_alphanumeric_codes(question: str) -> frozenset[str]:
    """Return the codes in the question, as lower-case letters and digits: ``mx9920w`` for MX-9920-W."""
    words = (word.strip(".,;:!?()\"'") for word in expand_identifiers(parse_question(question).text).split())
    return frozenset(word.lower() for word in words if _CODE.fullmatch(word))


def find_named_section(question: str) -> tuple[str, str] | None:
    """Return noun and number of the section, clause or step that the question names: ("clause", "1.2"), or None."""
    named = _SECTION.search(parse_question(question).text)
    return (named[1].casefold(), named[2]) if named else None
