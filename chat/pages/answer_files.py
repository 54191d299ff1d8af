from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.formats import date_format
from django.utils.text import slugify
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from chat.pages.answer_text import list_answer_parts
from chat.pages.doubts import place_doubt_remarks
from chat.pages.printed_answers import Footnote, PrintedAnswer

_NAME_CHARACTERS = 60
_SIGN = re.compile(r"([\\`*_\[\]<>#])")


def build_file_name(heading: str) -> str:
    return f"{slugify(heading)[:_NAME_CHARACTERS].strip('-') or 'answer'}.md"


def write_markdown(printed: Iterable[PrintedAnswer], site: str, withheld: str) -> str:
    """Return the answers as a Markdown file, with ``withheld`` as the text of answers the reader may not read."""
    listed = list(printed)
    parts = []
    for number, each in enumerate(listed, start=1):
        label_prefix = f"{number}-" if len(listed) > 1 else ""
        parts.append(_write_answer(each, site, withheld, label_prefix))
    return "\n\n---\n\n".join(parts) + "\n"


def _write_answer(printed: PrintedAnswer, site: str, withheld: str, label_prefix: str) -> str:
    turn, answer = printed.turn, printed.turn.answer
    question = _SIGN.sub(r"\\\1", " ".join(answer.question.split()))
    parts = [f"# {question}"]
    if turn.is_withheld:
        return "\n\n".join([*parts, withheld])
    if not answer.is_finished:
        return "\n\n".join([*parts, _("The answer is still being written.")])
    if turn.is_failed:
        return "\n\n".join([*parts, answer.error or _("There is no answer to this question yet.")])
    parts.append("  \n".join(_list_answer_provenance(printed, site)))
    if turn.doubt_summary:
        parts.append(f"*{turn.doubt_summary}*")
    text = _insert_footnote_markers(printed, label_prefix)
    shown = list_answer_parts(text, answer.table, answer.alternatives, is_refused=answer.refused)
    parts.append("\n\n".join(shown).strip())
    if turn.is_stopped:
        parts.append(
            _("This answer was stopped before its end. Its sentences have not been checked against the sources.")
        )
    parts += [_write_footnote(note, label_prefix) for note in printed.footnotes]
    return "\n\n".join(parts)


def _list_answer_provenance(printed: PrintedAnswer, site: str) -> list[str]:
    turn, answer = printed.turn, printed.turn.answer
    facts = [_("Searched: %s") % _SIGN.sub(r"\\\1", printed.scope), _("Site: %s") % site]
    if answer.completed_at is not None:
        day = date_format(localtime(answer.completed_at), "DATETIME_FORMAT")
        facts.insert(0, _("Answered: %s") % day)
    return [*facts, turn.approved] if turn.approved else facts


def _insert_footnote_markers(printed: PrintedAnswer, label_prefix: str) -> str:
    turn, text = printed.turn, printed.turn.answer.text
    if turn.is_stopped:
        return text
    edits = [
        (cited.marker_start, cited.marker_end, f"[^{label_prefix}{cited.marker}]")
        for cited in turn.answer.citations.all()
    ]
    edits += [(at, at, remark) for at, remark in place_doubt_remarks(text, turn.doubts)]
    pieces, position = [], 0
    for start, end, replacement in sorted(edits):
        if start >= position:
            pieces += [text[position:start].rstrip(" "), replacement]
            position = end
    return "".join([*pieces, text[position:]])


def _write_footnote(note: Footnote, label_prefix: str) -> str:
    title = _SIGN.sub(r"\\\1", ", ".join(filter(None, [note.title, note.where])))
    lines = [f"[^{label_prefix}{note.number}]: {title}. {note.version}".rstrip(". ") + "."]
    lines += [f"<{address}>" for address in (note.url, note.address) if address]
    paragraphs = ["  \n    ".join(lines)]
    for quote in note.quotes:
        paragraphs.append("\n".join(f"    > {line}".rstrip() for line in quote.splitlines()))
    return "\n\n".join(paragraphs)
