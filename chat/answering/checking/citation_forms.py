"""Find citations in the different forms in which models write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import takewhile

from chat.answering.checking.citations import find_code_spans
from retrieval.text.word_lists import fill_in, read_words

_NUMBER = fill_in(r"(?:<source>[\s:#._-]{0,3})?\^?\d{1,3}\^?", "answers")
_RANGE = r"\s*+[-–—~]\s*+"
_AND = fill_in(r"(?:<source_joining>)\b", "answers")
_NUMBERS = rf"\s*+{_NUMBER}(?:(?:\s*+(?:[,;&、，；]|{_AND})\s*+|{_RANGE}){_NUMBER})*\s*+"
# AMBIGUOUS brackets may be exponents or remarks, so they count only if the source supports the sentence.
BRACKETS = (
    rf"\[\[{_NUMBERS}\]\](?:\([^()\s]{{0,200}}\))?",  # [[1]](#source-1)
    rf"\[{_NUMBERS}\]\((?:#[^()\s]{{0,80}}|[\w-]{{1,40}})\)",  # [1](#source-1)
    rf"\[{_NUMBERS}\]",  # [1] [1, 2] [1-3] [source 1] [cite: 1] [^1]
    rf"【{_NUMBERS}(?:†[^】\n]{{0,80}})?】",  # 【1】 【1†source】
    rf"［{_NUMBERS}］",  # ［1］
    rf"〔{_NUMBERS}〕",  # 〔1〕
)
AMBIGUOUS = (
    rf"<sup>\s*+\[?{_NUMBERS}\]?\s*+</sup>",  # <sup>1</sup>
    rf"\({_NUMBERS}\)",  # (1) at the end of a sentence
    r"[¹²³⁴-⁹]++",  # ¹
)
_SURE = rf"(?:{'|'.join(BRACKETS)})"
_SEQUENCE = rf"(?:(?-i:\bSOURCES?)[ \t]++)?{_SURE}(?:[ \t]*+(?:[,;]|{_RANGE}|,?[ \t]*+{_AND})?[ \t]*+{_SURE})*"
_UNSURE = rf"(?:{AMBIGUOUS[0]})(?:,?(?:{AMBIGUOUS[0]}))*|{AMBIGUOUS[1]}|{AMBIGUOUS[2]}"
_GROUP = re.compile(
    rf"(?<![ \t])(?P<blanks>[ \t]*+)(?:(?P<sure>\([ \t]*+{_SEQUENCE}[ \t]*+\)|{_SEQUENCE})|(?P<unsure>{_UNSURE}))",
    re.IGNORECASE,
)
_PARTIAL = re.compile(
    r"(?:[\[【［〔][\s\w^,;&、，；~–—#†:.-]{0,100}|\([\s\w,;:&、，；~–—#._^-]{0,40}"
    r"|\[\[?[\s\w^,;:.-]{1,40}\]{1,2}\([^()\s]{0,200}"
    r"|<(?:s(?:u(?:p(?:>[\s\d,;\[\]]{0,40}(?:<(?:/(?:s(?:u(?:p)?)?)?)?)?)?)?)?)?"
    r"|\bS(?:O(?:U(?:R(?:C(?:ES?)?)?)?)?)?[ \t]*)\Z"
)
_BRACKET = re.compile(rf"{_SURE}|{'|'.join(AMBIGUOUS)}", re.IGNORECASE)
_BETWEEN_BRACKETS = re.compile(rf"[\]】］〕]{_RANGE}[\[【［〔]")
_JOINED = re.compile(rf"\][ \t,]++{_AND}", re.IGNORECASE)
_WORD_BEHIND = re.compile(r"[ \t]*+([^\W\d_]+)")
_FIRST_TO_LAST = re.compile(rf"(\d{{1,3}}){_RANGE}\D{{0,20}}(\d{{1,3}})|(\d{{1,3}})|([¹²³⁴-⁹])")
_NOT_A_NEWLINE = re.compile(r"[^\n]")
_NOTE = re.compile(r"†[^】\n]*|\]\([^()\s]*\)")
_SIGNS = " \t>*+•0123456789.)#|_-"
_ENDS_SENTENCE = ".!?…。！？"
_FOLLOWS = f"{_ENDS_SENTENCE},;:()]}}>»”’\"'|*_—、，；：」"
_COMPARES = "=<>≤≥≈~±×+-–/"
# Numbers in brackets after these words are values, not citations: "is [2, 6]".
_BEFORE_VALUES = read_words("answers", "before_values")
_CLAUSES = read_words("answers", "clauses")
_ALTERNATIVES = read_words("answers", "alternatives")


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
        if not is_end and (end > undecided or not re.search(r"\S\W|\n", prose[end:])):
            undecided = min(undecided, match.start())
            break
        written = _BETWEEN_BRACKETS.sub("-", prose[start:end])
        brackets = [_read_numbers(_NOTE.sub("", bracket)) for bracket in _BRACKET.findall(written)]
        # A range from high to low has no numbers.
        if not brackets[0] or not set(brackets[0]) <= set(known) or not _can_be_citation(prose, match, brackets):
            continue
        copied = _find_word_before(prose, match.start()) + prose[start:end]
        if is_in_sources(copied if len(copied) > end - start else prose[start : end + 12]):
            continue
        numbers = dict.fromkeys(number for bracket in brackets for number in bracket if number in known)
        found.append(CitationReference(start, end, tuple(numbers), start - match.start(), _needs_support(prose, match)))
    return References(tuple(found), undecided)


def _needs_support(prose: str, match: re.Match[str]) -> bool:
    if match["unsure"] or _JOINED.search(match["sure"]):
        return True
    following = _WORD_BEHIND.match(prose, match.end())
    return following is not None and following[1].islower() and following[1] not in _CLAUSES


def _read_numbers(bracket: str) -> list[int]:
    numbers: list[int] = []
    for first, last, single, raised in _FIRST_TO_LAST.findall(bracket):
        numbers += range(int(first), int(last) + 1) if first else [int(single or unicodedata.digit(raised))]
    return numbers


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
        unit = re.split(r"[/·*]", last_word)[-1]
        is_exponent = is_glued and brackets[0] != [1] and (before[-1].isdigit() or len(unit) <= 2)
        is_exponent = is_exponent or before.endswith(("⁻", "⁺"))
        ends = not next_sign or next_sign in _ENDS_SENTENCE
        return ends and not begins_line and not is_exponent and last_word not in _BEFORE_VALUES
    if not next_sign or next_sign in _FOLLOWS:
        is_value = not is_after_sentence and (
            last_word in _BEFORE_VALUES or (not is_single and before.rstrip().endswith(":"))
        )
        return not is_value
    if is_after_sentence:
        return not next_sign.islower() and (is_single or not next_sign.isdigit())
    following = _WORD_BEHIND.match(rest)
    return (
        following is not None
        and len(following[1]) > 1
        and not is_glued
        and is_single
        and following[1].lower() not in _ALTERNATIVES
        and last_word not in _BEFORE_VALUES
        and not _BRACKET.match(rest[following.end() :].lstrip())
    )
