"""Corrects misspelt words and codes of a question by the words in the documents. PURE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz.distance import OSA

from retrieval.search.understanding.syntax import parse

_TOKEN = re.compile(
    r'"[^"]+"|“[^”]{1,300}”|«[^»]{1,300}»|`[^`]+`'  # a quotation or code is one token, whatever it holds
    r"|(?<!\S)--\w+(?:[-.=]\w+)*"
    r"|(?:(?<!\S)[-+])?\w+(?:(?:::|[-./#'’_])\w+)*(?:\(\))?[+#]*"
    r"|[^\w\s]"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a whole quotation, or a punctuation mark, at ``question[start:end]``."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        return any(character.isalnum() for character in self.text)

    @property
    def is_protected(self) -> bool:
        """Whether it is quoted, code, or excluded from the search: never replaced."""
        return self.text[0] in '"“«`' or (self.text[0] == "-" and self.text[1:2] not in ("", "-"))


def tokens_of(question: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(question)]


# Words of this length may be a slip. A slip at the end of a word may be another form of it: "houses", "housed".
_SHORTEST_EXCHANGED, _SHORTEST_SLIP, _ENDING = 4, 6, 2


def is_certain_slip(typed: str, meant: str, *, is_no_word: bool) -> bool:
    """Whether ``typed`` is certainly ``meant`` with one typing error. Both in lower case.

    Two exchanged neighbours are certain; a letter too many or too few only if ``typed`` is known not to be a word of
    the language (``is_no_word``); another letter never: "grapes" is not "graves".
    Source: Damerau, "A Technique for Computer Detection and Correction of Spelling Errors", CACM 1964.
    """
    if OSA.distance(typed, meant, score_cutoff=1) != 1 or typed[:1] != meant[:1]:
        return False
    if sorted(typed) == sorted(meant):
        return len(typed) >= _SHORTEST_EXCHANGED
    if len(typed) == len(meant) or len(typed) < _SHORTEST_SLIP:
        return False
    return is_no_word and typed[-_ENDING:] == meant[-_ENDING:]


MOST_SUGGESTIONS = 3
SHORTEST_WORD = 4
# From here on an ordinary word that the documents lack is offered another in its place ("pasta" is not "past"), and a
# word two edits away is offered.
SHORTEST_ORDINARY = 7
# Of two that may have been meant, one is taken when it occurs so many times as often.
_FAR_MORE_FREQUENT = 5
_LONGEST_CODE_TOKENS = 4
_LONGEST_PART_OF_CODE = 4
# Never a part of a code that is written with spaces.
_SMALL_WORDS = frozenset("a an are at de en het in is of on op or the to van was".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the documents that is similar to a typed one, as it is mostly written there. ``passages`` is how many
    of those that were read contain it."""

    text: str
    edits: int
    passages: int


