"""What a question asks for, in English and Dutch. PURE."""

from __future__ import annotations

import functools
import re

from chat.grounding.words import stems
from chat.questions.kinds import classify
from chat.questions.parts import split_parts, split_subject
from chat.questions.types import Question, QuestionKind, ValueKind
from chat.questions.wording import sentences_that_ask, strip_asking, strip_requests
from retrieval.text.language import detect_language

# Longer than a question is: what follows is not read.
READ_CHARACTERS = 1_000
_WHAT = re.compile(r"\W{0,3}(?:what|wat|define|explain)\b", re.IGNORECASE)
_WHEN = re.compile(
    r"\W{0,3}(?:when|wanneer|hoe laat|(?:at |om |on |op )?(?:what|which|welke?) (?:time|tijd|date|datum|day|dag)s?)\b",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"^[\d.]+[.):]?\s+")

__all__ = ["Question", "QuestionKind", "ValueKind", "analyse", "asks_what_it_is", "asks_when", "is_same_question"]


def analyse(text: str) -> Question:
    """What ``text`` asks for. Typed carelessly or as a bare topic, it is understood as far as its words allow."""
    asking, told = sentences_that_ask(text[:READ_CHARACTERS])
    parts = split_parts(asking, told)
    question = asking[0] if len(asking) == 1 else " ".join(asking)
    kind, expects = classify(parts[0] if parts else asking[-1])
    topics = [strip_asking(sentence) for sentence in [*told, *asking]]
    return Question(
        text=text,
        kind=kind,
        expects=expects,
        topic=". ".join(dict.fromkeys(topics)) or strip_requests(question),
        language=detect_language(text),
        parts=tuple(_analyse_part(part) for part in parts),
    )


def asks_what_it_is(text: str) -> bool:
    """Whether ``text`` asks for a definition in so many words; a bare topic may ask for anything."""
    return bool(_WHAT.match(text)) and analyse(text).kind is QuestionKind.DEFINITION


def asks_when(text: str) -> bool:
    return bool(_WHEN.match(text))


def is_same_question(question: Question, heading: str) -> bool:
    """Whether a heading asks what the question asks ("When do you call 112?"): what stands below is the answer, whether
    or not a value of the kind asked for is recognised there."""
    if question.kind is QuestionKind.OTHER or question.parts:
        return False
    asked = question.kind, question.expects, frozenset(stems(question.topic))
    return bool(asked[2]) and _read_heading(heading) == asked


@functools.lru_cache(maxsize=4096)
def _read_heading(heading: str) -> tuple[QuestionKind, ValueKind | None, frozenset[str]]:
    asked = analyse(_NUMBERING.sub("", heading))
    return asked.kind, asked.expects, frozenset(stems(asked.topic))


def _analyse_part(text: str) -> Question:
    asked, subject = split_subject(text)
    kind, expects = classify(asked)
    return Question(text, kind, expects, f"{strip_asking(asked)} {subject}".strip(), detect_language(text))
