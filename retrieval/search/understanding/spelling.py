"""Correct misspelt words and codes of a question by words in the documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz.distance import OSA

from retrieval.search.understanding.syntax import parse_question
from retrieval.text.word_lists import read_words

_TOKEN = re.compile(
    r'"[^"]+"|“[^”]{1,300}”|«[^»]{1,300}»|`[^`]+`'  # Quoted text or code is one token.
    r"|(?<!\S)--\w+(?:[-.=]\w+)*"
    r"|(?:(?<!\S)[-+])?\w+(?:(?:::|[-./#'’_])\w+)*(?:\(\))?[+#]*"
    r"|[^\w\s]"
)


@dataclass(frozen=True, slots=True)
class Token:
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
        return self.text[0] in '"“«`' or (self.text[0] == "-" and self.text[1:2] not in ("", "-"))


def tokenize_question(question: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(question)]


# Shortest words in which two exchanged letters, or a missing or extra letter, are corrected. Words that differ in the
# last _ENDING letters may be forms of one word ("houses", "housed").
_SHORTEST_EXCHANGED, _SHORTEST_SLIP, _ENDING = 4, 6, 2


def is_certain_typing_error(typed: str, meant: str, *, is_no_word: bool) -> bool:
    """Return whether the word ``typed`` is surely the word ``meant`` with one typing error. Both are in lower case.

    A replaced letter is never a certain error: "grapes" is not "graves". Source: Damerau, "A Technique for Computer
    Detection and Correction of Spelling Errors", CACM 1964.
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
# Shorter common words get no suggestion, also if no document contains them ("pasta" is not "past").
SHORTEST_ORDINARY = 7
# The first correction must be this many times as frequent as the second.
_FAR_MORE_FREQUENT = 5
_LONGEST_CODE_TOKENS = 4
_LONGEST_PART_OF_CODE = 4
# A code can be written with spaces ("mx 9920 w"). These words are never a part of such a code.
_SMALL_WORDS = read_words("questions", "small_words")


@dataclass(frozen=True, slots=True)
class NearWord:
    text: str
    edits: int
    passages: int


