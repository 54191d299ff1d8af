"""What a sentence of an answer asserts, as far as it can be checked. PURE.

What a model says about its sources ("Based on the passages, ..."), numbers of list items and phrases that join
sentences are no part of the assertion: no source holds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chat.answering.words import StemmedWord, numbers_asserted, split_words, stems

FEWEST_WORDS = 2
"""A sentence of fewer words that carry meaning asserts nothing, unless it holds a number."""

_SOURCES = r"(?:passages?|sources?|documents?|documentation|context|excerpts?|bron|bronnen|documenten)"
_ABOUT_SOURCES = re.compile(
    rf"""
    \(\s*(?:ref(?:erence)?[:.]?\s*)?(?:see\s+|zie\s+)?{_SOURCES}\s*\#?\d[^)]*\)
    | \b(?:based\ on|according\ to|as\ (?:stated|mentioned|described|noted|shown)\ in|from|in|per
       |volgens|op\ basis\ van)
      \ (?:the\ |these\ |all\ |de\ |het\ |deze\ )*
      (?:(?:given|provided|above|following|information\ (?:provided\ |given\ )?(?:in|from)\ the
         |gegeven|bovenstaande)\ )*
      (?:{_SOURCES}|text|information)
      (?:\ (?:given|provided|above))?(?:\s*\d+(?:\s*(?:,|and|&|en)\s*\d+)*)?,?
    | \b{_SOURCES}\s+\d+(?:\s*(?:,|and|&|en)\s*(?:{_SOURCES}\s*)?\d+)*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ABSENT = r"(?:do(?:es)?\ not|do(?:es)?n['’]t|cannot|never|niet|geen|niets|no|nothing)"
_DETAILS = r"(?:information|details?|answers?|mention|anything|data|informatie|gegevens|antwoord)"
_SAYS_NOTHING = re.compile(
    rf"""
    \b(?:{_SOURCES}|information|text|informatie|tekst)\b [^.;:]{{0,40}} \b{_ABSENT}\b [^.;:]{{0,30}}
    \b(?:mention\w*|stated?|specif(?:y|ied)|discuss\w*|indicated?|describe|say|explain\w*|tell|answer
       |vermeld\w*|noem\w*|genoemd|staat|beschr\w+
       |(?:provide|contain|give|include|bevat\w*|geven)\b .{{0,30}}\b{_DETAILS})\b
    | \b(?:bron|bronnen|documenten|document|tekst)\b [^.;:]{{0,20}}
      \b(?:vermeld\w*|noem\w*|zegt|zeggen|beschr\w+|bevat\w*|ge(?:eft|ven))\ (?:geen|niet|niets|nergens)\b
    | \b(?:there\ is|there\ are|er\ is|er\ staat)\ (?:no|geen|niets)\b .{{0,30}}\b{_DETAILS}\b
    | \b(?:unable|not\ able)\ to\ (?:answer|find|determine) | \b(?:can\s?not|can't)\ (?:be\ )?(?:answer|determine)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COURTESY = re.compile(
    r"""
    \s*(?:sure\b|certainly\b|of\ course\b|hello\b|hi\b|thanks?\b|(?:i\ )?hope\b|(?:please\ )?let\ me\ know\b
      |feel\ free\b|if\ you\ have\ (?:any\ )?(?:other|more|further)\b|natuurlijk\b|hallo\b|bedankt\b
      |graag\ gedaan\b|ik\ hoop\b|laat\ (?:het\ )?(?:me|mij)\ weten\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A "no" that answers the question negates nothing in its own sentence.
_PARTICLE = re.compile(r"\A\s*(?:yes|no|ja|nee|jawel)\b[,.:;!]", re.IGNORECASE)
_DECLINES = re.compile(
    r"""
    \s*(?:(?:i['’]?m|i\ am)\ (?:sorry|unable|not\ able)|sorry\b|i\ (?:can['’]?t|cannot|could\ not|do\ not\ have)
      |as\ an\ ai\b|het\ spijt\ me|ik\ kan\ (?:niet|geen|daar|je|u)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+•]|\(?\d{1,3}[.)])[ \t]+")
_MARKER = re.compile(r"\[\d{1,3}\]")
# What stands before a word that is written with a capital whether it is a name or not: the first of a sentence, of an
# item, of a quotation, of what follows a colon.
_TITLE = r"(?<!\b[DM]r)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bProf)(?<!\bdhr)(?<!\bmw)(?<!\bir)(?<!\bdrs)"
_ENDING = re.compile(rf"{_TITLE}\.|[!?:;|•]")
_OPENING_SIGNS = frozenset("\"'“‘(*_`")
_JOINING_WORDS = """
passage passages source sources given provided provide based according information answer question following
mentioned mention stated states however additionally therefore thus hence overall summary conclusion furthermore
moreover another note step steps additional include includes including various example typically
bron bronnen volgens antwoord vraag echter daarnaast daarom dus bovendien samengevat stap stappen voorbeeld
"""
_JOINING = frozenset(stems(_JOINING_WORDS))


@dataclass(frozen=True, slots=True)
class Assertion:
    """What can be checked of a sentence.

    ``words`` are in order, with repeats; ``names`` are the stems of its capitalised words, those that open a sentence
    aside; ``numbers`` are those in digits, each with the values that it may have.
    """

    text: str
    words: tuple[StemmedWord, ...]
    names: tuple[str, ...]
    numbers: tuple[frozenset[str], ...]


def extract_assertion(sentence: str) -> Assertion | None:
    """What the sentence asserts; None when that is nothing that a source could support.

    So for a question, a greeting, a lead-in ("Here is how:"), and what says that the sources say nothing.
    """
    stripped = sentence.rstrip(" \t\n*_`")
    if stripped.endswith("?") or _SAYS_NOTHING.search(sentence):
        return None
    mark = _LIST_MARK.match(sentence)
    text = _blank(mark) + sentence[mark.end() :] if mark else sentence
    text = _PARTICLE.sub(_blank, _ABOUT_SOURCES.sub(_blank, _MARKER.sub(_blank, text)))
    words = tuple(word for word in split_words(text) if word.stem not in _JOINING)
    numbers = numbers_asserted(text)
    if not numbers and (len(words) < FEWEST_WORDS or stripped.endswith(":") or _COURTESY.match(sentence)):
        return None
    return Assertion(text, words, tuple(_names(text, words)), numbers) if words else None


def declines(sentence: str) -> bool:
    """Whether the sentence gives no answer: it says that the sources say nothing, excuses itself, or is a courtesy."""
    return bool(_SAYS_NOTHING.search(sentence) or _DECLINES.match(sentence) or _COURTESY.match(sentence))


def _blank(match: re.Match[str]) -> str:
    """As many spaces, so that offsets stay."""
    return " " * len(match.group())


def _names(text: str, words: Sequence[StemmedWord]) -> Iterator[str]:
    """The stems of the capitalised words; neither single letters (units, labels) nor initials of the words before."""
    for at, word in enumerate(words):
        written = text[word.start : word.end]
        if len(written) < 2 or not written[0].isupper() or _opens_sentence(text, word.start):
            continue
        initials = written.lower()
        before = words[max(0, at - len(initials)) : at]
        if written.isupper() and "".join(each.stem[0] for each in before) == initials:
            continue
        yield word.stem


def _opens_sentence(text: str, at: int) -> bool:
    """Whether what begins there would be written with a capital anyway."""
    start = at
    while start > 0 and (text[start - 1].isspace() or text[start - 1] in _OPENING_SIGNS):
        start -= 1
    if start == 0 or "\n" in text[start:at] or (at > start and text[at - 1] in '"“‘(*'):
        return True
    return _ENDING.match(text, start - 1) is not None
