from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from markdown_it.token import Token

from chat.models import Answer
from chat.pages.answer_markdown import MARKDOWN, map_linkable_addresses
from chat.pages.answer_text import render_whole_text
from chat.pages.cards import build_result_cards
from chat.pages.turns import build_turn
from chat.streaming import payloads

# Slack allows 3000 characters for a section, and 50 blocks for a message.
SECTION_CHARACTERS = 2900
MOST_SECTIONS = 12
_MARKS = {"strong": "*", "em": "_", "s": "~"}
_FENCE = "```"

Block = dict[str, Any]


def escape_for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def write_link(address: str, label: str) -> str:
    return (
        f"<{escape_for_slack(address).replace('|', '%7C')}|{escape_for_slack(label)}>"
        if address
        else escape_for_slack(label)
    )


def convert_to_mrkdwn(text: str, cited: Mapping[int, str], addresses: Collection[str] = ()) -> str:
    """Convert Markdown to Slack's format.

    ``cited`` maps the numbers of markers, such as ``[1]``, to the addresses to which they are linked. Apart from the
    markers, only ``addresses`` in the text become links.
    """
    env = {
        "markers": set(cited),
        "link": lambda marker, _at: write_link(cited[marker], f"[{marker}]"),
        "addresses": map_linkable_addresses(addresses),
    }
    return _Writer().write(MARKDOWN.parse(text, env))


@dataclass(slots=True)
class _Writer:
    """The state of a conversion to Slack's format.

    ``lists`` has each open list's next number, or None for bullets. ``rows`` are the rows of a table.
    """

    lists: list[int | None] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def write(self, tokens: Sequence[Token]) -> str:
        open_quotes: list[list[str]] = [[]]
        for token in tokens:
            if token.type == "blockquote_open":
                open_quotes.append([])
            elif token.type == "blockquote_close":
                quoted = "".join(open_quotes.pop()).strip("\n").split("\n")
                open_quotes[-1].append("\n".join(f"> {line}".rstrip() for line in quoted) + "\n\n")
            else:
                open_quotes[-1].append(self._write_block(token))
        return re.sub(r"\n{3,}", "\n\n", "".join(open_quotes[0])).strip("\n")

    def _write_block(self, token: Token) -> str:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self.lists.append(int(token.attrs.get("start", 1)) if token.type[0] == "o" else None)
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                return "" if self.lists else "\n"
            case "list_item_open":
                return "    " * (len(self.lists) - 1) + self._number_item()
            case "paragraph_close":
                return "\n" if token.hidden or self.lists else "\n\n"
            case "heading_open":
                return "*"
            case "heading_close":
                return "*\n"
            case "fence" | "code_block":
                return f"{_FENCE}\n{_write_code(token.content)}{_FENCE}\n\n"
            case "hr":
                return "———\n\n"
            case "tr_open":
                self.rows.append([])
            case "table_close":
                lines, self.rows = [" | ".join(row) for row in self.rows], []
                return f"{_FENCE}\n{_write_code(chr(10).join(lines))}\n{_FENCE}\n\n"
            case "inline" if self.rows:
                self.rows[-1].append(token.content)
            case "inline":
                return "".join(_write_inline(token.children or []))
        return ""

    def _number_item(self) -> str:
        number = self.lists[-1]
        if number is None:
            return "• "
        self.lists[-1] = number + 1
        return f"{number}. "


def _write_inline(children: Sequence[Token]) -> Iterator[str]:
    for child in children:
        match child.type:
            case "text" | "cited_label":
                yield escape_for_slack(child.content) + (": " if child.type == "cited_label" else "")
            case "softbreak" | "hardbreak":
                yield "\n"
            case "code_inline":
                yield (
                    f"`{escape_for_slack(child.content)}`"
                    if "`" not in child.content
                    else escape_for_slack(child.content)
                )
            case "citation":
                yield f"{child.meta['blanks']}{child.meta['html']}"
            case "link_open":
                yield f"<{escape_for_slack(str(child.attrs['href'])).replace('|', '%7C')}|"
            case "link_close":
                yield ">"
            case name:
                yield _MARKS.get(name.rpartition("_")[0], "")


def _write_code(text: str) -> str:
    # A space of zero width keeps the text from closing the code block.
    return escape_for_slack(text).replace(_FENCE, "`\u200b``")


def split_sections(text: str) -> list[str]:
    """Split a text into parts that fit into a section of a message. A cut code block is closed and opened again."""
    parts, part, is_code = [], "", False
    for line in text.split("\n"):
        for piece in _split_long_line(line):
            if part and len(part) + len(piece) > SECTION_CHARACTERS - 2 * len(_FENCE):
                parts.append(f"{part}{_FENCE}" if is_code else part)
                part = f"{_FENCE}\n" if is_code else ""
            part += f"{piece}\n"
        is_code ^= line == _FENCE
    parts.append(part)
    return [part.strip("\n") for part in parts if part.strip()]


def _split_long_line(line: str) -> Iterator[str]:
    most = SECTION_CHARACTERS - 100
    while len(line) > most:
        at = line.rfind(" ", 0, most)
        at = at if at > 0 else most
        link = line.rfind("<", 0, at)
        at = link if link > max(0, line.rfind(">", 0, at)) else at
        yield line[:at]
        line = line[at:]
    yield line


def _build_section(text: str) -> Block:
    # With `verbatim`, Slack does not turn words into mentions and links.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _build_context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": escape_for_slack(text), "verbatim": True}]}


def build_message(answer: Answer, note: str) -> list[Block]:
    """Return the blocks of a finished answer: its text, its sources, ``note``, and buttons to rate it."""
    turn = build_turn(answer)
    told = payloads.build_completed_payload(answer, answer.citations.all())
    cited = {each.marker: f"{settings.SITE_URL}{each.href}" if each.href else "" for each in turn.citations}
    sections = split_sections(convert_to_mrkdwn(render_whole_text(told), cited, turn.linkable_addresses))
    if len(sections) > MOST_SECTIONS:
        sections = [*sections[:MOST_SECTIONS], "…"]
    named = {each.marker: (f"[{each.marker}] ", each.title, each.where, each.href) for each in turn.citations}
    others = [("• ", each.title, each.where, each.href) for each in build_result_cards(told["alternatives"])]
    sources = [
        f"{sign}{write_link(f'{settings.SITE_URL}{href}' if href else '', ' · '.join(filter(None, (title, where))))}"
        for sign, title, where, href in dict.fromkeys([*(named[marker] for marker in sorted(named)), *others])
    ]
    if sources:
        heading = _("Sources")
        sections += split_sections("\n".join([f"*{heading}*", *sources]))
    context = [_build_context(line) for line in (answer.notice, note) if line]
    return [*map(_build_section, sections), *context, _build_feedback_buttons(answer)]


def _build_feedback_buttons(answer: Answer) -> Block:
    buttons = [
        {
            "type": "button",
            "action_id": action,
            "value": str(answer.pk),
            "text": {"type": "plain_text", "text": label},
        }
        for action, label in (("helpful", _("Helpful")), ("not_helpful", _("Not helpful")))
    ]
    return {"type": "actions", "elements": buttons}
