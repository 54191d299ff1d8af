"""Sentences of a document that speak to a language model instead of a reader. PURE."""

from __future__ import annotations

from dataclasses import dataclass



@dataclass(frozen=True, slots=True)
class Instruction:
    """``text[start:end]`` reads like an instruction to whoever answers questions, by ``rule``."""

    start: int
    end: int
    rule: str


def instructions_in(text: str) -> list[Instruction]:
    """The sentences, list items and lines of the text that instruct a model, in order."""
    return []


def without_instructions(text: str, replacement: str) -> str:
    """The text with ``replacement`` in place of each sentence that instructs a model."""
    for found in reversed(instructions_in(text)):
        text = f"{text[: found.start]}{replacement}{text[found.end :]}"
    return text
