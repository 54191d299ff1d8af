"""Corrects misspelt words, names and codes of a question by the words in the documents. PURE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from retrieval.search.syntax import parse
from retrieval.text.language import detect_language

# The words of a question, and the small words of English and Dutch that hold one together.

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
        """Whether it is quoted, code, or excluded from the search: never replaced, and never part of a subject if
        excluded.
        """
        return self.text[0] in '"“«`' or self.is_excluded

    @property
    def is_excluded(self) -> bool:
        return self.text[0] == "-" and len(self.text) > 1 and self.text[1] != "-"

    @property
    def is_identifier(self) -> bool:
        """Whether it looks like the name of a thing: it has a digit, an underscore, or a capital after the first
        letter.
        """
        text = self.text
        if self.is_excluded or not self.is_word:
            return False
        return (
            self.is_protected
            or any(c.isdigit() or c in "_:" for c in text)
            or text[:2] == "--"
            or text[1:] != text[1:].lower()
        )


def tokens_of(question: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(question)]


# A word that is missing here counts as content.
_ENGLISH = """
    a an the my your our any some no each every all both his her its their another this that these those is are
    was were be been being isn't aren't what's where's who's how's when's do does did don't doesn't didn't can
    could will would shall should must may might cannot can't won't has have had i you we he she it they me him us
    them one ones myself yourself itself themselves someone anyone everyone people something anything theirs what
    which who whom whose when where why how in on at by for with without from to into onto of about over under
    between during before after until since against through per near within outside inside above below across
    around via as than like behind despite while upon and or but nor not if whether because so then also too still
    again now already ever never always often usually there here much many long far fast quickly more most less
    least very just only even yet well instead else up down out off away back today tomorrow yesterday please ago
    soon later once twice other same such own thanks thank hello hi hey ok okay great yes
"""
_DUTCH = """
    de het een mijn uw jouw onze ons hun elke elk alle iedere geen enkele sommige beide die dat deze dit is zijn
    was waren ben bent wordt worden werd geweest kan kun kunt kunnen kon zal zullen zult zou zouden moet moeten
    moest mag mogen mocht wil wilt willen heeft heb hebt hebben had doe doet doen deed ga gaat gaan ik je jij u
    wij we hij zij ze hem haar mij me hen jullie men iemand iets zich zichzelf er daar ervan daarvan ermee daarmee
    erin daarin erop daarop ervoor daarvoor erbij daarbij hiervan hiermee wat welke welk wie wiens wanneer waar
    waarom hoe hoeveel waarmee waarvoor waaruit waarin waarop in op aan bij voor met zonder van uit naar tot over
    onder tussen tijdens na sinds tegen door per binnen buiten boven langs rond via om te als dan volgens wegens
    ondanks achter naast vanaf behalve en of maar noch niet wel ook nog al dus omdat zodat terwijl indien steeds
    altijd nooit vaak meestal hier veel lang ver snel meer meest minder minst zeer heel erg alleen zelfs eens even
    echt eigenlijk weer vandaag morgen gisteren toen nu straks later ooit bedankt dank dankjewel hallo hoi oké ja
    nee