class Vocabulary(Protocol):
    """The words of the searched collections. ``knows_words`` says that :meth:`is_ordinary` can be relied on."""

    @property
    def knows_words(self) -> bool: ...

    def unknown_words(self, text: str) -> Sequence[str]:
        """The words of ``text`` that no document contains in any form, alone or as part of one; as they were typed."""

    def is_ordinary(self, word: str) -> bool:
        """Whether this is a common word of a language, whatever the documents contain; False if that is not known."""

    def near(self, word: str) -> Sequence[NearWord]:
        """The words of the documents near the word, nearest first."""

    def written(self, codes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each of the codes (letters and digits alone, in lower case) in the documents, its spellings there, the
        most frequent first.
        """

    def codes_near(self, code: str) -> Sequence[str]:
        """The documents' codes near a code that they lack, in the documents' spelling, nearest first."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A replacement in a question. ``replaced`` has the typed text and its replacement."""

    question: str
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Replacement:
    start: int
    end: int
    text: str


def correct(question: str, vocabulary: Vocabulary) -> Correction | None:
    """The question with certain misspellings corrected; None if there are none."""
    replacements = _codes_rewritten(question, vocabulary)
    for token in _unknown(question, vocabulary, replacements):
        meant = _certainly_meant(token, question, vocabulary)
        if meant:
            replacements.append(_Replacement(token.start, token.end, meant))
    if not replacements:
        return None
    replaced = tuple((question[each.start : each.end], each.text) for each in replacements)
    return Correction(_with(question, replacements), replaced)


def suggest(question: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """At most three questions that may have been meant: "did you mean". Call it with the question as searched."""
    certain = _codes_rewritten(question, vocabulary)
    offers: list[list[_Replacement]] = []
    for token in _unknown(question, vocabulary, certain):
        if len(token.text) < SHORTEST_ORDINARY and vocabulary.is_ordinary(token.lower):
            continue
        most_edits = 1 if len(token.text) < SHORTEST_ORDINARY else 2
        meant = [each.text for each in vocabulary.near(token.text) if each.edits <= most_edits]
        offers.append([_Replacement(token.start, token.end, _in_case(token.text, text)) for text in meant])
    for token in _codes(question):
        code = _join(token.text)
        if not vocabulary.written([code]):
            near = vocabulary.codes_near(code)
            offers.append([_Replacement(token.start, token.end, text) for text in near])
    offers = [offer for offer in offers if offer]
    # The nearest of each, then the second nearest: where one word is unclear, its alternatives.
    questions = [
        _with(question, [*certain, *(offer[min(place, len(offer) - 1)] for offer in offers)])
        for place in range(MOST_SUGGESTIONS)
    ]
    return tuple(dict.fromkeys(questions)) if offers else ()


def _certainly_meant(token: Token, question: str, vocabulary: Vocabulary) -> str:
    """The word that was meant; empty if that is in doubt, and for names: people and places have similar names."""
    typed = token.lower
    is_name = token.text[:1].isupper() and token.start > 0 and question[:1].isupper()
    if len(typed) < SHORTEST_WORD or vocabulary.is_ordinary(typed) or (is_name and not question.isupper()):
        return ""
    is_no_word = vocabulary.knows_words
    certain = [
        each for each in vocabulary.near(token.text) if is_certain_slip(typed, each.text.lower(), is_no_word=is_no_word)
    ]
    certain.sort(key=lambda each: -each.passages)
    if not certain or (len(certain) > 1 and certain[0].passages < _FAR_MORE_FREQUENT * certain[1].passages):
        return ""
    return _in_case(token.text, certain[0].text)


def _unknown(question: str, vocabulary: Vocabulary, taken: Sequence[_Replacement]) -> list[Token]:
    """The question's words, quoted ones aside, that the documents lack."""
    words = [
        token
        for token in tokens_of(question)
        if token.text.isalpha()
        and len(token.text) > 2
        and not any(each.start <= token.start < each.end for each in taken)
    ]
    if not words:
        return []
    unquoted = parse(question).unquoted
    unknown = {word.lower() for word in vocabulary.unknown_words(unquoted)}
    return [token for token in words if token.lower in unknown]


def _codes(question: str) -> list[Token]:
    return [
        token
        for token in tokens_of(question)
        if not token.is_protected and _is_code(_join(token.text)) and token.text[:2] != "--"
    ]


def _code_spans(question: str) -> dict[tuple[int, int], str]:
    """The spans that may be a code, as one word or as neighbouring words ("mx 9920 w"), with its letters and digits."""
    tokens = tokens_of(question)
    spans: dict[tuple[int, int], str] = {}
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + _LONGEST_CODE_TOKENS, len(tokens)) + 1):
            span = tokens[first:last]
            if any(token.is_protected or not token.is_word for token in span):
                break
            code = _join("".join(token.text for token in span))
            if _is_code(code) and (last == first + 1 or all(map(_is_part, span))):
                spans[span[0].start, span[-1].end] = code
    return spans


def _codes_rewritten(question: str, vocabulary: Vocabulary) -> list[_Replacement]:
    """The codes that the documents write in another way."""
    if not any(character.isdigit() for character in question):
        return []
    spans = _code_spans(question)
    written = vocabulary.written(sorted(set(spans.values()))) if spans else {}
    replacements: list[_Replacement] = []
    for (start, end), code in sorted(spans.items(), key=lambda item: (item[0][0] - item[0][1], item[0][0])):
        ways = written.get(code, ())
        typed = question[start:end]
        if not ways or any(start < each.end and each.start < end for each in replacements):
            continue
        is_written = typed.casefold() in map(str.casefold, ways)
        replacements.append(_Replacement(start, end, typed if is_written else ways[0]))
    return [each for each in replacements if question[each.start : each.end] != each.text]


def _is_part(token: Token) -> bool:
    """Whether the word can be a part of a code that is written with spaces: short, and not a small word."""
    return len(token.text) <= _LONGEST_PART_OF_CODE and token.text.isalnum() and token.text not in _SMALL_WORDS


def _is_code(joined: str) -> bool:
    return len(joined) > 2 and joined.isalnum() and not joined.isalpha() and not joined.isdigit()


def _join(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _in_case(typed: str, meant: str) -> str:
    """``meant`` with the capitals that were typed; with its own if it has some inside."""
    if typed.isupper() and len(typed) > 1:
        return meant.upper()
    meant = meant.lower() if meant[1:].islower() else meant
    return meant[:1].upper() + meant[1:] if typed[:1].isupper() else meant


def _with(question: str, replacements: Sequence[_Replacement]) -> str:
    for each in sorted(replacements, key=lambda each: -each.start):
        question = question[: each.start] + each.text + question[each.end :]
    return question
