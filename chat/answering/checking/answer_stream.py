"""Turn a model's text into the text to show, while the model is still writing."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chat.answering.checking.addresses import find_known_addresses
from chat.answering.checking.attribution import Attributor
from chat.answering.checking.citation_forms import CitationReference, find_references
from chat.answering.checking.citations import (
    MARKER,
    NUMBERS_IN_BRACKETS,
    PIECE_BREAK,
    QUOTED_NUMBERS,
    CitationMarker,
    MarkerGroup,
    find_cited_sentences,
    find_code_spans,
    find_unfinished_markup,
)
from chat.answering.checking.edits import TextEdit
from chat.answering.checking.links import find_link_edits, find_link_safe_boundary, find_tags
from chat.answering.checking.support import extract_assertion, is_refusal_or_courtesy, is_yes_or_no
from chat.answering.prompts import NO_ANSWER, REMEMBERED_TURNS
from chat.answering.tool_calls import FUNCTION
from chat.exceptions import AnswerWithheld
from retrieval.text.word_lists import read_phrases

if TYPE_CHECKING:
    import numpy as np

    from chat.answering.prompts import Prompt
    from chat.types import ContextSource
    from retrieval.types import Turn

# An answer is withheld if it repeats this many letters and digits in a row from the prompt's rules.
LONGEST_SHARED = 40
# A model is stopped if it writes a sentence MOST_REPEATS times, or ends with MOST_CYCLES copies of a short text.
MOST_REPEATS, FEWEST_REPEATED_CHARACTERS = 3, 15
MOST_CYCLES, LONGEST_CYCLE = 6, 120
# A sentence longer than LONGEST_OPEN characters is shown before its end. An unfinished sentence is checked again each
# time it has grown by the share 1/LOOKS_AGAIN.
LONGEST_OPEN, LOOKS_AGAIN = 2_000, 50
LONGEST_TEXT = 1_000
# A model may repeat a shorter text on purpose, such as "Yes, both do."
LEAST_REPEATED = 40
# Refusals often begin with these words, so the text is not shown until a sentence asserts something.
_OPENINGS = read_phrases("answers", "openings")
_AROUND = " \t\r\n\"'`*["
_SENTENCE_ENDS = re.compile(r"[.!?:](?:[ \t]?\[\d{1,3}\]){0,8}\s|\n")
_BLANK_BEFORE_SIGN = re.compile(r" (?=[.,:;!?])")
_HALF_MARKER = re.compile(r"\[[\d, ]{0,20}\Z")
_END_OF_ROW = re.compile(r"(?<![ \t])[ \t]*+\|[ \t]*+\Z")
_REST_OF_WORD = re.compile(r"\w+")
_SIGNS = " \t>*+•0123456789.)#|-"
_LIST_SIGN = re.compile(r"[\s>*+•\d.)#\[\]-]*\Z")


class AnswerStream:
    """Converts a model's text into the text to show, piece by piece.

    Only addresses in ``sources`` are linked. If the model begins by repeating sentences of an answer in ``history``,
    they are left out. ``declines`` is True if the model refused with NO_ANSWER.
    """

    def __init__(
        self,
        prompt: Prompt,
        question: str,
        sources: Sequence[ContextSource],
        history: Sequence[Turn],
        encode: Callable[[Sequence[str]], np.ndarray],
    ) -> None:
        prompted = [source for source in sources if source.marker in prompt.markers]
        rules = _reduce_to_letters(prompt.rules)
        self._rules = {rules[at : at + LONGEST_SHARED] for at in range(len(rules) - LONGEST_SHARED + 1)}
        self._last = self._last_letters = ""
        self._known = "\n".join([question, *(text for turn in history for text in (turn.question, turn.answer))])
        self._known_letters = _reduce_to_letters(self._known)
        self._contents = ""
        self._addresses: set[str] = set()
        self._tags: set[str] = set()
        self._attributor = Attributor((), prompt.markers, encode)
        self._add_source_words(prompted)
        self._attributor.add_sources(sources)
        self._earlier = [plain for turn in history[-REMEMBERED_TURNS:] if (plain := _remove_brackets(turn.answer))]

        self.written = ""
        self.markers: list[CitationMarker] = []
        self.citations: list[tuple[int, int]] = []
        self.is_looping = self.declines = False
        # These are offsets in `written`, the model's text. `_begin` is the beginning of the shown text, or None while
        # it is unknown. `_skipped` is the end of repetitions of earlier answers. `_open` is the beginning of the
        # unfinished sentence. `_shown` is the end of the shown text.
        self._begin: int | None = None
        self._skipped = self._open = self._shown = 0
        self.shown_length = self._unread = 0
        self._edits: list[TextEdit] = []
        self._may_give_up = True
        self._says_something = False
        self._said: Counter[str] = Counter()
        self._text = ""

    @property
    def has_no_answer(self) -> bool:
        return self.declines or (not self._says_something and bool(self.written.strip()))

    def add_sources(self, sources: Sequence[ContextSource]) -> None:
        self._add_source_words(sources)
        self._attributor.add_sources(sources)

    def _add_source_words(self, sources: Sequence[ContextSource]) -> None:
        contents = [source.block.content for source in sources]
        self._addresses |= find_known_addresses(sources)
        self._tags |= find_tags(contents)
        self._known += "\n".join(["", *contents])
        self._known_letters = _reduce_to_letters(self._known)
        self._contents += "".join("".join(contents).split())

    def feed(self, piece: str) -> str:
        """Add a piece of the model's text, and return the text that can be shown now.

        Raises: AnswerWithheld if the text must not be shown.
        """
        if self.is_looping:
            return ""
        self._refuse_secrets(piece)
        self.written += piece
        self._unread += len(piece)
        if self._unread * LOOKS_AGAIN < len(self.written) - self._open:
            return ""
        self._unread = 0
        return self._process_pieces(is_end=False)

    def close(self) -> str:
        shown = self._process_pieces(is_end=True)
        return "" if self.has_no_answer else shown

    def _refuse_secrets(self, piece: str) -> None:
        self._last = self._last[-len(FUNCTION) :] + piece
        if FUNCTION in self._last and FUNCTION not in self._known:
            raise AnswerWithheld("function")
        self._last_letters = self._last_letters[-LONGEST_SHARED + 1 :] + _reduce_to_letters(piece)
        for at in range(len(self._last_letters) - LONGEST_SHARED + 1):
            shared = self._last_letters[at : at + LONGEST_SHARED]
            if shared in self._rules and shared not in self._known_letters:
                raise AnswerWithheld("prompt")

    def _find_answer_start(self, *, is_end: bool) -> bool:
        if self._begin is not None:
            return True
        text = self.written[self._skipped :]
        word = text.strip(_AROUND)
        if NO_ANSWER.startswith(word[: len(NO_ANSWER)]) and not (is_end and not word.startswith(NO_ANSWER)):
            self.declines = is_end and word.startswith(NO_ANSWER)
            return False
        while self._earlier:
            if self._is_repeated(text):
                if not is_end:
                    return False
                break
            ends = [end.end() for end in _SENTENCE_ENDS.finditer(text)]
            ends = [at for at in ends if self._is_repeated(text[:at]) and text.count("```", 0, at) % 2 == 0]
            if max(ends, default=0) < LEAST_REPEATED:
                break
            self._skipped += max(ends)
            text = self.written[self._skipped :]
        begin = self._skipped + len(text) - len(text.lstrip())
        if begin == len(self.written) and not is_end:
            return False
        self._begin = self._open = self._shown = begin
        return True

    def _is_repeated(self, text: str) -> bool:
        plain = _remove_brackets(text)
        return any(earlier.startswith(plain) for earlier in self._earlier)

    def _process_pieces(self, *, is_end: bool) -> str:
        if is_end:
            self.written = self.written.rstrip()
        if not self._find_answer_start(is_end=is_end):
            return ""
        text = self.written[self._open :]
        undecided = len(text) if is_end else find_unfinished_markup(text)
        references = find_references(text[:undecided], self._attributor.markers, self._is_in_sources, is_end=is_end)
        sure = text[: references.undecided]
        complete = len(sure) if is_end else _find_last_sentence_start(sure, references.found)
        if complete:
            self._complete_sentence(text[:complete], references.found, is_continued=not is_end)
        if cycle := _find_loop_length(text):
            self._cut_looping_text(max(self._shown, self._open, len(self.written) - (MOST_CYCLES - 1) * cycle))
        if is_end or self.is_looping:
            return self._take_next_shown_text(len(self.written) if is_end else self._open, is_end=is_end)
        if len(text) - complete > LONGEST_OPEN:
            self._skip_unfinished_text()
            return self._take_next_shown_text(len(self.written), is_end=False)
        behind = [each.start - each.blanks for each in references.found if each.start >= complete]
        open_text = sure[complete : min(behind, default=len(sure))]
        return self._take_next_shown_text(self._open + len(_strip_trailing_signs(open_text)), is_end=False)

    def _is_in_sources(self, text: str) -> bool:
        return "".join(text.split()) in self._contents

    def _cut_looping_text(self, end: int) -> None:
        self.is_looping = True
        self.written = self.written[:end]
        self._open = min(self._open, end)
        self._edits = [edit for edit in self._edits if edit.end <= end]

    def _skip_unfinished_text(self) -> None:
        text = self.written[self._open :]
        block = next((code for code in find_code_spans(text) if code.is_open), None)
        self._open += len(text) if block is None else text.rfind("\n", 0, block.start) + 1
        self._says_something = True

    def _complete_sentence(self, part: str, references: Sequence[CitationReference], *, is_continued: bool) -> None:
        base = self._open
        self._open += len(part)
        inside = [each for each in references if each.end <= len(part)]
        groups = [MarkerGroup(each.start, each.end, each.numbers) for each in inside]
        cited: set[CitationReference] = set()
        blocks = [code for code in find_code_spans(part) if code.fence]
        for sentence in find_cited_sentences(part, groups, is_continued=is_continued):
            bare = _remove_references(part, sentence.start, sentence.end, inside)
            if self._is_repeated_too_often(bare):
                self._cut_looping_text(max(self._shown, base + sentence.start))
                break
            self._text = f"{self._text}{bare} "[:LONGEST_TEXT]
            found = self._attributor.find_supporting_source_markers(bare, sentence.markers, self._text)
            if not found and is_yes_or_no(bare):
                # A bare yes or no has no words that a source could support.
                found = tuple(number for number in sentence.markers if number in self._attributor.markers)
            says = bool(found) or not (is_refusal_or_courtesy(bare) or extract_assertion(bare) is None)
            self._says_something = self._says_something or says
            placed: list[int] = []
            own = [each for each in inside if sentence.start <= each.start < sentence.end]
            for reference in own:
                right = [number for number in reference.numbers if number in found]
                if reference.needs_support and not right:
                    continue
                right = right or [number for number in found if number not in placed]
                placed += right
                cited.add(reference)
                self._cite(base, part, reference, right)
            missing = "".join(f"[{number}]" for number in found if number not in placed)
            if missing:
                end_of_row = _END_OF_ROW.search(part, sentence.start, sentence.end)
                at = end_of_row.start() if end_of_row else sentence.end
                self._add_edit(base, at, at, f" {missing}")
        for block in blocks:
            found = self._attributor.find_code_markers(part[block.start : block.end])
            self._add_edit(base, block.end, block.end, "".join(f"\n\n[{number}]" for number in found))
            self._says_something = True
        for reference in inside:
            if reference not in cited and not (
                reference.needs_support and not self._is_cited_just_before(base, reference)
            ):
                self._cite(base, part, reference, ())
        self._edits.sort()

    def _is_cited_just_before(self, base: int, reference: CitationReference) -> bool:
        before = [edit.text for edit in self._edits if edit.cites and edit.start <= base + reference.start]
        numbers = {int(number) for number in MARKER.findall(before[-1])} if before else set()
        return bool(numbers & set(reference.numbers))

    def _is_repeated_too_often(self, sentence: str) -> bool:
        plain = " ".join(sentence.lower().split())
        self._said[plain] += 1
        return self._said[plain] >= MOST_REPEATS and len(plain) >= FEWEST_REPEATED_CHARACTERS

    def _cite(self, base: int, part: str, reference: CitationReference, numbers: Sequence[int]) -> None:
        start, end = reference.start, reference.end
        self.citations.append((base + start, base + end))
        if not numbers:
            begins_line = not part[part.rfind("\n", 0, start) + 1 : start].strip(_SIGNS)
            if begins_line and part[end : end + 1] == " ":
                end += 1
            elif not begins_line:
                start -= reference.blanks
        self._add_edit(base, start, end, "".join(f"[{number}]" for number in numbers))

    def _add_edit(self, base: int, start: int, end: int, text: str) -> None:
        if text or end > start:
            self._edits.append(TextEdit(base + start, base + end, text, cites=True))

    def _take_next_shown_text(self, end: int, *, is_end: bool) -> str:
        """Return the next text to show, at most up to the offset ``end``.

        Citations are renumbered or removed, and links without a source become plain text.
        """
        if self._may_still_give_up() and not is_end:
            return ""
        end = end if is_end else find_link_safe_boundary(self.written, self._shown, end)
        line = self.written.rfind("\n", 0, end) + 1
        refusal = self.written[line:].strip(_AROUND + ".")
        if len(refusal) > 1 and NO_ANSWER.startswith(refusal):
            # A model may also write NO_ANSWER as its last line, after a function call without success.
            self.declines = self.declines or (is_end and refusal == NO_ANSWER)
            end = min(end, max(line, self._shown))
        self._edits = [self._move_edit_after_shown(edit) for edit in self._edits]
        # The prompt shows [1] in a document as ⟦1⟧. If the model quotes it, it becomes [1] again.
        quoted = [
            TextEdit(*found.span(), f"[{found[1]}]") for found in QUOTED_NUMBERS.finditer(self.written, self._shown)
        ]
        end = min([end, *(edit.start for edit in [*self._edits, *quoted] if edit.start < end < edit.end)])
        if end < self._shown:
            return ""
        edits = [edit for edit in self._edits if edit.end <= end or is_end]
        self._edits = [edit for edit in self._edits if edit not in edits]
        others = find_link_edits(self.written, self._shown, end, self._addresses, self._tags)
        others += [edit for edit in quoted if edit.end <= end and NUMBERS_IN_BRACKETS.fullmatch(edit.text)]
        free = [
            other for other in others if not any(edit.start < other.end and other.start < edit.end for edit in edits)
        ]
        pieces: list[str] = []
        for edit in sorted([*edits, *free]):
            pieces += [
                self._record_text(self.written[self._shown : edit.start]),
                self._record_text(edit.text, cites=edit.cites),
            ]
            self._shown = max(self._shown, edit.end)
        pieces.append(self._record_text(self.written[self._shown : end]))
        self._shown = max(self._shown, end)
        return "".join(pieces)

    def _move_edit_after_shown(self, edit: TextEdit) -> TextEdit:
        if edit.start >= self._shown:
            return edit
        word = _REST_OF_WORD.match(self.written, self._shown - 1)
        at = word.end() if word else self._shown
        return TextEdit(at, at, edit.text, edit.cites)

    def _record_text(self, text: str, *, cites: bool = False) -> str:
        for marker in MARKER.finditer(text) if cites else ():
            start, end = marker.span()
            self.markers.append(CitationMarker(int(marker[1]), self.shown_length + start, self.shown_length + end))
        self.shown_length += len(text)
        return text

    def _may_still_give_up(self) -> bool:
        if self._may_give_up:
            begin = self.written[self._begin : (self._begin or 0) + 40].lower().replace("’", "'")
            is_opening = any(begin.startswith(each[: len(begin)]) for each in _OPENINGS)
            self._may_give_up = is_opening and not self._says_something
        return self._may_give_up


def _remove_brackets(text: str) -> str:
    plain = " ".join(NUMBERS_IN_BRACKETS.sub("", _HALF_MARKER.sub("", text)).split())
    return _BLANK_BEFORE_SIGN.sub("", plain)


def _remove_references(text: str, start: int, end: int, references: Sequence[CitationReference]) -> str:
    pieces = []
    for each in references:
        if start <= each.start < end:
            pieces.append(text[start : each.start - each.blanks])
            start = each.end
    return "".join([*pieces, text[start:end]]).strip()


def _find_last_sentence_start(text: str, references: Sequence[CitationReference]) -> int:
    codes = find_code_spans(text)
    block = next((code for code in codes if code.is_open), None)
    if block is not None:
        return text.rfind("\n", 0, block.start) + 1
    sentences = find_cited_sentences(text, [MarkerGroup(each.start, each.end, each.numbers) for each in references])
    end = max([0, *(code.end for code in codes if code.fence), *(sentence.end for sentence in sentences[-1:])])
    for gap in PIECE_BREAK.finditer(text, end) if end else ():
        if _remove_references(text, gap.end(), len(text), references).strip(_SIGNS + "\n`~"):
            return gap.end()
    if not sentences:
        return 0
    start = sentences[-1].start
    line = text.rfind("\n", 0, start) + 1
    return line if _LIST_SIGN.fullmatch(text, line, start) else start


def _strip_trailing_signs(text: str) -> str:
    text = text.rstrip(" \t\n|(")
    line = text.rfind("\n")
    return text[:line].rstrip() if line >= 0 and not text[line + 1 :].strip(_SIGNS) else text


def _find_loop_length(text: str) -> int:
    tail = text[-MOST_CYCLES * LONGEST_CYCLE :]
    for length in range(1, min(LONGEST_CYCLE, len(tail) // MOST_CYCLES) + 1):
        if tail.endswith(tail[-length:] * MOST_CYCLES) and tail[-length:].strip(" .-=_|\n"):
            return length
    return 0


def _reduce_to_letters(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(filter(str.isalnum, plain.casefold()))
