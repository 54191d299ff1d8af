"""Write tsqueries in PostgreSQL's notation from analysed lexemes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.db.models import BooleanField, F, Func, Value

_QUOTED_LEXEME = re.compile(r"'(?:[^'\\]|''|\\\\)*'")
FIELD_LABELS = "ABCD"


class MatchesTsQuery(Func):
    template = "%(expressions)s::tsquery"
    arg_joiner = " @@ "
    output_field = BooleanField()

    def __init__(self, search_vector: str, notation: str) -> None:
        super().__init__(F(search_vector), Value(notation))


def quote_lexeme(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def join_with_or(notations: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(f"( {notation} )" for notation in notations if notation))


def join_with_and(notations: Iterable[str]) -> str:
    return " & ".join(dict.fromkeys(f"( {notation} )" for notation in notations if notation))


def limit_to_one_field(phrase: str) -> str:
    """Return a tsquery that finds the phrase if one field, such as the title or the content, contains all of it."""
    if "<" not in _QUOTED_LEXEME.sub("", phrase):
        return phrase
    return join_with_or(
        _QUOTED_LEXEME.sub(lambda lexeme, label=label: f"{lexeme.group()}:{label}", phrase)  # type: ignore[misc]
        for label in FIELD_LABELS
    )
