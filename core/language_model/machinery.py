"""Remove thoughts, function calls and control tokens, which have markers such as <think>, from a model's text.

A thought is the text that a model thinks before its answer. To support another family of models, add a row to
:data:`THOUGHTS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

# Each entry of THOUGHTS has the names of models, patterns for the marker before and the marker after a thought, and
# whether a reply may have the closing marker without the opening one.
# Some names have a prefix, such as <seed:think> and <longcat_think>, or an end, such as <thought_process>.
_NAMES = (
    r"(?:\w{1,20}[:_])?think|(?:thinking|thoughts?|reasoning)(?:_(?:process|content|steps?))?|reason|reflection"
    r"|scratchpad|inner_monologue|internal_reasoning|antThinking"
)
THOUGHTS: tuple[tuple[str, str, str, bool], ...] = (
    (
        "DeepSeek, Qwen, GLM, Hunyuan, Phi, Seed",
        rf"<(?:{_NAMES})(?:\s[^<>]{{0,200}})?>",
        rf"</(?:{_NAMES})\s{{0,4}}>",
        True,
    ),
    ("Magistral", r"\[THINK\]", r"\[/THINK\]", True),
    ("Kimi", r"◁think▷", r"◁/think▷", True),
    ("Command A", r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", True),
    ("OpenThinker, Sky-T1", r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>", True),
    ("MiniCPM", r"<\|thought_start\|>", r"<\|thought_end\|>", True),
    ("Solar", r"<\|think\|>", r"<\|end\|>\s{0,4}<\|begin\|>assistant<\|content\|>", True),
    ("Apertus", r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", True),
    ("MedGemma", r"<unused94>", r"<unused95>", True),
    ("Gemma 4", r"<\|channel>thought", r"<channel\|>", True),
    (
        "gpt-oss",
        r"<\|channel\|>(?!\s*final)[^<]{0,100}<\|message\|>",
        r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>\s*final[^<]{0,100}<\|message\|>",
        True,
    ),
    ("gpt-oss without its special tokens", r"\Aanalysis(?=[^\W\d_])", r"assistant\s?final", False),
    ("Granite", r"\AHere(?: is|'s) my thought process:", r"Here(?: is|'s) my response:", False),
    ("Open WebUI", r"<details\s[^<>]{0,200}?type=[\"']?reasoning[^<>]{0,200}>", r"</details>", False),
)
# A reply that begins like this may be a thought without an opening marker, so its text is held back.
_BEGINS_AS_THOUGHT = re.compile(
    r"\W*(?:ok(?:ay)?|alright|all right|hm+|well|wait|let me|let's|let us|i need|i should|i must|i have to|i'll|i will"
    r"|first,? (?:i|let|we)|we (?:need|have|are|must|should|can)|the user|user|the question|so,?|now,?|to answer"
    r"|looking|thinking|got it|oké|de gebruiker|laten we|好的|嗯|首先|用户)(?!\w)",
    re.IGNORECASE,
)
_LONGEST_BEGINNING = 16
# The tags may have a prefix, such as <minimax:tool_call> and <｜DSML｜function_calls>.
_CALL_NAMES = r"(?:\w{1,20}:|｜\w{1,20}｜)?(?:tool_calls?|function_calls?|tool_response|tools)"
_CALL_OPENING = (
    rf"<(?:{_CALL_NAMES}|function=[^>\n]{{1,80}})>"
    r"|<\|tool_calls?(?:_section)?_(?:start|begin)\|>|<｜tool▁calls?▁begin｜>"
)
_CALL_CLOSING = rf"</(?:{_CALL_NAMES}|function)>|<\|tool_calls?(?:_section)?_end\|>|<｜tool▁calls?▁end｜>"
# Models may continue after the end of their turn with an invented conversation, which is removed.
_END = (
    r"<\|(?:im_start|im_end|endoftext|end_of_text|end_of_turn|eot_id|eom_id|start_header_id|end|return|call|user)\|>"
    r"|<(?:end|start)_of_turn>|<end_of_utterance>|<\|?turn\|?>|<eos>|</s>"
)
# A model may write the beginning of its turn, which the template of its server should have written.
_BEGIN = (
    r"(?:<\|(?:im_start|begin|start_header_id)\|>|<start_of_turn>|<\|turn>)(?:assistant|model)\b"
    r"(?:<\|end_header_id\|>)?"
)
_ANSWERS = ("answer", "response", "final", "final_answer")
_SIGN = (
    r"<\|start\|>(?:assistant|user|system)?|<\|\w{1,30}\|>|<｜[^<>｜]{1,40}｜>|\[/?INST\]"
    r"|\[(?:TOOL_CALLS|AVAILABLE_TOOLS|cite_start)\]|<</?SYS>>|<s>|<pad>"
    rf"|</?(?:{'|'.join(_ANSWERS)})>|{_CALL_CLOSING}"
)
_OPENINGS = [opening for _, opening, _, _ in THOUGHTS] + [_CALL_OPENING]
_CLOSINGS = [re.compile(closing, re.IGNORECASE) for _, _, closing, _ in THOUGHTS]
_CLOSINGS.append(re.compile(_CALL_CLOSING, re.IGNORECASE))
_ALONE = "|".join(closing for _, _, closing, is_alone in THOUGHTS if is_alone)
_CLOSES_ALONE = re.compile(f"{_ALONE}|assistant\\s?final(?=\\S)", re.IGNORECASE)
# The group `alone` precedes the group `end`, which would match the beginning <|end|> of a closing marker of gpt-oss.
_TAG = re.compile(
    "|".join(f"(?P<opening{number}>{opening})" for number, opening in enumerate(_OPENINGS))
    + f"|(?P<alone>{_ALONE})|{_BEGIN}|(?P<end>{_END})(?!<\\|start\\|>assistant)|{_SIGN}",
    re.IGNORECASE,
)
_CLOSING_LINE = re.compile(rf"[ \t]*(?P<alone>{_ALONE})", re.IGNORECASE)
_OPENING_SIGNS = [re.compile(opening, re.IGNORECASE) for opening in _OPENINGS]
# These opening markers are ordinary words elsewhere in a reply.
_AT_BEGINNING = {f"opening{number}" for number, opening in enumerate(_OPENINGS) if opening.startswith(r"\A")}
_MAY_BE_TAG = re.compile(
    r"`?(?:<\|end\|>(?:<\|start\|>\w{0,9}(?:<\|channel\|>[^<]{0,100})?)?(?:<[^<>]{0,12})?"
    r"|<\|end\|>\s{0,4}(?:<\|begin\|>\w{0,9}(?:<[^<>]{0,12})?)?"
    r"|<\|channel\|>[^<]{0,100}(?:<[^<>]{0,12})?|<\|channel>\w{0,8}|<\|start\|>\w{0,9}|<details[^<>]{0,400}"
    rf"|</?(?:{_NAMES})\s[^<>]{{0,200}}"
    r"|<(?:\|(?:im_start|begin|start_header_id)\||start_of_turn|\|turn)>\w{0,9}(?:<[^<>]{0,16})?"
    r"|<[^\s<>]{0,90}|<<[^\s<>]{0,8}|\[/?[A-Z_]{0,16}|◁[^▷]{0,8})\Z|`\Z",
    re.IGNORECASE,
)
_MAY_BEGIN_THOUGHT = re.compile(r"\A(?:a(?:n(?:a(?:l(?:y(?:s(?:i(?:s)?)?)?)?)?)?)?|Here[\w' ]{0,24})\Z", re.IGNORECASE)
_LONGEST_CLOSING = 200

LONGEST_CALL = 4_000
_COPIED = re.compile(r"SOURCE \[\d+\][^\n]*\n(?=>)")
_MAY_BE_COPIED = re.compile(r"S(?:O(?:U(?:R(?:C(?:E(?: (?:\[(?:\d+(?:\][^\n]*\n?)?)?)?)?)?)?)?)?)?\Z")
_FENCE = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[^\n]*+\n\s*+")
_CLOSING_FENCE = re.compile(r"\s*(?:(`{3,}|~{3,})[^\n]*(?:\n|\Z))?")
_MAY_BE_FENCE = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3}|~{3})[^\n]*|(?:`{3}|~{3})[^\n]*\n\s*)\Z")
_FIRST_KEY = re.compile(r"[\[{\s]*\"(\w*)\"?")
_KEYS_OF_CALLS = frozenset(
    {"name", "function", "tool", "tool_name", "tool_calls", "function_call", "arguments", "parameters", "type", "id"}
)


def begins_like_model_reasoning(text: str) -> bool:
    """Return whether the text begins with words that often begin a model's reasoning, such as "Okay" or "The user".

    Some answers begin with these words too.
    """
    return bool(_BEGINS_AS_THOUGHT.match(text))


def remove_thoughts(text: str) -> str:
    stream = ReplyCleaner(removes_calls=False, opens_with_thought=True)
    return (stream.feed(text) + stream.close()).strip()


class ReplyCleaner:
    """Removes thoughts, function calls and control tokens from a language model's streamed reply.

    - ``may_show`` returns whether the sources contain a text; such a text is not removed.
    - ``opens_with_thought``: the reply begins with a thought that has no opening marker.
    - ``withheld`` is true if some text was removed.
    - ``closes_alone`` is true if a closing marker had no opening marker.
    - ``takes_back`` is true if the text returned so far is a thought. The caller must remove it and reset
      ``takes_back``.
    """

    def __init__(
        self,
        may_show: Callable[[str], bool] = lambda _text: False,
        *,
        removes_calls: bool = True,
        opens_with_thought: bool = False,
    ) -> None:
        self._may_show = may_show
        self._removes_calls = removes_calls
        self._opens_with_thought = opens_with_thought
        # The text at the beginning of the reply, until it is clear whether this text is a thought; then None.
        self._beginning: str | None = ""
        self._held = ""
        self._has_shown = False
        self._begins_line = True
        self._fence = ""
        self._closing: re.Pattern[str] | None = None
        self._has_ended = False
        # The </s> after HTML's <s> does not end the model's turn.
        self._is_struck = False
        self._drops_shown = False
        self.withheld = self.closes_alone = self.takes_back = False

    def feed(self, piece: str) -> str:
        if self._beginning is None:
            self._held += piece
            return self._take_showable_text(is_end=False)
        searched = max(0, len(self._beginning) - _LONGEST_CLOSING)
        self._beginning += piece
        is_thought = self._opens_with_thought or begins_like_model_reasoning(self._beginning)
        closing = _CLOSES_ALONE.search(self._beginning, searched) if is_thought else None
        if closing and _is_in_backticks(closing):
            closing = None
        if closing and not any(opening.search(self._beginning, 0, closing.start()) for opening in _OPENING_SIGNS):
            self.withheld = self.closes_alone = True
            self._beginning = self._beginning[closing.end() :].lstrip()
        elif not closing and (is_thought or len(self._beginning.lstrip()) < _LONGEST_BEGINNING):
            return ""
        return self._take_checked_beginning(is_end=False)

    def close(self, *, is_cut: bool = False) -> str:
        """Return the text held back so far, without a thought or function call that has no closing marker.

        ``is_cut``: the reply ended early.
        """
        if self._beginning is None:
            return self._take_showable_text(is_end=True)
        if is_cut and (self._opens_with_thought or begins_like_model_reasoning(self._beginning)):
            self.withheld, self._beginning = True, ""
        return self._take_checked_beginning(is_end=True)

    def _take_checked_beginning(self, *, is_end: bool) -> str:
        self._held, self._beginning = self._beginning or "", None
        return self._take_showable_text(is_end=is_end)

    def _take_showable_text(self, *, is_end: bool) -> str:
        shown = ""
        while self._held and not self._has_ended:
            if self._closing is not None:
                closing = self._closing.search(self._held)
                self._held = self._held[closing.end() :] if closing else self._held[-_LONGEST_CLOSING:]
                if closing is None:
                    break
                self._closing = None
                if not self._has_shown and not shown:
                    self._held = self._held.lstrip()
            elif self._begins_line and (taken := self._measure_call_in_line(is_end)) != 0:
                if taken is None:
                    break
                self.withheld = True
                self._held = self._held[taken:]
            else:
                passed = self._show_line(is_end)
                if passed is None:
                    break
                shown = "" if self._drops_shown else shown + passed
                self._drops_shown = False
        self._has_shown = self._has_shown or bool(shown)
        return shown

    def _show_line(self, is_end: bool) -> str | None:
        """Return the text up to the end of the line or the next marker; None if more text is needed."""
        if not self._has_shown and not is_end and _MAY_BEGIN_THOUGHT.match(self._held):
            return None
        line_end = self._held.find("\n") + 1 or len(self._held)
        tag = _CLOSING_LINE.match(self._held) if self._fence else _TAG.search(self._held, 0, line_end)
        maybe = None if is_end else _MAY_BE_TAG.search(self._held)
        if maybe and (maybe.start() > line_end or (self._fence and self._held[: maybe.start()].strip())):
            maybe = None
        if tag is not None and maybe is not None and maybe.start() <= tag.start():
            tag = None
        elif (
            tag is not None and tag.end() == len(self._held) and not is_end and self._held[: tag.start()].endswith("`")
        ):
            line_end = tag.start() - 1
            tag = None
        elif tag is not None and self._is_text(tag):
            line_end = tag.end()
            tag = None
        upto = tag.start() if tag else maybe.start() if maybe else line_end
        text, rest = self._held[:upto], self._held[upto:]
        if text:
            self._begins_line = text.endswith("\n")
        if tag is not None:
            self.withheld = True
            kind = tag.lastgroup or ""
            if kind == "alone":
                self.closes_alone = self._drops_shown = True
                self.takes_back = self.takes_back or self._has_shown
                self._has_shown, self._fence = False, ""
            elif kind.startswith("opening"):
                self._closing = _CLOSINGS[int(kind.removeprefix("opening"))]
            self._has_ended = kind == "end"
            rest = rest[len(tag.group()) :]
            rest = rest.lstrip() if kind == "alone" else rest
        self._held = rest
        return text if text or tag else None

    def _is_text(self, tag: re.Match[str]) -> bool:
        sign = tag.group().lower()
        if sign in ("<s>", "</s>"):
            is_html = self._is_struck or (
                sign == "<s>" and (self._has_shown or bool(tag.string[: tag.start()].strip()))
            )
            self._is_struck = is_html and sign == "<s>"
            return is_html
        begins_reply = not self._has_shown and tag.start() == 0
        if tag.lastgroup in _AT_BEGINNING:
            return not begins_reply
        if sign.strip("</>") in _ANSWERS:
            is_around = begins_reply and sign[1] != "/" and not self._may_show(tag.group())
            return not (self.withheld or is_around)
        return _is_in_backticks(tag) or (not begins_reply and self._may_show(tag.group()))

    def _measure_call_in_line(self, is_end: bool) -> int | None:
        """Return the length of a function call at the start of the line; 0: none, None: more text is needed."""
        text = self._held
        if not self._removes_calls:
            return 0
        if copied := _COPIED.match(text):
            return copied.end()
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
        found = self._find_function_call_end(text, begin, is_end) if text[begin : begin + 1] in ("{", "[") else 0
        if found == 0 and fence:
            self._fence = fence[1]
        if not found or not fence:
            return found
        closing = _CLOSING_FENCE.match(text, found)
        return closing.end() if closing and (is_end or (closing.group().endswith("\n") and closing[1])) else None

    def _find_function_call_end(self, text: str, begin: int, is_end: bool) -> int | None:
        """Return the end of a JSON function call that starts at ``begin``; 0: none, None: more text is needed."""
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
        is_call = read is None or _is_function_call(read)
        return end if is_call and not self._may_show(text[begin:end]) else 0


def _is_in_backticks(match: re.Match[str]) -> bool:
    text, start, end = match.string, match.start(), match.end()
    return text[max(0, start - 1) : start] == text[end : end + 1] == "`"


def _is_function_call(parsed: object) -> bool:
    if isinstance(parsed, list):
        return bool(parsed) and all(map(_is_function_call, parsed))
    if not isinstance(parsed, dict):
        return False
    if any(key in parsed for key in ("tool_calls", "function_call")):
        return True
    inner = parsed.get("function")
    if isinstance(inner, dict):
        return _is_function_call(inner)
    has_name = any(isinstance(parsed.get(key), str) for key in ("name", "function", "tool", "tool_name", "action"))
    return has_name and any(key in parsed for key in ("arguments", "parameters", "args", "input", "action_input"))
