"""Parse quoted phrases, which must occur, and words after a minus, which must not: ``"wet rotor" pump -valve``.

Quotation marks in a question that is a whole sentence have no effect, because they often quote a title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.exceptions import InvalidQuery
from retrieval.text.word_lists import fill_in

_CURLY = "“”„«»"
# A quotation mark after or within a word is no opening one, because 3/4" and 1/2" are inches.
_QUOTED = re.compile(
    r'(?:(?<!\S)(?P<minus>-)|(?<!\w))(?:"(?P<straight>[^"]*)"|[“„](?P<curly>[^“”„]*)[”“]|«(?P<angled>[^«»]*)»)(?!\w)'
)
# A minus before a word excludes it. Before a number it is a sign (-5), before a single letter an option (-v).
_EXCLUDED = re.compile(rf'(?<!\S)-(?P<word>[^\W\d_](?:[^\s"{_CURLY}]*[\w+#]))[.,;:!?]*')
_WORD = re.compile(r"\w")
_SENTENCE = re.compile(fill_in(r'\?["”“»]*\s*$|^\W*<sentence_begins>\b', "questions"), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, divided by its operators (quotation marks and minus signs).

    ``text`` has no operators and no excluded words; it is used for ranking. ``unquoted`` is ``text`` without phrases. A
    passage must contain all ``phrases`` and none of ``excluded``.
    """

    text: str
    unquoted: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def is_constrained(self) -> bool:
        return bool(self.phrases or self.excluded)


def parse_question(question: str) -> ParsedQuestion:
    """Divide the question by its operators. Raises: InvalidQuery if it only excludes words."""
    phrases: list[str] = []
    excluded: list[str] = []
    text: list[str] = []
    unquoted: list[str] = []

    def append_without_exclusions(start: int, end: int) -> None:
        # The question is not sliced, because the character before ``start`` decides whether a minus begins a word.
        for match in _EXCLUDED.finditer(question, start, end):
            between = question[start : match.start()]
            excluded.append(match["word"])
            text.append(f"{between} ")
            unquoted.append(f"{between} ")
            start = match.end()
        text.append(question[start:end])
        unquoted.append(question[start:end])

    position = 0
    for match in _QUOTED.finditer(question):
        phrase = " ".join((match["straight"] or match["curly"] or match["angled"] or "").split())
        if not _WORD.search(phrase):
            continue
        append_without_exclusions(position, match.start())
        position = match.end()
        unquoted.append(" ")
        if match["minus"]:
            excluded.append(phrase)
        else:
            phrases.append(phrase)
            text.append(phrase)
    append_without_exclusions(position, len(question))
    if _SENTENCE.search(question) and _WORD.search("".join(unquoted)):
        phrases.clear()
    parsed = ParsedQuestion(
        text=" ".join("".join(text).split()),
        unquoted=" ".join("".join(unquoted).split()),
        phrases=tuple(dict.fromkeys(phrases)),
        excluded=tuple(dict.fromkeys(excluded)),
    )
    if parsed.excluded and not _WORD.search(parsed.text):
        raise InvalidQuery("The question only says what to leave out: add what to look for.")
    return parsed
