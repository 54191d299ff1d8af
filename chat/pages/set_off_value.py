"""The value that answers a question, in a first line of its own in bold, set off from the rest of the answer. Pure."""

from __future__ import annotations

from itertools import takewhile

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore


def set_off_value(markdown: MarkdownIt) -> None:
    """A markdown-it plugin: a first line that is bold as a whole, but for its markers, gets the class ``set-off``.

    ``env["is_beginning"]`` says that the text is the answer's beginning.
    """
    markdown.core.ruler.push("set_off_value", _set_off)


def _set_off(state: StateCore) -> None:
    is_paragraph = len(state.tokens) > 1 and state.tokens[0].type == "paragraph_open"
    if not is_paragraph or not state.env.get("is_beginning"):
        return
    children = state.tokens[1].children or []
    line = list(takewhile(lambda child: child.type not in ("softbreak", "hardbreak"), children))
    visible = [child for child in line if child.type != "text" or child.content.strip()]
    closing = next((at for at, child in enumerate(visible) if child.type == "strong_close"), None)
    if closing is None or visible[0].type != "strong_open":
        return
    if all(child.type == "citation" for child in visible[closing + 1 :]):
        visible[0].attrSet("class", "set-off")
        for line_end in children[len(line) : len(line) + 1]:
            line_end.type, line_end.tag = "hardbreak", "br"
