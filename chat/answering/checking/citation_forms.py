"""Find citations in the different forms in which models write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import takewhile

from chat.answering.checking.citations import find_code_spans
from retrieval.text.word_lists import fill_in, read_words

_NUMBER = fill_in(r"(?:<source>\s*)?\^?\d{1,3}", "answers")
_NUMBERS = rf"\s*+{_NUMBER}(?:\s*+[,;]\s*+{_NUMBER})*\s*+"
# AMBIGUOUS brackets may be exponents or remarks, so they count only if the source supports the sentence.
BRACKETS = (
    rf"\[{_NUMBERS}\]",  # [1] [1, 2] [source 1] [^1]
    rf"【{_NUMBERS}(?:†[^】\n]{{0,80}})?】",  # 【1】 【1†source】
    rf"［{_NUMBERS}］",  # ［1］
)
AMBIGUOUS = (
    rf"<sup>\s*+\[?{_NUMBERS}\]?\s*+</sup>",  # <sup>1</sup>
    rf"\({_NUMBERS}\)",  # (1) at the end of a sentence
)
_SURE = rf"(?:{'|'.join(BRACKETS)})"
_SEQUENCE = rf"(?:(?-i:\bSOURCES?)[ \t]++)?{_SURE}(?:[ \t]*+[,;]?[ \t]*+{_SURE})*"
_UNSURE = rf"(?:{AMBIGUOUS[0]})(?:,?(?:{AMBIGUOUS[0]}))*|{AMBIGUOUS[1]}"
_GROUP = re.compile(
    rf"(?<![ \t])(?P<blanks>[ \t]*+)(?:(?P<sure>\([ \t]*+{_SEQUENCE}[ \t]*+\)|{_SEQUENCE})|(?P<unsure>{_UNSURE}))",
    re.IGNORECASE,
)
_PARTIAL = re.compile(
    r"(?:[\[【［][\s\w^,;†:.-]{0,100}|\([\s\w,;^]{0,40}"
    r"|<(?:s(?:u(?:p(?:>[\s\d,;\[\]]{0,40}(?:<(?:/(?:s(?:u(?:p)?)?)?)?)?)?)?)?)?"
    r"|\bS(?:O(?:U(?:R(?:C(?:ES?)?)?)?)?)?[ \t]*)\Z"
)
_BRACKET = re.compile(rf"{_SURE}|{AMBIGUOUS[0]}|{AMBIGUOUS[1]}", re.IGNORECASE)
_NOT_A_NEWLINE = re.compile(r"[^\n]")
_NOTE = re.compile(r"†[^】\n]*")
_SIGNS = " \t>*+•0123456789.)#|_-"
_ENDS_SENTENCE = ".!?…。！？"
_FOLLOWS = f"{_ENDS_SENTENCE},;:)]}}>»”’\"'|*_、，；：」"
_COMPARES = "=<>≤≥≈~±×+-–/"
# Numbers in brackets after these words are values, not citations: "is [2, 6]".
_BEFORE_VALUES = read_words("answers", "before_values")
_CLAUSES = read_words("answers", "clauses")


@dataclass(frozen=True, slots=True)
class CitationReference:
    start: int
    end: int
    numbers: tuple[int, ...]
    blanks: int
    needs_support: bool = False


@dataclass(frozen=True, slots=True)
class References:
    """The citations in a text that is still being written.

    The text that begins at the offset ``undecided`` may become a citation when more text arrives.
    """

    found: tuple[CitationReference, ...]
    undecided: int


def find_references(
    text: str, known: Collection[int], is_in_sources: Callable[[str], bool], *, is_end: bool
) -> References:
    """Return the citations in a text. ``is_end`` is False if more text may follow.

    A marker such as ``[1]`` is not a citation if a source contains it together with the word before it.
    ``is_in_sources`` returns whether the sources contain a text.
    """
    prose = text
    for code in find_code_spans(text):
        signs = _NOT_A_NEWLINE.sub("`", text[code.start : code.end])
        prose = prose[: code.start] + signs + prose[code.end :]
    partial = None if is_end else _PARTIAL.search(prose)
    undecided = partial.start() if partial else len(text)
    found = []
    for match in _GROUP.finditer(prose):
        start, end = match.end("blanks"), match.end()
        if start >= undecided:
            break
        if not is_end and not re.search(r"\S\W|\n", prose[end:]):
            undecided = min(undecided, match.start())
            break
        brackets = [
            [int(number) for number in re.findall(r"\d+", _NOTE.sub("", bracket))]
            for bracket in _BRACKET.findall(prose, start, end)
        ]
        if not set(brackets[0]) <= set(known) or not _can_be_citation(prose, match, brackets):
            continue
        copied = _find_word_before(prose, match.start()) + prose[start:end]
        if is_in_sources(copied if len(copied) > end - start else prose[start : end + 12]):
            continue
        numbers = dict.fromkeys(number for bracket in brackets for number in bracket if number in known)
        found.append(CitationReference(start, end, tuple(numbers), start - match.start(), bool(match["unsure"])))
    return References(tuple(found), undecided)


def _find_word_before(text: str, at: int) -> str:
    return "".join(reversed(list(takewhile(lambda sign: not sign.isspace(), reversed(text[max(0, at - 60) : at])))))


def _can_be_citation(prose: str, match: re.Match[str], brackets: list[list[int]]) -> bool:
    start, end = match.end("blanks"), match.end()
    before, after = prose[: match.start()], prose[end:]
    line = before[before.rfind("\n") + 1 :]
    begins_line = not line.strip(_SIGNS)
    rest = after.lstrip(" \t")
    next_sign = rest[:1].strip()
    is_single = all(len(bracket) == 1 for bracket in brackets)
    last_word = _find_word_before(before.rstrip(" \t*_\"'"), len(before)).strip("*_\"'([").lower()
    is_glued = not match["blanks"] and bool(before) and not before[-1].isspace()
    if before.endswith(("\\", "!")) and is_glued:
        # A backslash escapes a bracket. An image begins with "![" only if "(" follows; else "!" ends a sentence.
        return before.endswith("!") and not after.startswith("(")
    if after.startswith("(") or (after[:1].isascii() and after[:1].isalnum()):
        return False
    if after.startswith(":") and begins_line and prose[start] == "[":
        return False
    if next_sign and next_sign in _COMPARES and after[:1].isspace():
        return False
    if before.rstrip()[-1:] in tuple(_COMPARES) and not begins_line:
        return False
    is_after_sentence = begins_line or before.rstrip(" \t*_\"'”’)")[-1:] in tuple(_ENDS_SENTENCE)
    if match["unsure"]:
        # A number directly behind a digit or a short word is an exponent, unless it is 1.
        is_exponent = is_glued and brackets[0] != [1] and (before[-1].isdigit() or len(last_word) <= 2)
        ends = not next_sign or next_sign in _ENDS_SENTENCE
        return ends and not begins_line and not is_exponent and last_word not in _BEFORE_VALUES
    if not next_sign or next_sign in _FOLLOWS:
        is_value = not is_after_sentence and (
            last_word in _BEFORE_VALUES or (not is_single and before.rstrip().endswith(":"))
        )
        return not is_value
    if is_after_sentence:
        return not next_sign.islower() and (is_single or not next_sign.isdigit())
    following = re.match(r"[^\W\d_]+", rest)
    is_clause = following is not None and following.group().lower() in _CLAUSES
    return (
        is_clause
        and is_single
        and last_word not in _BEFORE_VALUES
        and not _BRACKET.match(rest[following.end() :].lstrip() if following else "")
    )
