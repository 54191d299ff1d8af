"""What is kept of the search behind an answer, to be explained later: written with the answer, read by the panel.

Pure Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from chat.types import TracedCall
from retrieval.dataclass_json import from_json
from retrieval.search.trace import SearchTrace

PREVIEW_CHARACTERS = 160
# With white space, of which a preview keeps one blank between words.
READ_FOR_PREVIEW = 2 * PREVIEW_CHARACTERS


@dataclass(frozen=True, slots=True)
class KnownPassage:
    """By what an engineer recognises a candidate whose passage may be gone by then; ``document`` is its id."""

    title: str
    section: str
    preview: str
    document: int = 0


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """What became of the sources on their way to the model; they are named by their markers. ``calls`` are the
    functions that it called."""

    version: int | None = None
    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The explanation of a search, and what became of its result.

    ``assembly`` are the statistics of :func:`retrieval.search.assembly.assemble`; ``passages`` are by chunk id.
    ``uncalibrated`` names the embedder when no thresholds were fitted for it, so that words alone judged. ``evidence``
    are the numbers that the confidence was estimated from.
    """

    assembly: Mapping[str, int] = field(default_factory=dict)
    prompt: PromptTrace = PromptTrace()
    passages: Mapping[int, KnownPassage] = field(default_factory=dict)
    uncalibrated: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)


def fields_of(trace: SearchTrace) -> dict[str, Any]:
    """What an :class:`AnswerTrace` takes over from the trace of its search."""
    return {each.name: getattr(trace, each.name) for each in fields(SearchTrace)}


def preview_of(text: str) -> str:
    """What the text begins with, on one line."""
    return " ".join(text.split())[:PREVIEW_CHARACTERS]


def read_trace(stored: Mapping[str, Any]) -> AnswerTrace | None:
    """The trace as an answer keeps it; None when nothing was searched."""
    return from_json(AnswerTrace, stored) if stored else None
