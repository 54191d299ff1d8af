"""Removes what is not an answer from a model's text: function calls, reasoning, marks of its template and of the
prompt. PURE.

Models write calls into their text in many forms: JSON, bare or between fences, complete or partial, or between tags of
their own. If the sources contain such text it may be shown, because documents can be about such things.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

# A longer object is not held back any longer.
LONGEST_CALL = 4_000
_HIDDEN = "think|thinking|reasoning|thought|tool_call|tool_calls|function_call|tool_response|tools"
_TAG = re.compile(
    rf"(?P<hidden><(?:{_HIDDEN}|function=[^>\n]{{1,80}})>)"
    # After the end of its turn a model goes on with a conversation that it makes up.
    r"|(?P<end><\|(?:im_start|im_end|endoftext|end_of_text|eot_id|end)\|>|<(?:end|start)_of_turn>|</s>)"
    rf"|<\|\w{{1,30}}\|>|</(?:{_HIDDEN}|function)>|\[/?INST\]|\[(?:TOOL_CALLS|AVAILABLE_TOOLS)\]|<</?SYS>>|<s>",
    re.IGNORECASE,
)
_CLOSING = re.compile(rf"</(?:{_HIDDEN}|function)>", re.IGNORECASE)
# What one of these may begin with, at the end of the text so far.
_MAY_BE_TAG = re.compile(r"(?:<[^\s<>]{0,90}|<<[^\s<>]{0,8}|\[/?[A-Z_]{0,16})\Z", re.IGNORECASE)
# The sign of a quoted line, and the line above a source, as the prompt has them.
_COPIED = re.compile(r"(?:>[ \t]?)+|SOURCE \[\d+\][^\n]*\n?")
_MAY_BE_COPIED = re.compile(r"S(?:O(?:U(?:R(?:C(?:E(?: (?:\[\d*)?)?)?)?)?)?)?\Z")
_FENCE = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[^\n]*+\n\s*+")
_CLOSING_FENCE = re.compile(r"\s*(?:(`{3,}|~{3,})[^\n]*(?:\n|\Z))?")
_MAY_BE_FENCE = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3}|~{3})[^\n]*|(?:`{3}|~{3})[^\n]*\n\s*)\Z")
_FIRST_KEY = re.compile(r"[\[{\s]*\"(\w*)\"?")
_KEYS_OF_CALLS = frozenset(
    {"name", "function", "tool", "tool_name", "tool_calls", "function_call", "arguments", "parameters", "type", "id"}
)


class MachineryStream:
    """Passes streamed text on without what is not an answer. ``may_show`` returns whether the sources contain a text.
    ``withheld`` is true if anything was left out.
    """

    def __init__(self, may_show: Callable[[str], bool]) -> None:
        self._may_show = may_show
        self._held = ""
        self._begins_line = True
        self._fence = ""
        self._is_hidden = False
        self._has_ended = False
        self.withheld = False

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; may be empty."""
        self._held += piece
        return self._pass_on(is_end=False)

    def close(self) -> str:
        """The text that was held back, at the end of the stream, without unfinished reasoning or calls."""
        return self._pass_on(is_end=True)

    def _pass_on(self, *, is_end: bool) -> str:
        shown = ""
        while self._held and not self._has_ended:
            if self._is_hidden:
                closing = _CLOSING.search(self._held)
                self._is_hidden = closing is None
                self._held = self._held[closing.end() :] if closing else self._held[-90:]
                if closing is None:
                    return shown
            elif self._begins_line and (taken := self._judge_line(is_end)) != 0:
                if taken is None:
                    return shown
                self.withheld = True
                self._held = self._held[taken:]
            else:
                passed = self._show_line(is_end)
                if passed is None:
                    return shown
                shown += passed
        return shown

    def _show_line(self, is_end: bool) -> str | None:
        """The held text up to its next line or tag; None to wait for more."""
        line_end = self._held.find("\n") + 1 or len(self._held)
        tag = None if self._fence else _TAG.search(self._held, 0, line_end)
        if tag is not None and self._may_show(tag.group()):
            tag = None
        maybe = None if is_end or self._fence or tag else _MAY_BE_TAG.search(self._held, 0, line_end)
        upto = tag.start() if tag else maybe.start() if maybe else line_end
        text, self._held = self._held[:upto], self._held[upto:]
        if text:
            self._begins_line = text.endswith("\n")
        if tag is not None:
            self.withheld = True
            self._is_hidden, self._has_ended = bool(tag["hidden"]), bool(tag["end"])
            self._held = self._held[len(tag.group()) :]
        return text if text or tag else None

    def _judge_line(self, is_end: bool) -> int | None:
        """How much of the held text, which begins a line, is a call; 0 for none, None to wait for more."""
        text = self._held
        if copied := _COPIED.match(text):
            return None if copied.end() == len(text) and not is_end else copied.end()
        if _MAY_BE_COPIED.match(text) and not is_end:
            return None
        begin = len(text) - len(text.lstrip(" \t"))
        if begin == len(text):
            return 0 if is_end else None
        if self._fence:
            if text.startswith(self._fence, begin):
                self._fence = ""
            return 0 if is_end or self._fence == "" or not self._fence.startswith(text[begin:]) else None
        fence = _FENCE.match(text, begin)
        if fence is None and not is_end and _MAY_BE_FENCE.match(text, begin):
            return None
        begin = fence.end() if fence else begin
        if fence and begin == len(text) and not is_end:
            return None
        found = self._judge_object(text, begin, is_end) if text[begin : begin + 1] in ("{", "[") else 0
        if found == 0 and fence:
            self._fence = fence[1]
        if not found or not fence:
            return found
        closing = _CLOSING_FENCE.match(text, found)
        return closing.end() if closing and (is_end or (closing.group().endswith("\n") and closing[1])) else None

    def _judge_object(self, text: str, begin: int, is_end: bool) -> int | None:
        """Where a call in JSON ends; 0 for other text, None to wait for more."""
        key = _FIRST_KEY.match(text, begin)
        if key is None or (key.end() < len(text) and key[1] not in _KEYS_OF_CALLS):
            is_blank = not text[begin:].strip("[{ \t\n")
            return None if is_blank and not is_end else 0
        try:
            read, end = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            if not is_end:
                return None if len(text) - begin < LONGEST_CALL else 0
            read, end = None, len(text)
        is_call = read is None or _is_call(read)
        return end if is_call and not self._may_show(text[begin:end]) else 0


def _is_call(read: object) -> bool:
    """Whether the value names a function and its arguments, or is a list of such."""
    if isinstance(read, list):
        return bool(read) and all(map(_is_call, read))
    if not isinstance(read, dict):
        return False
    if any(key in read for key in ("tool_calls", "function_call")):
        return True
    inner = read.get("function")
    if isinstance(inner, dict):
        return _is_call(inner)
    has_name = any(isinstance(read.get(key), str) for key in ("name", "function", "tool", "tool_name", "action"))
    return has_name and any(key in read for key in ("arguments", "parameters", "args", "input", "action_input"))
