"""Which source each sentence of a model's answer comes from: the site finds it, whatever markers the model writes.

A sentence gets the marker of the source that supports it, found by the check that also verifies answers
(:mod:`chat.answering.support`). Right markers of the model's own are kept.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from chat.answering.citations import (
    MARKER,
    blank_code,
    cited_sentences,
    find_code,
    find_undecided,
    keep_known_markers,
)
from chat.answering.support import THRESHOLD, SupportScorer, declines, extract_assertion
from chat.answering.verification import evidence_of, is_foreign
from chat.answering.words import numbers_asserted, stems
from retrieval.exceptions import RetrievalError

if TYPE_CHECKING:
    from chat.types import ContextSource

logger = logging.getLogger(__name__)

# A sentence in another language rests on the source's sentence whose vector has at least this cosine with its own.
SAME_MEANING = 0.85
MOST_COMPARED = 64
# Of sources that support a sentence only together, two of the likeliest of these are cited.
MOST_PAIRED = 4
# Of the lines of code, this share stands in the source that is cited for it.
SAME_CODE = 0.8
# A model that writes the same sentence so often, or the same characters so often in a row, is in a loop.
MOST_REPEATS, FEWEST_REPEATED_CHARACTERS = 3, 15
MOST_CYCLES, LONGEST_CYCLE = 6, 120
# A sentence that is longer is passed on as it is. Of what is open, a fiftieth more has to come before it is looked at
# again: the work stays proportional to the text.
LONGEST_OPEN, LOOKS_AGAIN = 2_000, 50
# By so much of an answer its language is told.
LONGEST_TEXT = 1_000
# What an answer may begin with that gives up. One that begins so is held back until it says more.
_OPENINGS = (
    "i'm sorry", "i am sorry", "sorry", "i can", "i do", "i am unable", "as an ai", "unfortunately", "the source",
    "the provided", "the given", "the document", "the context", "the text", "the passage", "the information",
    "the available", "there is no", "there are no", "no information", "none of the", "based on the", "according to the",
    "from the", "in the provided", "het spijt", "helaas", "ik kan", "er is geen", "er staat", "de bron", "de gegeven",
    "de document", "de tekst", "de informatie", "op basis van", "volgens de",
)  # fmt: skip
_BARE_GROUP = rf"(?:\([ \t]*+)?(?:\bSOURCES?[ \t]++)?{MARKER.pattern}(?:[,; \t]*+{MARKER.pattern})*+(?:[ \t]*+\))?"
_GROUP = re.compile(rf"(?<![ \t])[ \t]*+{_BARE_GROUP}")
_LEADING = re.compile(rf"(?<!\s)\s*+({_BARE_GROUP})[ \t:.]*+(?=[^\s\[:.])")
_END_OF_ROW = re.compile(r"(?<![ \t])[ \t]*+\|[ \t]*+\Z")
_SIGNS = " \t>*+•0123456789.)#|-"
_LIST_SIGN = re.compile(r"[\s>*+•\d.)#\[\]-]*\Z")


class LoopingAnswer(Exception):
    """The model repeats itself. ``finished`` is the text that can still be shown before the stream is closed."""

    def __init__(self, finished: str) -> None:
        super().__init__("The model repeats itself.")
        self.finished = finished


class Attributor:
    """Finds the sources of sentences.

    ``prompted`` are the markers of the sources that the model was given: if several sources support a sentence equally
    well, these come first. ``encode`` returns a unit vector for each text, a row each, and raises RetrievalError; it is
    needed if the answer is in another language than its sources.
    """

    def __init__(
        self, sources: Sequence[ContextSource], prompted: Collection[int], encode: Callable[[Sequence[str]], np.ndarray]
    ) -> None:
        self._encode = encode
        self._prompted = frozenset(prompted)
        self._sources: list[ContextSource] = []
        self.admit(sources)

    def admit(self, sources: Sequence[ContextSource]) -> None:
        """Search these sources too from now on."""
        known = {source.marker for source in self._sources}
        self._sources += [source for source in sources if source.marker not in known]
        self._sources.sort(key=lambda source: (source.marker not in self._prompted, source.marker))
        self._passages = [evidence_of(source) for source in self._sources]
        self._scorer = SupportScorer(self._passages)
        self.markers = [source.marker for source in self._sources]

    def find(self, sentence: str, own: Sequence[int], text: str) -> tuple[int, ...]:
        """The markers of the sources that support a sentence; empty if none does. ``own`` are the markers that the
        model wrote for it. ``text`` is the answer so far, from which its language is recognised.
        """
        if declines(sentence):
            return ()
        if extract_assertion(sentence) is None:
            return self._find_holder(sentence)
        markers = self.markers
        supports = {marker: self._support(sentence, (marker,)) for marker in markers}
        if kept := tuple(marker for marker in dict.fromkeys(own) if supports.get(marker, 0.0) >= THRESHOLD):
            return kept
        likely = sorted(markers, key=lambda marker: -supports[marker])[:MOST_PAIRED]
        if likely and supports[likely[0]] >= THRESHOLD:
            return (likely[0],)
        if self._sources and all(is_foreign(source, text) for source in self._sources):
            return self._find_by_meaning(sentence)
        return next((pair for pair in combinations(likely, 2) if self._support(sentence, pair) >= THRESHOLD), ())

    def _support(self, sentence: str, markers: Collection[int]) -> float:
        found = self._scorer.score(sentence, markers)
        return found.support if found else 0.0

    def find_code(self, code: str) -> tuple[int, ...]:
        """The marker of the first source that contains the lines of a block of code; empty if none does."""
        lines = [" ".join(line.split()) for line in code.splitlines()[1:-1] if line.strip()]
        for passage in self._passages if lines else ():
            known = {" ".join(line.split()) for line in passage.text.splitlines()}
            if sum(line in known for line in lines) >= SAME_CODE * len(lines):
                return (passage.marker,)
        return ()

    def _find_holder(self, sentence: str) -> tuple[int, ...]:
        """The first source that contains all words of a text too short to be checked, such as a name."""
        words = set() if sentence.rstrip(" *_`").endswith((":", "?")) else set(stems(sentence))
        holders = [passage.marker for passage in self._passages if words and words <= set(stems(passage.text))]
        return tuple(holders[:1])

    def _find_by_meaning(self, sentence: str) -> tuple[int, ...]:
        """The source that says the same in another language, with the same numbers."""
        numbers = numbers_asserted(sentence)
        holders = [each for each in self._passages if all(values & each.numbers for values in numbers)]
        pieces = [(each.marker, piece.text) for each in holders for piece in each.sentences][:MOST_COMPARED]
        if not pieces:
            return ()
        try:
            vectors = self._encode([sentence, *(text for _, text in pieces)])
        except RetrievalError as error:
            logger.warning("A sentence in another language has no marker: the embedder does not answer: %s", error)
            return ()
        cosines = vectors[1:] @ vectors[0]
        best = int(np.argmax(cosines))
        return (pieces[best][0],) if cosines[best] >= SAME_MEANING else ()


class AttributionStream:
    """Passes streamed text on, and adds the markers that an :class:`Attributor` finds behind each complete sentence.

    A right marker of the model's own is kept in whatever form it was written: split over two pieces, or several in one
    bracket. Text that may become a marker or code is held back. So is an answer that only says that the sources do not
    answer; ``gives_up`` is true at its end.
    """

    def __init__(self, attributor: Attributor) -> None:
        self._attributor = attributor
        # The sentence or block of code that is not at its end yet, of which so many characters were passed on.
        self._open = ""
        self._passed_on = 0
        self._unread = 0
        self._leading: list[int] = []
        self._text = ""
        self._held: str | None = ""
        self._says_something = False
        self._said: Counter[str] = Counter()

    def admit(self, sources: Sequence[ContextSource]) -> None:
        """Search these sources too from now on."""
        self._attributor.admit(sources)

    @property
    def gives_up(self) -> bool:
        return not self._says_something and bool(self._text.strip())

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; may be empty. Raises: LoopingAnswer."""
        self._open += piece
        self._unread += len(piece)
        if self._unread * LOOKS_AGAIN < len(self._open):
            return ""
        self._unread = 0
        undecided = find_undecided(self._open)
        sure, rest = keep_known_markers(self._open[:undecided], self._attributor.markers), self._open[undecided:]
        if not self._passed_on and (leading := _LEADING.match(sure)):
            # A marker before its sentence: nothing is shown in front of it.
            self._leading += [int(number) for number in MARKER.findall(leading[1])]
            sure = sure[: leading.start(1)] + sure[leading.end() :]
        self._open = sure + rest
        begin = _begin_of_last(sure)
        finished = self._finish(begin) if begin else ""
        if cycle := _find_cycle(self._open):
            # What was passed on stays, and one turn of it.
            self._open = self._open[: max(self._passed_on, len(self._open) - (MOST_CYCLES - 1) * cycle)]
            raise LoopingAnswer(finished)
        if len(self._open) > LONGEST_OPEN:
            return self._release(finished + self._give_up_on_open())
        sure = self._open[: len(self._open) - len(rest)]
        first_group = next((match.start() for match in _GROUP.finditer(blank_code(sure))), len(sure))
        showable = len(_without_open_tail(sure[:first_group]))
        going_on = self._open[self._passed_on : max(self._passed_on, showable)]
        self._passed_on = max(self._passed_on, showable)
        return self._release(finished + going_on)

    def _give_up_on_open(self) -> str:
        """The rest of a sentence that is too long to be one, unchanged; a block of code stays open."""
        block = next((code for code in find_code(self._open) if code.is_open), None)
        rest = self._open[self._passed_on :]
        self._open = "" if block is None else self._open[: self._open.find("\n", block.start) + 1]
        self._passed_on = len(self._open)
        self._says_something = True
        return rest

    def close(self, *, is_cut: bool = False) -> str:
        """The text that was held back, at the end of the stream. A text that ``is_cut`` within a sentence gets an
        ellipsis.
        """
        self._open = self._open.rstrip()
        if is_cut and self._open[-1:].isalnum():
            self._open += "…"
        rest = (self._held or "") + self._finish(len(self._open))
        self._held = None
        return "" if self.gives_up else rest

    def _finish(self, upto: int) -> str:
        """The rest of ``_open[:upto]``, which is complete, with its markers."""
        part, self._open = keep_known_markers(self._open[:upto], self._attributor.markers), self._open[upto:]
        pieces: list[str] = []
        at = 0
        blocks = [(code.start, code.end) for code in find_code(part) if code.fence]
        sentences = [(each.start, each.end, each.markers) for each in cited_sentences(part)]
        for start, end, own in sorted([*sentences, *((start, end, None) for start, end in blocks)], key=itemgetter(0)):
            pieces.append(_replace_groups(part[at:start], lambda _: ()))
            written = part[start:end]
            if own is None:
                pieces += [written, "".join(f"\n\n[{marker}]" for marker in self._attributor.find_code(written))]
                self._says_something = True
            else:
                pieces.append(self._attribute(written, own))
            at = end
        pieces.append(_replace_groups(part[at:], lambda _: ()))
        passed_on, self._passed_on = self._passed_on, 0
        return "".join(pieces)[passed_on:]

    def _attribute(self, written: str, own: Sequence[int]) -> str:
        bare = _replace_groups(written, lambda _: ()).strip()
        plain = " ".join(bare.lower().split())
        self._said[plain] += 1
        if self._said[plain] >= MOST_REPEATS and len(plain) >= FEWEST_REPEATED_CHARACTERS:
            self._open, self._said = "", Counter()
            raise LoopingAnswer("")
        self._text = f"{self._text}{bare} "[:LONGEST_TEXT]
        own, self._leading = (*self._leading, *own), []
        found = self._attributor.find(bare, own, self._text)
        self._says_something = (
            self._says_something or bool(found) or not (declines(bare) or extract_assertion(bare) is None)
        )
        placed: list[int] = []

        def correct(numbers: Sequence[int]) -> Sequence[int]:
            right = [number for number in numbers if number in found] or [each for each in found if each not in placed]
            placed.extend(right)
            return right

        text = _replace_groups(written, correct)
        missing = "".join(f"[{marker}]" for marker in found if marker not in placed)
        if not missing:
            return text
        row_end = _END_OF_ROW.search(text)
        end = row_end.start() if row_end else len(text)
        return f"{text[:end]} {missing}{text[end:]}"

    def _release(self, text: str) -> str:
        """The text, unless the answer may still be one that gives up."""
        if self._held is None:
            return text
        self._held += text
        begin = self._held.lstrip().lower().replace("’", "'")
        if not self._says_something and any(begin.startswith(each[: len(begin)]) for each in _OPENINGS):
            return ""
        text, self._held = self._held, None
        return text


