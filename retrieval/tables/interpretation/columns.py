"""Which columns the words of a question name: by their words, by what they mean, or by likeness of meaning. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from retrieval.tables.interpretation.concepts import CONCEPTS, CONCEPTS_OF_STEM, UNITS
from retrieval.tables.interpretation.lexicon import ADJECTIVES, EXTREMES, GRAMMAR_WORDS, STOP_WORDS
from retrieval.tables.interpretation.links import BY_CONCEPT, BY_PREFIX, BY_STEM, EXACT, ColumnLink, KnownTable, Links
from retrieval.tables.words import QuestionToken, period_of, show_name, stem

_SHORTEST_PREFIX = 5
_SHORTEST_ABBREVIATION = 4
# Two names that are less alike are other things: of "shipping weight" and "weight" it is .72.
_LEAST_LIKENESS = 0.75
_MOST_WORDS_BY_LIKENESS = 2

Likeness = Callable[[str, Sequence[str]], Sequence[float]]
"""How alike a word and each of some names are in meaning, from -1 to 1."""


def link_columns(links: Links, table: KnownTable) -> None:
    """Neighbouring words that name a column name it together: the column that most of them fit is meant."""
    scores = {
        at: matched
        for at, token in enumerate(links.tokens)
        if at not in links.explained and (matched := _columns_named(token, table))
    }
    for group in _groups(links.tokens, sorted(scores)):
        rest = group
        while rest:
            sums: dict[int, float] = {}
            for at in rest:
                for column, quality in scores[at].items():
                    sums[column] = sums.get(column, 0.0) + quality
            ranked = {column: (total, _share_named(column, rest, scores, table)) for column, total in sums.items()}
            best = max(ranked.values())
            columns = tuple(column for column, rank in ranked.items() if rank == best)
            if table.key in columns:
                columns = (table.key,)  # "orders" are the rows, and not the dates of orders
            used = tuple(at for at in rest if any(column in scores[at] for column in columns))
            quality = max(scores[at].get(columns[0], 0.0) for at in used)
            links.columns.append(ColumnLink(used, columns, quality))
            links.explained.update(used)
            rest = [at for at in rest if at not in used]
    links.columns.sort(key=lambda mention: mention.first)


def _columns_named(token: QuestionToken, table: KnownTable) -> dict[int, float]:
    if token.norm in STOP_WORDS and token.norm not in ADJECTIVES and token.stem not in CONCEPTS_OF_STEM:
        return {}
    matched = {}
    for column, names in enumerate(table.column_words):
        quality = max((_likeness(token, name) for name in names), default=0.0)
        if quality:
            matched[column] = quality
    if matched and max(matched.values()) >= BY_PREFIX:
        return matched
    if token.norm in EXTREMES or (token.norm in STOP_WORDS and token.norm not in ADJECTIVES):
        return {}
    for concept in CONCEPTS_OF_STEM.get(token.stem, ()):
        for column in columns_of_concept(concept, table):
            matched[column] = BY_CONCEPT
    return matched


def _likeness(token: QuestionToken, name: str) -> float:
    if token.norm in STOP_WORDS or token.stem.isdigit():
        return 0.0
    if token.norm == name or token.norm in (f"{name}s", f"{name}es"):
        return EXACT
    if token.stem == stem(name):
        return BY_STEM
    if len(name) >= _SHORTEST_ABBREVIATION and token.norm.startswith(name):
        return BY_PREFIX
    return BY_PREFIX if len(token.stem) >= _SHORTEST_PREFIX and name.startswith(token.stem) else 0.0


def columns_of_concept(concept: str, table: KnownTable) -> list[int]:
    """The columns whose name or unit means this."""
    means = CONCEPTS[concept][1] if concept in CONCEPTS else frozenset()
    return [
        at for at, stems in enumerate(table.column_stems) if means & set(stems) or stem(table.columns[at].unit) in means
    ]


def _groups(tokens: Sequence[QuestionToken], places: Sequence[int]) -> Iterator[list[int]]:
    """Places that follow one another, but for "of" and "per"."""
    group: list[int] = []
    for at in places:
        between = {token.norm for token in tokens[group[-1] + 1 : at]} if group else set()
        if group and not between <= {"of", "per", "in", "van", "the", "de", "het"}:
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def _share_named(
    column: int, tokens: Sequence[int], scores: Mapping[int, Mapping[int, float]], table: KnownTable
) -> float:
    words = [name for name in table.column_stems[column] if not name.isdigit() and name not in STOP_WORDS]
    units = {word for word in words[1:] if word in UNITS}
    named = sum(column in scores[at] for at in tokens)
    return min(1.0, named / max(1, len(words) - len(units)))


def link_alike(links: Links, table: KnownTable, likeness: Likeness) -> None:
    """What is left, with the words of a column beside it, may mean the same as a column's name or a caption's word."""
    left = [
        at for at, token in enumerate(links.tokens) if token in links.unexplained and token.norm not in GRAMMAR_WORDS
    ]
    if not 1 <= len(left) <= _MOST_WORDS_BY_LIKENESS or not (links.values or links.columns or links.names_key):
        return
    names = [show_name(column.name) for column in table.columns]
    captions = sorted(word for word in table.caption_words if word not in STOP_WORDS)
    for at in left:
        if not links.tokens[at].norm.isalpha() or at in links.explained:
            continue
        beside = next((mention for mention in links.columns if {at - 1, at + 1} & set(mention.tokens)), None)
        places = sorted({at, *(beside.tokens if beside else ())})
        alike = likeness(
            " ".join(links.tokens[place].norm for place in places), [*names, *([] if beside else captions)]
        )
        best = max(range(len(alike)), key=lambda number: alike[number])
        if alike[best] < _LEAST_LIKENESS:
            continue
        links.explained.add(at)
        if best >= len(names):
            links.names_caption.add(at)
            continue
        if beside is not None:
            links.columns.remove(beside)
        links.columns.append(ColumnLink(tuple(places), (best,), BY_PREFIX))
        links.columns.sort(key=lambda mention: mention.first)


def in_period(
    mentions: Sequence[ColumnLink], period: tuple[int, int] | None, table: KnownTable
) -> list[ColumnLink] | None:
    """The mentions with the columns of that period alone; None when one of them has no such column."""
    kept = []
    for mention in mentions:
        periods = {column: period_of(table.columns[column].name) for column in mention.columns}
        if period is None or not any(periods.values()):
            kept.append(mention)
            continue
        columns = tuple(column for column, years in periods.items() if years is not None and _covers(period, years))
        if not columns:
            return None
        kept.append(replace(mention, columns=columns))
    return kept


def _covers(period: tuple[int, int], years: tuple[int, int]) -> bool:
    return period == years or (period[1] == 9999 and years[0] >= period[0])
