from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.pages.cards import build_result_cards
from chat.pages.plain_text import convert_to_plain_text, is_table_row
from chat.payload_types import AlternativePassagePayload, CompletedEventPayload, TablePayload
from retrieval.text.markup import strip_markup


def render_whole_text(answer: CompletedEventPayload) -> str:
    """Return the answer with its table, other passages, suggestions and approver as one text.

    The answer's own text comes first, so markers keep their offsets.
    """
    parts = list_answer_parts(
        answer["answer"], answer.get("table"), answer["alternatives"], is_refused=answer["refused"]
    )
    if choices := answer["choices"]:
        parts.append("\n".join([_("Did you mean:"), *(f"- {choice['question']}" for choice in choices)]))
    if approved := answer.get("approved"):
        parts.append(describe_approval(approved["by"], date.fromisoformat(approved["on"])))
    return "\n\n".join(parts)


def list_answer_parts(
    text: str, table: TablePayload | None, alternatives: Iterable[AlternativePassagePayload], *, is_refused: bool
) -> list[str]:
    parts = [text]
    if table and not has_table_rows(text):
        parts.append(_render_table(table))
    others = build_result_cards(alternatives)
    if others and not is_refused:
        parts.append(_("Also in the documents:"))
    for other in others:
        quote = "\n".join(f"> {line}".rstrip() for line in _render_quote(other.quote).splitlines())
        parts.append(f"{' · '.join(filter(None, [other.title, other.where]))}\n\n{quote}")
    return parts


# The line below a table's head. The site writes "|---|"; documents also contain "| :--- |".
_UNDER_HEAD = re.compile(r"\n\| ?:?-+:? ?\|")


def has_table_rows(text: str) -> bool:
    return _UNDER_HEAD.search(text) is not None


def _render_table(table: TablePayload) -> str:
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    written = [" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines]
    rows = "\n".join(f"| {line} |" for line in written)
    return f"{table['caption']}: {table['summary']}\n\n{rows}"


def _render_quote(quote: str) -> str:
    return convert_to_plain_text(quote) if is_table_row(quote.strip()) else strip_markup(quote)


def describe_approval(by: str, on: date) -> str:
    return _("Approved by %(name)s on %(date)s") % {"name": by, "date": date_format(on)}