def _begin_of_last(text: str) -> int:
    """The offset at which the last sentence or the open block of code begins; the text before it is complete."""
    block = next((code for code in find_code(text) if code.is_open), None)
    if block is not None:
        return text.rfind("\n", 0, block.start) + 1
    sentences = cited_sentences(text)
    if not sentences:
        return 0
    start = sentences[-1].start
    line = text.rfind("\n", 0, start) + 1
    # The sign of a list item belongs to its sentence.
    return line if _LIST_SIGN.fullmatch(text, line, start) else start


def _without_open_tail(text: str) -> str:
    """The text without an end that may still change: a possible group of markers, the bar that closes a row with
    markers before it, and the possible beginning of the next list item.
    """
    text = text.rstrip(" \t\n|(")
    for length in range(len("SOURCES"), 0, -1):
        if text.endswith("SOURCES"[:length]) and not text[:-length][-1:].isalnum():
            text = text[:-length].rstrip(" \t\n|(")
            break
    line = text.rfind("\n")
    return text[:line].rstrip() if line >= 0 and not text[line + 1 :].strip(_SIGNS) else text


def _replace_groups(text: str, numbers_for: Callable[[Sequence[int]], Iterable[int]]) -> str:
    """The text with other numbers in each group of markers outside code; a group that gets no number is removed."""
    pieces: list[str] = []
    at = 0
    for match in _GROUP.finditer(blank_code(text)):
        numbers = numbers_for([int(number) for number in MARKER.findall(match.group())])
        markers = "".join(f"[{number}]" for number in numbers)
        space = " " if markers and match.group()[0].isspace() else ""
        pieces += [text[at : match.start()], space + markers]
        at = match.end()
    return "".join([*pieces, text[at:]])


def _find_cycle(text: str) -> int:
    """The length of the part that the end of the text repeats over and over; 0 if it repeats none."""
    tail = text[-MOST_CYCLES * LONGEST_CYCLE :]
    for length in range(1, min(LONGEST_CYCLE, len(tail) // MOST_CYCLES) + 1):
        if tail.endswith(tail[-length:] * MOST_CYCLES) and tail[-length:].strip(" .-=_|\n"):
            return length
    return 0