class Vocabulary(Protocol):
    """The words in the searched collections.

    If ``can_recognise_words`` is false, the result of :meth:`is_ordinary` is unreliable.
    """

    @property
    def can_recognise_words(self) -> bool: ...

    def find_unknown_words(self, text: str) -> Sequence[str]:
        """Return the words of ``text`` that no document contains in any form."""

    def is_ordinary(self, word: str) -> bool:
        """Return whether the word is common in its language; False if unknown."""

    def find_near_words(self, word: str) -> Sequence[NearWord]:
        """Return words in the documents that are similar to ``word``, nearest first."""

    def find_code_spellings(self, codes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return how the documents spell each code, most frequent first. Codes are lower-case letters and digits."""

    def find_similar_codes(self, code: str) -> Sequence[str]:
        """Return codes in the documents that are similar to ``code``, nearest first."""


@dataclass(frozen=True, slots=True)
class Correction:
    question: str
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _TextReplacement:
    start: int
    end: int
    text: str


def correct_question(question: str, vocabulary: Vocabulary) -> Correction | None:
    replacements = _rewrite_codes(question, vocabulary)
    for token in _find_unknown_tokens(question, vocabulary, replacements):
        meant = _find_certain_correction(token, question, vocabulary)
        if meant:
            replacements.append(_TextReplacement(token.start, token.end, meant))
    if not replacements:
        return None
    replaced = tuple((question[each.start : each.end], each.text) for each in replacements)
    return Correction(_apply_replacements(question, replacements), replaced)


def suggest_questions(question: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return variants of the question with similar words for unknown words; empty if all words are known."""
    certain = _rewrite_codes(question, vocabulary)
    offers: list[list[_TextReplacement]] = []
    for token in _find_unknown_tokens(question, vocabulary, certain):
        if len(token.text) < SHORTEST_ORDINARY and vocabulary.is_ordinary(token.lower):
            continue
        most_edits = 1 if len(token.text) < SHORTEST_ORDINARY else 2
        meant = [each.text for each in vocabulary.find_near_words(token.text) if each.edits <= most_edits]
        offers.append([_TextReplacement(token.start, token.end, _match_case(token.text, text)) for text in meant])
    for token in _find_code_tokens(question):
        code = _normalise_code(token.text)
        if not vocabulary.find_code_spellings([code]):
            near = vocabulary.find_similar_codes(code)
            offers.append([_TextReplacement(token.start, token.end, text) for text in near])
    offers = [offer for offer in offers if offer]
    questions = [
        _apply_replacements(question, [*certain, *(offer[min(place, len(offer) - 1)] for offer in offers)])
        for place in range(MOST_SUGGESTIONS)
    ]
    return tuple(dict.fromkeys(questions)) if offers else ()


def _find_certain_correction(token: Token, question: str, vocabulary: Vocabulary) -> str:
    """Return the word that was surely meant; empty if unsure, or if the word looks like a name."""
    typed = token.lower
    is_name = token.text[:1].isupper() and token.start > 0 and question[:1].isupper()
    if len(typed) < SHORTEST_WORD or vocabulary.is_ordinary(typed) or (is_name and not question.isupper()):
        return ""
    is_no_word = vocabulary.can_recognise_words
    certain = [
        each
        for each in vocabulary.find_near_words(token.text)
        if is_certain_typing_error(typed, each.text.lower(), is_no_word=is_no_word)
    ]
    certain.sort(key=lambda each: -each.passages)
    if not certain or (len(certain) > 1 and certain[0].passages < _FAR_MORE_FREQUENT * certain[1].passages):
        return ""
    return _match_case(token.text, certain[0].text)


def _find_unknown_tokens(
    question: str, vocabulary: Vocabulary, replacements: Sequence[_TextReplacement]
) -> list[Token]:
    words = [
        token
        for token in tokenize_question(question)
        if token.text.isalpha()
        and len(token.text) > 2
        and not any(each.start <= token.start < each.end for each in replacements)
    ]
    if not words:
        return []
    unquoted = parse_question(question).unquoted
    unknown = {word.lower() for word in vocabulary.find_unknown_words(unquoted)}
    return [token for token in words if token.lower in unknown]


def _find_code_tokens(question: str) -> list[Token]:
    return [
        token
        for token in tokenize_question(question)
        if not token.is_protected and _is_alphanumeric_code(_normalise_code(token.text)) and token.text[:2] != "--"
    ]


def _find_code_spans(question: str) -> dict[tuple[int, int], str]:
    tokens = tokenize_question(question)
    spans: dict[tuple[int, int], str] = {}
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + _LONGEST_CODE_TOKENS, len(tokens)) + 1):
            span = tokens[first:last]
            if any(token.is_protected or not token.is_word for token in span):
                break
            code = _normalise_code("".join(token.text for token in span))
            if _is_alphanumeric_code(code) and (last == first + 1 or all(map(_is_part_of_code, span))):
                spans[span[0].start, span[-1].end] = code
    return spans


def _rewrite_codes(question: str, vocabulary: Vocabulary) -> list[_TextReplacement]:
    if not any(character.isdigit() for character in question):
        return []
    spans = _find_code_spans(question)
    written = vocabulary.find_code_spellings(sorted(set(spans.values()))) if spans else {}
    replacements: list[_TextReplacement] = []
    for (start, end), code in sorted(spans.items(), key=lambda item: (item[0][0] - item[0][1], item[0][0])):
        ways = written.get(code, ())
        typed = question[start:end]
        if not ways or any(start < each.end and each.start < end for each in replacements):
            continue
        is_written = typed.casefold() in map(str.casefold, ways)
        replacements.append(_TextReplacement(start, end, typed if is_written else ways[0]))
    return [each for each in replacements if question[each.start : each.end] != each.text]


def _is_part_of_code(token: Token) -> bool:
    return len(token.text) <= _LONGEST_PART_OF_CODE and token.text.isalnum() and token.text not in _SMALL_WORDS


def _is_alphanumeric_code(joined: str) -> bool:
    return len(joined) > 2 and joined.isalnum() and not joined.isalpha() and not joined.isdigit()


def _normalise_code(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _match_case(typed: str, meant: str) -> str:
    if typed.isupper() and len(typed) > 1:
        return meant.upper()
    meant = meant.lower() if meant[1:].islower() else meant
    return meant[:1].upper() + meant[1:] if typed[:1].isupper() else meant


def _apply_replacements(question: str, replacements: Sequence[_TextReplacement]) -> str:
    for each in sorted(replacements, key=lambda each: -each.start):
        question = question[: each.start] + each.text + question[each.end :]
    return question
