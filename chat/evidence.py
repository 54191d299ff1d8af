"""The parts of the context that bear on a question: sentences, list items, table rows and pieces of code, each at its
exact place. Pure functions; the embedder is handed in.

A part's score is the mean of two signals in [0, 1]: the cosine of its vector with the question's, and the share of the
question's weight in words that it (with its headings) holds. Vectors understand other words for the same thing; words
hold where the embedder's language ends, and for names and numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.ingest.sentences import spans
from retrieval.lexical.terms import expand_identifiers

if TYPE_CHECKING:
    import numpy.typing as npt

    from chat.types import Source

    EmbedAll = Callable[[Sequence[str]], npt.NDArray[np.float32]]

LONGEST_PART = 600
# Vectors are made for this many parts at most, those that share most words with the question first.
EMBEDDED_PARTS = 48

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|[\s:|-]*$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^[=~\-^\"'*+#]{3,}\s*$")
_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been but by can could did do does for from get had has have how i if in into is it its "
    "me my no not of on or our out shall should so some such than that the their them then there these they this those to up use used "
    "was we were what when where which who whom whose why will with would you your "
    "aan al als bij dan dat de deze die dit door een en er ga gaan geen het hij hoe ik in is je kan kunnen komt maar me mij mijn moet mag "
    "na naar niet of om ook op over te tot uit van veel voor waar waarom wanneer was wat we welke wie wij word worden wordt zal ze zij "
    "zijn zo zou".split()
)


@dataclass(frozen=True, slots=True)
class Part:
    """``text`` is the document's ``text[start:end]``. ``lead`` is the table's head, shown before a row of it."""

    source: Source
    start: int
    end: int
    text: str
    kind: str
    lead: str = ""


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """``score`` is the mean of ``similarity`` and ``coverage``, all in [0, 1]."""

    part: Part
    score: float
    similarity: float
    coverage: float
    vector: npt.NDArray[np.float32] | None


def parts_of(sources: Sequence[Source]) -> list[Part]:
    """All that could be quoted, in the order of the sources; headings are left out, and nothing stands in twice."""
    parts: list[Part] = []
    for source in sources:
        parts.extend(_parts_of_block(source))
    return parts


def score_parts(question: str, parts: Sequence[Part], embed: EmbedAll) -> list[ScoredPart]:
    """The parts, best first; ties in the order given."""
    if not parts:
        return []
    wanted = question_words(question)
    bags = [_words(f"{part.lead} {part.text}") for part in parts]
    around = [_words(f"{part.source.block.best.document_title} {part.source.block.best.section}") for part in parts]
    weights = _weights(wanted, bags)
    coverage = [_coverage(weights, bag, near) for bag, near in zip(bags, around, strict=True)]
    order = sorted(range(len(parts)), key=lambda index: (-coverage[index], parts[index].source.marker, index))
    embedded = order[:EMBEDDED_PARTS]
    vectors = embed([question, *(_in_context(parts[index]) for index in embedded)])
    similarity = {index: max(0.0, float(vectors[0] @ vectors[place])) for place, index in enumerate(embedded, start=1)}
    vector_of = {index: vectors[place] for place, index in enumerate(embedded, start=1)}
    scored = [
        ScoredPart(
            part=parts[index],
            score=(similarity.get(index, 0.0) + coverage[index]) / 2,
            similarity=similarity.get(index, 0.0),
            coverage=coverage[index],
            vector=vector_of.get(index),
        )
        for index in range(len(parts))
    ]
    return sorted(scored, key=lambda part: -part.score)


def question_words(question: str) -> list[str]:
    """The question's words that carry meaning, reduced to their stems' likely beginnings, in order, without repeats."""
    words = [word for word in _WORD.findall(expand_identifiers(question).lower()) if word not in _STOP_WORDS]
    return list(dict.fromkeys(_stem(word) for word in words))


def _words(text: str) -> Counter[str]:
    return Counter(_stem(word) for word in _WORD.findall(expand_identifiers(text).lower()))


def _stem(word: str) -> str:
    """A rough common beginning of a word's forms, in English and Dutch; identifiers and numbers stay whole."""
    if not word.isalpha() or len(word) <= 4:
        return word
    for ending in ("ingen", "ments", "ment", "ing", "ies", "ied", "ed", "en", "es", "er", "s", "e", "y", "t"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _weights(wanted: Sequence[str], bags: Sequence[Counter[str]]) -> dict[str, float]:
    """How telling each word of the question is among these parts: rare words more, and one that none holds most."""
    return {
        word: math.log(1 + (len(bags) + 1) / (0.5 + sum(1 for bag in bags if word in bag))) for word in wanted
    }


def _coverage(weights: dict[str, float], bag: Counter[str], around: Counter[str]) -> float:
    """Share of the question's weight found in a part; a word that stands in the headings only counts half."""
    total = sum(weights.values())
    if not total:
        return 0.0
    found = sum(weight * (1.0 if word in bag else 0.5 if word in around else 0.0) for word, weight in weights.items())
    return found / total


def _in_context(part: Part) -> str:
    """A part as the embedder reads it: a row or an item says little without the heading above it."""
    heading = part.source.block.best.heading_path[-1] if part.source.block.best.heading_path else ""
    return " ".join(filter(None, [heading, part.lead.split("\n", 1)[0], part.text]))


def _parts_of_block(source: Source) -> list[Part]:
    content, offset = source.block.content, source.block.start
    parts: list[Part] = []

    def add(start: int, end: int, kind: str, lead: str = "") -> None:
        text = content[start:end]
        stripped = text.strip()
        if len(_WORD.findall(stripped)) < 2 or (kind == "prose" and _HEADING.match(stripped)):
            return
        start += text.index(stripped)
        parts.append(Part(source, offset + start, offset + start + len(stripped), stripped, kind, lead))

    for kind, start, end in _regions(content):
        if kind == "code":
            add(start, min(end, start + LONGEST_PART), kind)
        elif kind == "table":
            _add_rows(content, start, end, add)
        else:
            for first, last, _break in spans(content, start, end):
                for begin, stop in _without_headings(content, first, last):
                    add(begin, min(stop, begin + LONGEST_PART), kind)
    return parts


def _regions(content: str) -> list[tuple[str, int, int]]:
    """Stretches of prose, code between fences, and tables, in order."""
    regions: list[tuple[str, int, int]] = []
    position = 0
    fence_start: int | None = None
    for line in re.finditer(r"[^\n]*\n?", content):
        text = line.group()
        if not text:
            break
        if _FENCE.match(text):
            if fence_start is None:
                regions.append(("prose", position, line.start()))
                fence_start = line.start()
            else:
                regions.append(("code", fence_start, line.end()))
                fence_start = None
            position = line.end()
        elif fence_start is None:
            kind = "table" if text.lstrip().startswith("|") else "prose"
            if regions and regions[-1][0] == kind and regions[-1][2] == line.start() and position == line.start():
                regions[-1] = (kind, regions[-1][1], line.end())
            else:
                regions.append((kind, line.start(), line.end()))
            position = line.end()
    if fence_start is not None:
        regions.append(("code", fence_start, len(content)))
    return [region for region in regions if content[region[1] : region[2]].strip()]


def _add_rows(content: str, start: int, end: int, add: Callable[[int, int, str, str], None]) -> None:
    lines = [(match.start() + start, match.end() + start) for match in re.finditer(r"[^\n]+", content[start:end])]
    lead = ""
    if len(lines) >= 2 and _TABLE_RULE.match(content[slice(*lines[1])]):
        lead = content[lines[0][0] : lines[1][1]]
        lines = lines[2:]
    for first, last in lines:
        add(first, last, "row", lead)


def _without_headings(content: str, start: int, end: int) -> list[tuple[int, int]]:
    """The stretch without Markdown headings and underlines, which the sentence splitter leaves in front of prose."""
    kept: list[tuple[int, int]] = []
    for line in re.finditer(r"[^\n]+", content[start:end]):
        first, last = start + line.start(), start + line.end()
        if _HEADING.match(line.group()):
            continue
        if kept and content[kept[-1][1] : first].count("\n") <= 1:
            kept[-1] = (kept[-1][0], last)
        else:
            kept.append((first, last))
    return kept
