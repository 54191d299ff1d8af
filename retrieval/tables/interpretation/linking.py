"""What the words of a question mean in one table: values of cells, columns, the table itself. PURE."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from retrieval.lexical.words.spelling import edit_distances
from retrieval.tables.interpretation.columns import Likeness, link_alike, link_columns
from retrieval.tables.interpretation.concepts import CONCEPTS_OF_STEM, UNITS
from retrieval.tables.interpretation.lexicon import (
    ADJECTIVES,
    COMPARATORS,
    EXTREMES,
    GRAMMAR_WORDS,
    SOFT_WORDS,
    STOP_WORDS,
)
from retrieval.tables.interpretation.links import BY_STEM, EXACT, PARTIAL, KnownTable, Links, ValueLink
from retrieval.tables.words import QuestionToken, squeeze, stem, stems_of, tokenize

_LONGEST_SPAN = 10
# A cell of more words is prose: that it holds a word of the question says nothing.
_MOST_WORDS_OF_NAME = 8
_SHORTEST_TYPED_WRONG = 4
_SHORTEST_PREFIX = 4
_BEFORE_NUMBERS = {words[-1] for words, _ in COMPARATORS} | {"between", "tussen", "and", "en"}


def link(question: str, table: KnownTable, likeness: Likeness | None = None) -> Links:
    """What the words of the question mean in the table; ``likeness`` is asked of words that nothing else explains."""
    links = Links([_correct(token, table) for token in tokenize(question)])
    _link_values(links, table)
    link_columns(links, table)
    _choose_columns_of_values(links, table)
    _link_name(links, table)
    _link_parts_of_values(links, table)
    if likeness is not None:
        link_alike(links, table, likeness)
    links.values.sort(key=lambda value: value.first)
    return links


def _correct(token: QuestionToken, table: KnownTable) -> QuestionToken:
    """The token, or the word of the table or of the grammar that was probably meant."""
    word = token.norm
    if len(word) < 3 or not word.isalpha() or word in GRAMMAR_WORDS or word in table.vocabulary:
        return token
    if token.stem in table.stems or token.stem in CONCEPTS_OF_STEM or token.stem in SOFT_WORDS or word in UNITS:
        return token
    lengths = range(max(3, len(word) - 1), len(word) + 2)
    candidates = [known for length in lengths for known in (*table.words_of_length(length), *_words_of_length(length))]
    if not candidates:
        return token
    distances = edit_distances(word, candidates)[0]
    close = [
        known for known, distance in zip(candidates, distances, strict=True) if distance == 1 and _is_slip(word, known)
    ]
    if not close:
        return token
    best = min(close, key=lambda known: (known not in table.vocabulary, known))
    return replace(token, norm=best, stem=stem(best))


@functools.cache
def _words_of_length(length: int) -> tuple[str, ...]:
    """The words of the grammar that may be typed wrong."""
    words = EXTREMES.keys() | ADJECTIVES.keys() | {"how", "the", "which", "what"}
    return tuple(sorted(word for word in words if len(word) == length and word.isalpha()))


def _is_slip(word: str, known: str) -> bool:
    """Two letters exchanged; in longer words one letter too many, too few or wrong, but not the first."""
    if sorted(word) == sorted(known):
        return True
    return (
        min(len(word), len(known)) >= _SHORTEST_TYPED_WRONG and max(len(word), len(known)) > 4 and word[0] == known[0]
    )


# Values --------------------------------------------------------------------------------------------------------------


def _link_values(links: Links, table: KnownTable) -> None:
    """The longest stretches of the question that are the whole text of a cell."""
    tokens = links.tokens
    whole_names = {squeeze(column.name) for column in table.columns}
    for length in range(min(_LONGEST_SPAN, len(tokens)), 0, -1):
        for first in range(len(tokens) - length + 1):
            last = first + length - 1
            if any(at in links.explained for at in range(first, last + 1)):
                continue
            if length == 1 and (_is_grammar(tokens[first]) or tokens[first].norm in whole_names):
                continue
            value = _find_cells(tokens[first : last + 1], table)
            if value is not None:
                links.values.append(replace(value, first=first, last=last))
                links.explained.update(range(first, last + 1))


def _is_grammar(token: QuestionToken) -> bool:
    return token.norm in GRAMMAR_WORDS or token.stem in SOFT_WORDS or len(token.norm) < 2


def _find_cells(span: Sequence[QuestionToken], table: KnownTable) -> ValueLink | None:
    label = "".join(token.norm for token in span)
    if len(span) > 1 and all(token.norm in STOP_WORDS for token in span):
        return None
    if label.isdigit() and len(label) < 3:
        return None
    cells, quality = table.cells_by_label.get(label, []), EXACT
    if not cells and not (_is_grammar(span[0]) or _is_grammar(span[-1])):
        cells, quality = table.cells_by_stems.get(tuple(token.stem for token in span), []), BY_STEM
    if not cells:
        return None
    columns = sorted({at for at, _ in cells}, key=lambda at: (at not in table.names, at))
    held = [(column, tuple(text for at, text in cells if at == column)) for column in columns]
    return ValueLink(0, 0, *held[0], quality, others=tuple(held[1:]))


def _choose_columns_of_values(links: Links, table: KnownTable) -> None:
    """Of a value that several columns hold, the column that is named beside it ("in the province of Utrecht"), or that
    is not the key, where it says which rows are meant ("which towns are in Utrecht").
    """
    for place, value in enumerate(links.values):
        if not value.others:
            continue
        beside = {
            column for mention in links.columns if -4 <= mention.first - value.last <= 3 for column in mention.columns
        }
        before = links.tokens[value.first - 1].norm if value.first else ""
        chosen = next((other for other in value.others if other[0] in beside), None)
        if chosen is None and value.column not in beside and before in ("in", "of", "from", "uit", "van", "te"):
            asks = any(table.key in mention.columns for mention in links.columns)
            chosen = value.others[0] if asks and value.column == table.key else None
        if chosen is not None:
            links.values[place] = replace(value, column=chosen[0], texts=chosen[1], others=())


def _link_parts_of_values(links: Links, table: KnownTable) -> None:
    """What is left may be some of the words of a cell: "valves", "circulation pump 9940"."""
    for run in list(_runs_of_unexplained(links)):
        for length in range(len(run), 0, -1):
            for begin in range(len(run) - length + 1):
                part = run[begin : begin + length]
                if any(at in links.explained for at in part):
                    continue
                wanted = {links.tokens[at].stem for at in part}
                if all(len(word) < 3 for word in wanted) or _is_measure(part, links.tokens):
                    continue
                if (cells := _cells_with(wanted, table)) is not None:
                    column, texts = cells
                    words = " ".join(links.tokens[at].norm for at in part)
                    links.values.append(ValueLink(part[0], part[-1], column, texts, PARTIAL, words))
                    links.explained.update(range(part[0], part[-1] + 1))


def _is_measure(part: Sequence[int], tokens: Sequence[QuestionToken]) -> bool:
    """A number alone, with a unit behind it or a comparison before it."""
    if len(part) != 1 or not tokens[part[0]].norm[0].isdigit():
        return False
    around = [token.norm for token in (*tokens[max(0, part[0] - 1) : part[0]], *tokens[part[0] + 1 : part[0] + 2])]
    return any(norm in UNITS or norm in _BEFORE_NUMBERS for norm in around)


def _runs_of_unexplained(links: Links) -> Iterator[list[int]]:
    run: list[int] = []
    for at, token in enumerate(links.tokens):
        if at in links.explained or token.norm in GRAMMAR_WORDS or token.stem in SOFT_WORDS:
            if (run and at in links.explained) or (
                run and token.norm not in ("of", "the", "and", "for", "van", "de", "het")
            ):
                yield run
                run = []
        else:
            run.append(at)
    if run:
        yield run


def _cells_with(wanted: set[str], table: KnownTable) -> tuple[int, tuple[str, ...]] | None:
    """The cells of one column that hold all these words: of a column of few different texts rather than of the key."""
    best: tuple[float, int, tuple[str, ...]] | None = None
    for at, texts in table.texts.items():
        if at not in table.names and len(texts) > table.row_count / 2:
            continue
        held = tuple(
            text for text in texts if wanted <= set(stems_of(text)) and len(stems_of(text)) <= _MOST_WORDS_OF_NAME
        )
        if held:
            share = max(len(wanted) / max(1, len(stems_of(text))) for text in held)
            if best is None or share > best[0]:
                best = (share, at, held)
    return best and best[1:]


# The table -----------------------------------------------------------------------------------------------------------


def _link_name(links: Links, table: KnownTable) -> None:
    """Words of the caption, and those that say what a row is."""
    key = set(table.column_stems[table.key]) if table.columns else set()
    for at, token in enumerate(links.tokens):
        if at - 1 in links.names_caption and token.norm in table.caption_years:
            # "stock list 2021" is the name of a table, and no year of its rows.
            links.explained.add(at)
        if token.norm in STOP_WORDS or token.norm.isdigit():
            continue
        named = any(is_same_word(token.stem, word) for word in key)
        if named or (links.is_free(at) and any(is_same_word(token.stem, word) for word in table.caption_stems)):
            links.explained.add(at)
            (links.names_key if named else links.names_caption).add(at)


def is_same_word(one: str, other: str) -> bool:
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= _SHORTEST_PREFIX and longer.startswith(shorter) and len(longer) - len(shorter) <= 4
