"""What a question demands beside its words: quoted phrases that must occur, and words that must not.

``"wet rotor" pump -valve`` asks for passages about pumps that hold the phrase *wet rotor* and not the word *valve*.
Both are filters: they decide which passages may be returned, by whichever retriever, and not how those are ranked.

In a sentence quotation marks are no operator: ``What year was the author of "Speed of Sound" born?`` is answered by a
passage that need not name the song. There, quoted words are ranked by as all others are, but never respelt. Taken as an
operator, they cost .04 nDCG@10 on a public set in which one question in seven quotes a title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.exceptions import InvalidQuery

_CURLY = "“”„«»"
# A quotation mark opens where no word ends and closes where no word begins: 3/4" and 1/2" are inches, not a phrase.
# A mark without its counterpart, and a pair around nothing, are ordinary characters.
_QUOTED = re.compile(
    r'(?:(?<!\S)(?P<minus>-)|(?<!\w))(?:"(?P<straight>[^"]*)"|[“„](?P<curly>[^“”„]*)[”“]|«(?P<angled>[^«»]*)»)(?!\w)'
)
# Two characters or more, the first a letter: a minus before a number is its sign (-5), before one letter a command's
# option (-v); to exclude those, quote them. The minus of MX-9920-W and both of --verbose do not start a word.
_EXCLUDED = re.compile(rf'(?<!\S)-(?P<word>[^\W\d_](?:[^\s"{_CURLY}]*[\w+#]))[.,;:!?]*')
_WORD = re.compile(r"\w")
# How a sentence begins in English or Dutch, or ends in any language.
_SENTENCE = re.compile(
    r"""
    \?["”“»]*\s*$
    | ^\W*(?:what|who|whom|whose|which|how|when|where|why|is|are|was|were|do|does|did|can|could|should|would|will|has
        |have|explain|describe|tell|wat|wie|welke?|hoe|hoeveel|wanneer|waar|waarom|zijn|heeft|hebben|kan|kunnen|moet|mag|leg
        |beschrijf|vertel)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, split into its parts.

    ``text`` is used for ranking: it includes the words of the phrases, without quotation marks and exclusions.
    ``unquoted`` is ``text`` without quotations: only these words may be misspelt. A passage must contain every one of
    ``phrases`` and none of ``excluded`` (words or phrases).
    """

    text: str
    unquoted: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def is_constrained(self) -> bool:
        return bool(self.phrases or self.excluded)


def parse(question: str) -> ParsedQuestion:
    """The parts of the question; without quotation marks and exclusions, everything is text, white space aside.

    Raises: InvalidQuery if it only excludes words.
    """
    phrases: list[str] = []
    excluded: list[str] = []
    text: list[str] = []
    unquoted: list[str] = []

    def take(start: int, end: int) -> None:
        # The whole question is looked at, so that what stands before ``start`` tells whether a minus starts a word.
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
        take(position, match.start())
        position = match.end()
        unquoted.append(" ")
        if match["minus"]:
            excluded.append(phrase)
        else:
            phrases.append(phrase)
            text.append(phrase)
    take(position, len(question))
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