"""
_SMALL_WORDS = frozenset(_ENGLISH.split() + _DUTCH.split())


# Which misspellings a hand makes: those that leave no doubt of the word that was meant.
#
# Four of five misspellings are one letter too many, one too few, a wrong one, or two exchanged (Damerau, "A Technique
# for Computer Detection and Correction of Spelling Errors", CACM 1964). But *contact* is one letter from *contract*
# too. What certainly is a slip exchanges neighbours, doubles a letter, or hits the next key; in a long word a letter
# more or less. Where nobody can tell whether what was typed is a word itself, more is asked for: Dutch has *richten*
# and *rechten*, *spelen* and *spellen*.

_SHORTEST_EXCHANGED = 4
_SHORTEST_SUBSTITUTED = 6
# Where what was typed is known to be no word, and where it may be one.
_SHORTEST_DOUBLED = {True: 5, False: 8}
_SHORTEST_LEFT_OUT = {True: 7, False: 10}
# A letter more or less at the end may make another form of the word.
_ENDING = 2
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE = {
    frozenset(pair)
    for row, below in zip(_KEYS, (*_KEYS[1:], ""), strict=True)
    for place, key in enumerate(row)
    for pair in (
        (key, other) for other in row[place + 1 : place + 2] + below[max(0, place - 1) : place + 1] if other != key
    )
}
_SOUND_ALIKE = {frozenset(pair) for pair in ("ck", "cs", "sz", "iy", "dt", "fv", "ae", "ei", "gh", "ou")}


def is_certain_slip(typed: str, meant: str, *, is_no_word: bool) -> bool:
    """Whether ``typed`` is certainly ``meant`` with one typing error. Both in lower case.

    ``is_no_word`` is true if ``typed`` is known not to be a word of the language.
    """
    if typed == meant or abs(len(typed) - len(meant)) > 1:
        return False
    start = _common_prefix(typed, meant)
    if len(typed) == len(meant):
        rest, expected = typed[start:], meant[start:]
        if len(rest) > 1 and rest[0] == expected[1] and rest[1] == expected[0] and rest[2:] == expected[2:]:
            return len(typed) >= _SHORTEST_EXCHANGED
        alike = frozenset((rest[0], expected[0])) in _BESIDE | _SOUND_ALIKE
        inside = 0 < start < len(typed) - 1
        return is_no_word and rest[1:] == expected[1:] and alike and inside and len(typed) >= _SHORTEST_SUBSTITUTED
    longer, shorter = (typed, meant) if len(typed) > len(meant) else (meant, typed)
    if longer[start + 1 :] != shorter[start:]:
        return False
    if start > 1 and longer[start] == longer[start - 1]:
        return len(longer) > _SHORTEST_DOUBLED[is_no_word]
    return 0 < start < len(longer) - _ENDING - 1 and len(longer) > _SHORTEST_LEFT_OUT[is_no_word]


def _common_prefix(first: str, second: str) -> int:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return length


def small_word_meant(typed: str) -> str:
    """The small word that ``typed`` is with two neighbouring letters exchanged ("teh"); empty if it is none, or
    several.

    The first letter is mostly right: "hwo" is "how" rather than "who".
    """
    if not 3 <= len(typed) <= 7 or typed in _SMALL_WORDS:
        return ""
    exchanged = {
        typed[:place] + typed[place + 1] + typed[place] + typed[place + 2 :] for place in range(len(typed) - 1)
    }
    meant = exchanged & _SMALL_WORDS
    meant = {word for word in meant if word[0] == typed[0]} or meant
    return meant.pop() if len(meant) == 1 else ""


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
_LONG_SMALL_WORDS = {word for word in _SMALL_WORDS if len(word) > SHORTEST_WORD and word.isalpha()}


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the documents that is similar to a typed one, as it is written there. ``passages`` contain it, in some
    form; ``is_written`` is false if this form was not seen.
    """

    text: str
    edits: int
    passages: int
    is_written: bool = True


class Vocabulary(Protocol):
    """The words of the searched collections. ``language`` is their language, empty if they have several."""

    @property
    def language(self) -> str: ...

    def unknown_words(self, text: str) -> Sequence[str]:
        """The words of ``text`` that no document contains in any form, alone or as part of one; as they were typed."""

    def is_ordinary(self, word: str) -> bool:
        """Whether this is a common word of the language, whatever the documents contain; False if that is not known."""

    def knows_words_of(self, language: str) -> bool:
        """Whether a list of common words exists for this language ("en", "nl", or empty)."""

    def near(self, word: str, language: str) -> Sequence[NearWord]:
        """The words near ``word`` in the documents of this language, or of all if it is empty; nearest first."""

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
    language = detect_language(question) or vocabulary.language
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
    """The word that was meant; empty if that is in doubt, and for names: people and places have similar names."""
    typed = token.lower
    is_name = token.text[:1].isupper() and token.start > 0 and question[:1].isupper()
    if vocabulary.is_ordinary(typed) or (is_name and not question.isupper()):
        return ""
    if small := small_word_meant(typed):
        return _in_case(token.text, small)
    if len(typed) < SHORTEST_WORD:
        return ""
    language = detect_language(question) or vocabulary.language
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
        replacements.append(_Replacement(start, end, typed if _is_among(typed, ways) else ways[0]))
    return [each for each in replacements if question[each.start : each.end] != each.text]


def _is_among(typed: str, ways: Sequence[str]) -> bool:
    return typed.casefold() in {way.casefold() for way in ways}


def _is_part(token: Token) -> bool:
    """Whether the word can be a part of a code that is written with spaces: short, and not a small word."""
    is_small = token.lower in _SMALL_WORDS and not token.text.isupper()
    return len(token.text) <= _LONGEST_PART_OF_CODE and token.text.isalnum() and not is_small


def _is_code(joined: str) -> bool:
    return len(joined) > 2 and joined.isalnum() and not joined.isalpha() and not joined.isdigit()


def _join(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _edits_offered(word: str) -> int:
    return 1 if len(word) < 2 * SHORTEST_WORD - 1 else 2


def _in_case(typed: str, meant: str) -> str:
    """``meant`` with the capitals that were typed; with its own if it has some inside."""
    if typed.isupper() and len(typed) > 1:
        return meant.upper()
    is_acronym = meant.isupper() and len(meant) < SHORTEST_SPELT_OUT
    meant = meant.lower() if meant[1:].islower() or (meant.isupper() and not is_acronym) else meant
    return meant[:1].upper() + meant[1:] if typed[:1].isupper() else meant


def _with(question: str, replacements: Sequence[_Replacement]) -> str:
    for each in sorted(replacements, key=lambda each: -each.start):
        question = question[: each.start] + each.text + question[each.end :]
    return question
