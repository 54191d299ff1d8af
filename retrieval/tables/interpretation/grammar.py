"""The closed grammar of questions that are computed: what is asked of which rows and columns. PURE.

A question is interpreted only when each of its words that carry meaning has a part in it: a value, a column, a
condition, the table itself or an operation. A word that is left over means that something else is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval.tables.interpretation.columns import Likeness, columns_of_concept, in_period
from retrieval.tables.interpretation.concepts import UNITS
from retrieval.tables.interpretation.conditions import find_conditions
from retrieval.tables.interpretation.lexicon import (
    ADJECTIVES,
    COMPARE_WORDS,
    COUNT_WORDS,
    EXTREMES,
    MEAN_WORDS,
    SUM_WORDS,
)
from retrieval.tables.interpretation.linking import link
from retrieval.tables.interpretation.links import BY_CONCEPT, ColumnLink, KnownTable, Links
from retrieval.tables.interpretation.operations import FoundExtreme, Interpretation, QuestionReader
from retrieval.tables.types import Operation

# Tables shorter than this are looked up in, and not counted or ranked: they are figures in prose.
FEWEST_ROWS = 5
LOWEST_CONFIDENCE = 0.6


def interpret(question: str, table: KnownTable, likeness: Likeness | None = None) -> Interpretation | None:
    """What the question asks of this table; None when it is not clear."""
    links = link(question, table, likeness)
    extreme = _find_extreme(links, table)
    counts = _find_phrase(links, COUNT_WORDS)
    compares = any(token.norm in COMPARE_WORDS for token in links.tokens)
    conditions = find_conditions(links, table, extreme.place if extreme else None)
    if conditions is None:
        return None
    mentions = [mention for mention in links.columns if mention.tokens not in conditions.mentions]
    mentions = [mention for mention in mentions if mention.columns != (table.key,)]
    in_time = in_period(mentions, conditions.period, table)
    aggregate = _find_aggregate(links)
    _excuse_measure(links)
    _excuse_degree(links)
    if links.unexplained or in_time is None:
        return None
    limited = {condition.column for condition in conditions.conditions if not condition.is_yes}
    mentions = [
        mention for mention in in_time if not _only_names(mention, links) and not limited & set(mention.columns)
    ]
    entities = [value for value in links.values if value.column in table.names]
    of_values = [value for value in links.values if value.column not in table.names]
    reader = QuestionReader(links, table, mentions, tuple(conditions.conditions), entities, of_values)
    if len(entities) >= 2 and len({value.texts for value in entities}) >= 2:
        found = reader.compare(extreme, compares)
    elif (
        len(entities) == 1
        and not (extreme and not extreme.is_comparative)
        and (found := reader.look_up(extreme, counts))
    ):
        pass
    elif extreme is not None:
        found = reader.rank(extreme)
    elif aggregate is not None and not counts and (found := reader.aggregate(aggregate)):
        pass
    elif counts:
        found = reader.count()
    else:
        found = reader.list()
    if found is None or found.confidence < LOWEST_CONFIDENCE:
        return None
    if table.row_count < FEWEST_ROWS and found.operation not in (Operation.LOOK_UP, Operation.COMPARE):
        return None
    return found


def _only_names(mention: ColumnLink, links: Links) -> bool:
    """Whether the column stands there to say of which column a value is: "in the category Engineering"."""
    return any(value.column in mention.columns and -4 <= mention.first - value.last <= 3 for value in links.values)


def _excuse_measure(links: Links) -> None:
    """In "how many glasses of wine", "hoeveel glazen wijn", the wine is what is asked for."""
    tokens = links.tokens
    for at, token in enumerate(tokens[1:], start=1):
        asks = (token.norm == "many" and tokens[at - 1].norm == "how") or token.norm == "hoeveel"
        if not asks or at + 2 >= len(tokens) or tokens[at + 1].norm in UNITS or not links.is_free(at + 1):
            continue
        after = at + 3 if tokens[at + 2].norm == "of" else at + 2
        if any(mention.first == after for mention in links.columns):
            links.explained.add(at + 1)


def _excuse_degree(links: Links) -> None:
    """In "how long is the card valid", how long it is valid is asked, not how long it is."""
    for at, token in enumerate(links.tokens[1:], start=1):
        asks = links.tokens[at - 1].norm in ("how", "hoe") and token.norm in ADJECTIVES
        if asks and any(at not in mention.tokens and mention.quality > BY_CONCEPT for mention in links.columns):
            links.explained.add(at)


# Words of operations -------------------------------------------------------------------------------------------------


def _find_extreme(links: Links, table: KnownTable) -> FoundExtreme | None:
    tokens = links.tokens
    for at, token in enumerate(tokens):
        extreme = EXTREMES.get(token.norm)
        if extreme is None or any(
            at in mention.tokens and _is_named(mention, at, links, table) for mention in links.columns
        ):
            continue
        following = tokens[at + 1].norm if at + 1 < len(tokens) else ""
        if following in ("than", "dan") and not _names_two(links):
            continue  # "more than 10" is a condition
        concept = extreme.concept
        if not concept and following in ADJECTIVES:
            concept = ADJECTIVES[following]
            links.explained.add(at + 1)
        links.explained.add(at)
        reversed_on = next(
            (other.reversed_on for other in EXTREMES.values() if other.concept == concept and concept), frozenset()
        )
        beside = any(mention.tokens[-1] == at - 1 or mention.tokens[-1] == at - 2 for mention in links.columns)
        if not extreme.concept and beside and at + 1 < len(tokens):
            links.explained.add(at + 1)  # what is counted: "lost the fewest games"
        columns = tuple(columns_of_concept(concept, table)) if concept else ()
        columns = tuple(column for column in columns if table.columns[column].kind in ("number", "date"))
        comparative = token.norm.endswith(("er", "more", "less")) or token.norm in ("meer", "minder")
        return FoundExtreme(at, replace(extreme, concept=concept, reversed_on=reversed_on), columns, comparative)
    return None


def _is_named(mention: ColumnLink, at: int, links: Links, table: KnownTable) -> bool:
    """Whether the word is part of a column's name: "maximum pressure" of ``max_pressure_bar``."""
    return len(mention.tokens) > 1 and mention.quality > BY_CONCEPT


def _names_two(links: Links) -> bool:
    return len({value.texts for value in links.values}) >= 2


def _find_phrase(links: Links, phrases: Sequence[Sequence[str]]) -> bool:
    norms = [token.norm for token in links.tokens]
    return any(
        norms[at : at + len(phrase)] == list(phrase) for phrase in phrases for at in range(len(norms) - len(phrase) + 1)
    )


def _find_aggregate(links: Links) -> Operation | None:
    asks_for_meaning = False
    for at, token in enumerate(links.tokens):
        # "What does RRF mean?" asks for no average.
        asks_for_meaning = asks_for_meaning or token.norm in ("do", "does", "did", "you", "we", "they", "i")
        if token.norm == "mean" and asks_for_meaning:
            continue
        operation = Operation.SUM if token.norm in SUM_WORDS else Operation.MEAN if token.norm in MEAN_WORDS else None
        if operation and not any(at in mention.tokens for mention in links.columns):
            links.explained.add(at)
            return operation
    return None
