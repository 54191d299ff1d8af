"""Text that tries to instruct the site, told by rules. PURE.

People ask questions of documents; "ignore your instructions" is none. The rules (chat.answering.injection_rules) know
what such attempts have in common: setting earlier instructions aside, asking for them, giving the answerer a part to
play, dictating its words, forbidding it the documents, the marks by which models tell roles apart, and any of these in
disguise. They are narrow: a question that merely speaks of prompts or of acting passes. English and Dutch, and German,
which attacks are often written in.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chat.answering.injection_rules import COMPILED, Rules
from chat.answering.orders import COMPILED_ANYWHERE, COMPILED_ORDERS
from retrieval.text.instructions import find_instructions

if TYPE_CHECKING:
    from retrieval.context import ContextBlock

# What also tells in a document, where people may well be told to act as somebody.
_IN_DOCUMENTS: Rules = {rule: COMPILED[rule] for rule in ("set aside", "reveal", "markup")}
_IN_DISGUISE: Rules = {rule: COMPILED[rule] for rule in ("set aside", "reveal")}

# The characters on either side of the end of a passage in which an instruction is looked for that goes on in the next.
REACH = 300

# A sentence with what ends it.
_SENTENCE = re.compile(r"[^.!?\n]++[.!?\n]*+[\"'”’)]*+")
_LEET = re.compile(r"[A-Za-z][0-9]{1,2}[A-Za-z]")
_LETTERS = str.maketrans("013457@$", "oieasta" + "s")
_JOINED = re.compile(r"(?<!\w)(?:\w[-._*]){4,40}\w(?!\w)")
_SIGNS = re.compile(r"[A-Za-z]{2}[._*-][A-Za-z]{2,20}[._*-][A-Za-z]{2}")
_SETTING_ASIDE = re.compile(
    r"\b(?:ignore|disregard|forget)\b[^.?!]{0,30}\b(?:instructions|rules|prompt|documents|guidelines)\b", re.IGNORECASE
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_SPACED = re.compile(r"(?:\b\w[ \t]++){7,}\w\b")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/=])")
_HEXADECIMAL = re.compile(r"\b(?:[0-9a-f]{2}[\s:]?){16,}\b", re.IGNORECASE)
_ROT13 = re.compile(r"\brot-?13\b", re.IGNORECASE)


def find_instruction(text: str) -> str:
    """The rule by which the text reads like an instruction to whoever answers; empty for a question.

    "hidden" when the words only show once a disguise is off: letters spaced out, invisible characters between them,
    base64, hexadecimal, ROT13.
    """
    plain = _plain(text)
    if rule := _rule(plain, COMPILED) or _rule(plain, COMPILED_ANYWHERE):
        return rule
    for sentence in _SENTENCE.findall(plain):
        is_question = sentence.rstrip("\"'”’) ").endswith("?")
        if not is_question and (rule := _rule(sentence.strip(), COMPILED_ORDERS)):
            return rule
    return "hidden" if _hides(text, plain, COMPILED) or any(map(_is_order_in_disguise, _disguised(plain))) else ""


def is_instructed(block: ContextBlock) -> bool:
    """Whether a source holds instructions. Its passages come again with other questions, and are read once; so are the
    places where two of them meet."""
    ends = (passage.end - block.start for passage in block.passages[:-1])
    meetings = (block.content[max(0, end - REACH) : end + REACH] for end in ends)
    return any(holds_instructions(text) for text in (*(each.content for each in block.passages), *meetings))


# Some 6 MB.
@functools.lru_cache(maxsize=4096)
def holds_instructions(text: str) -> bool:
    """Whether a document's text holds something that sets instructions aside or asks for them, open or disguised."""
    plain = _plain(text)
    return bool(_rule(plain, _IN_DOCUMENTS)) or _hides(text, plain, _IN_DOCUMENTS) or bool(find_instructions(plain))


def _plain(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _rule(text: str, rules: Rules) -> str:
    return next((rule for rule, patterns in rules.items() if any(each.search(text) for each in patterns)), "")


def _is_order_in_disguise(text: str) -> bool:
    return bool(_rule(text, _IN_DISGUISE)) or _SETTING_ASIDE.search(text) is not None


def _disguised(text: str) -> Iterator[str]:
    """The text with digits read as letters, with the signs between letters and words taken out, and backwards."""
    if _LEET.search(text):
        yield text.translate(_LETTERS)
    if _JOINED.search(text):
        yield _JOINED.sub(lambda run: re.sub(r"[-._*]", "", run.group()), text)
    if _SIGNS.search(text):
        yield re.sub(r"[._*-]", " ", text)
    yield text[::-1]


def _hides(text: str, plain: str, rules: Rules) -> bool:
    # What a reader does not see, a model reads: letters of the "tags" block stand for the plain ones.
    tags = ("".join(chr(ord(character) - 0xE0000) for character in run.group()) for run in _TAGS.finditer(text))
    return any(_rule(revealed, rules) for revealed in (*tags, *_revealed(plain)))


def _revealed(text: str) -> Iterator[str]:
    if _SPACED.search(text):
        # Two spaces or more stand between words; where there are none, the words run together and are tried as such.
        yield _SPACED.sub(lambda run: re.sub(r"(?<=\w)[ \t](?=\w)", "", run.group()), text)
        yield _respaced(text)
    # What is wrong base64 or UTF-8 is a ValueError too.
    for run in _BASE64.findall(text):
        with contextlib.suppress(ValueError):
            yield base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode()
    for run in _HEXADECIMAL.findall(text):
        with contextlib.suppress(ValueError):
            yield bytes.fromhex(re.sub(r"[\s:]", "", run)).decode()
    if _ROT13.search(text):
        yield codecs.decode(text, "rot13")


def _respaced(text: str) -> str:
    """Spaced letters joined, with spaces put back around the words that attempts are made of."""
    joined = _SPACED.sub(lambda run: re.sub(r"\s", "", run.group()), text)
    words = r"(ignore|disregard|forget|all|previous|your|the|instructions?|prompt|reveal|show|system|say|that|you|hate)"
    return re.sub(r"\s+", " ", re.sub(words, r" \1 ", joined, flags=re.IGNORECASE))
