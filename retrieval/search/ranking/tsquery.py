"""tsquery in PostgreSQL's own notation, whose lexemes are not analysed again."""

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


def quote(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def any_of(notations: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(f"( {notation} )" for notation in notations if notation))


def all_of(notations: Iterable[str]) -> str:
    return " & ".join(dict.fromkeys(f"( {notation} )" for notation in notations if notation))


def within_one_field(phrase: str) -> str:
    """Return ``phrase``, a tsquery of consecutive lexemes, limited to one field.

    A title's end and a heading's beginning are no phrase.
    """
    if "<" not in _QUOTED_LEXEME.sub("", phrase):
        return phrase
    return any_of(
        _QUOTED_LEXEME.sub(lambda lexeme, label=label: f"{lexeme.group()}:{label}", phrase)  # type: ignore[misc]
        for label in FIELD_LABELS
    )
