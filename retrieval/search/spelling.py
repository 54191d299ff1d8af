"""Misspelt words, names and codes of a question put right by the words that the documents hold. PURE.

What is certain is corrected, and shown to the reader: a word that no document holds and that is one slip away from one
that they do hold, and a code that is there in another way of writing ("mx9920w"). What is only near is offered:
:func:`suggest`. Another code, or another name, is never taken for the one that was typed. Quoted and excluded words are
meant as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from retrieval.search.question_words import SMALL_WORDS, Token, language_of, tokens_of
from retrieval.search.slips import is_certain_slip, small_word_meant
from retrieval.search.syntax import parse

MOST_SUGGESTIONS = 3
SHORTEST_WORD = 4
# An ordinary word that the documents lack is offered another in its place from here on: "pasta" is not "past".
SHORTEST_ORDINARY = 7
# Of two that may have been meant, one is taken when it occurs so many times as often.
_FAR_MORE_FREQUENT = 5
_LONGEST_CODE_TOKENS = 4
# Shorter ones in capitals are acronyms.
SHORTEST_SPELT_OUT = 5
_LONGEST_PART_OF_CODE = 4
_SMALL_WORDS = frozenset().union(*SMALL_WORDS.values())
_LONG_SMALL_WORDS = {word for word in _SMALL_WORDS if len(word) > SHORTEST_WORD and word.isalpha()}


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the documents, as it is written there, near one that was typed. ``passages`` hold it, in some form;
    where this one was not seen, ``is_written`` is false."""

    text: str
    edits: int
    passages: int
    is_written: bool = True


class Vocabulary(Protocol):
    """The words of the collections that are searched. ``language`` is theirs, empty where they have several."""

    @property
    def language(self) -> str: ...

    def unknown_words(self, text: str) -> Sequence[str]:
        """The words of ``text`` that no document holds, in any form, alone or as parts of one; as they were typed."""

    def is_ordinary(self, word: str) -> bool:
        """Whether this is a word of the language, whoever writes; False where that is not known."""

    def knows_words_of(self, language: str) -> bool:
        """Whether it is known of this language ("en", "nl", or empty) which words are ordinary."""

    def near(self, word: str, language: str) -> Sequence[NearWord]:
        """The words near ``word`` of the documents in this language, all where it is empty; nearest first."""

    def written(self, codes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each of the codes (letters and digits alone, in lower case) that the documents hold, how they write it,
        the most frequent way first."""

    def codes_near(self, code: str) -> Sequence[str]:
        """The documents' codes near one that they lack, as they write them, nearest first."""


@dataclass(frozen=True, slots=True)
class Correction:
    """``replaced`` has what was typed and what stands there now."""

    question: str
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Replacement:
    start: int
    end: int
    text: str


def correct(question: str, vocabulary: Vocabulary) -> Correction | None:
    """The question with what is certainly misspelt put right; None when nothing is."""
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
    """At most three questions that may have been meant: "did you mean". Ask it of what was searched."""
    certain = _codes_rewritten(question, vocabulary)
    offers: list[list[_Replacement]] = []
    language = language_of(question) or vocabulary.language
    for token in _unknown(question, vocabulary, certain):
        if len(token.text) < SHORTEST_ORDINARY and vocabulary.is_ordinary(token.lower):
            continue
        meant = [
            each.text for each in vocabulary.near(token.text, language) if each.edits <= _edits_offered(token.text)
        ]
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
    """The word that was meant; empty where that is in doubt, and for names: people and places are near each other."""
    typed = token.lower
    is_name = token.text[:1].isupper() and token.start > 0 and question[:1].isupper()
    if vocabulary.is_ordinary(typed) or (is_name and not question.isupper()):
        return ""
    if small := small_word_meant(typed):
        return _in_case(token.text, small)
    if len(typed) < SHORTEST_WORD:
        return ""
    language = language_of(question) or vocabulary.language
    is_no_word = vocabulary.knows_words_of(language)
    alike = {word for word in _LONG_SMALL_WORDS if is_certain_slip(typed, word, is_no_word=is_no_word)}
    if len(alike) == 1:
        return _in_case(token.text, alike.pop())
    near = vocabulary.near(token.text, language)
    certain = [
        each for each in near if is_certain_slip(typed, each.text.lower(), is_no_word=is_no_word and each.is_written)
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
    return [token for token in words if token.lower in unknown and token.lower not in _SMALL_WORDS]


def _codes(question: str) -> list[Token]:
    return [
        token
        for token in tokens_of(question)
        if not token.is_protected and _is_code(_join(token.text)) and token.text[:2] != "--"
    ]


def _code_spans(question: str) -> dict[tuple[int, int], str]:
    """Where a code may stand, as one word or as words beside each other ("mx 9920 w"), and its letters and digits."""
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
        replacements.append(_Replacement(start, end, typed if _is_among(typed, ways) else ways[0]))
    return [each for each in replacements if question[each.start : each.end] != each.text]


def _is_among(typed: str, ways: Sequence[str]) -> bool:
    return typed.casefold() in {way.casefold() for way in ways}


def _is_part(token: Token) -> bool:
    """Whether the word can be a part of a code that is written with spaces: short, and no small word."""
    is_small = token.lower in _SMALL_WORDS and not token.text.isupper()
    return len(token.text) <= _LONGEST_PART_OF_CODE and token.text.isalnum() and not is_small


def _is_code(joined: str) -> bool:
    return len(joined) > 2 and joined.isalnum() and not joined.isalpha() and not joined.isdigit()


def _join(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _edits_offered(word: str) -> int:
    return 1 if len(word) < 2 * SHORTEST_WORD - 1 else 2


def _in_case(typed: str, meant: str) -> str:
    """``meant`` with the capitals that were typed; its own where it has some inside."""
    if typed.isupper() and len(typed) > 1:
        return meant.upper()
    is_acronym = meant.isupper() and len(meant) < SHORTEST_SPELT_OUT
    meant = meant.lower() if meant[1:].islower() or (meant.isupper() and not is_acronym) else meant
    return meant[:1].upper() + meant[1:] if typed[:1].isupper() else meant


def _with(question: str, replacements: Sequence[_Replacement]) -> str:
    for each in sorted(replacements, key=lambda each: -each.start):
        question = question[: each.start] + each.text + question[each.end :]
    return question
