"""Several questions in one, each made complete with the subject of the first. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chat.grounding.words import stems
from chat.questions.wording import AUXILIARY, PRONOUN, WH, strip_asking, strip_intention

_ASKED = rf"(?:{WH}\b|{AUXILIARY} (?:{PRONOUN}|the|a|an|my|our|de|het|een|mijn|your|this|that|dit|dat)\b)"
_AND = re.compile(rf",? (?:and|en|&|plus|also|ook) (?:also |then |ook |dan )?(?={_ASKED})", re.IGNORECASE)
_COMMA = re.compile(rf", (?={_ASKED})", re.IGNORECASE)
_STARTS_AS_QUESTION = re.compile(rf"(?:{WH}\b|{AUXILIARY}\s)", re.IGNORECASE)
_SUBORDINATE = re.compile(rf"(?:when|if|wanneer|als|where) (?!{AUXILIARY}\b)", re.IGNORECASE)
_ONE_QUESTION = re.compile(r"\b(?:compar\w+|differen\w+|vs|versus|verschil\w*|vergelijk\w*)\b", re.IGNORECASE)
_BACK_REFERENCE = re.compile(r"\b(?:it|they|them|one|(?:dat|dit|die|het|deze)(?=\W*$))\b", re.IGNORECASE)
_DUTCH_WH = r"(?:wat|welke?|wie|wanneer|waar|hoe|moet|mag|kan)\b(?! to\b)"
_NOUNS_ASKED = re.compile(
    rf"(?:how many|how much|which|what|hoeveel"
    rf"|welke?) (?P<nouns>(?!{AUXILIARY}\b)[\w'-]+(?: (?!{AUXILIARY}\b)[\w'-]+){{0,3}})"
    rf" {AUXILIARY}\b",
    re.IGNORECASE,
)
LONGEST_SUBJECT_WORDS = 12
SHORTEST_CLAUSE_WORDS = 2


def split_parts(asking: Sequence[str], told: Sequence[str]) -> tuple[str, ...]:
    """The questions that are asked at once, each complete; empty when it is one.

    ``asking`` are the sentences that ask, ``told`` those before them that tell what it is about.
    """
    clauses = [clause for sentence in asking for clause in _clauses(sentence)]
    if len(clauses) < 2:
        return ()
    subject = _told_subject(told)
    completed = []
    for clause in clauses:
        completed.append(_complete(clause, subject) if subject else f"{clause}?")
        subject = subject or _subject(clause)
    return tuple(_capitalise(part) for part in completed)


def split_subject(part: str) -> tuple[str, str]:
    """A completed question without the subject that was put behind it in brackets, and that subject or nothing."""
    if not part.endswith(")?"):
        return part, ""
    asked, _, subject = part.removesuffix(")?").rpartition(" (")
    return f"{asked}?", subject


def _clauses(sentence: str) -> list[str]:
    whole = sentence.strip().rstrip("?!. ")
    if _ONE_QUESTION.search(whole) or not _STARTS_AS_QUESTION.match(whole):
        return [whole]
    ends = [match.span() for match in _AND.finditer(whole)]
    if ends:
        ends += [match.span() for match in _COMMA.finditer(whole) if not _SUBORDINATE.match(whole)]
    clauses, start = [], 0
    for end, next_start in sorted(ends):
        # "When and where is it?" asks for two things of which only the second is a sentence.
        if stems(strip_asking(whole[start:end])) and len(whole[next_start:].split()) >= SHORTEST_CLAUSE_WORDS:
            clauses.append(whole[start:end])
            start = next_start
    return [*clauses, whole[start:]]


def _told_subject(told: Sequence[str]) -> str:
    return _short(strip_intention(told[-1].rstrip("?!. "))) if told else ""


def _subject(clause: str) -> str:
    nouns = _NOUNS_ASKED.match(clause)
    subject = nouns["nouns"] if nouns else strip_asking(clause)
    return _short(subject) if stems(subject) else ""


def _short(subject: str) -> str:
    return subject if len(subject.split()) <= LONGEST_SUBJECT_WORDS else ""


def _complete(clause: str, subject: str) -> str:
    if _BACK_REFERENCE.search(clause):
        return f"{_BACK_REFERENCE.sub(lambda match: subject, clause, count=1)}?"
    if set(stems(subject)) <= set(stems(clause)):
        return f"{clause}?"
    if not stems(clause):
        preposition = "over" if re.match(_DUTCH_WH, clause, re.IGNORECASE) else "about"
        return f"{clause} {preposition} {subject}?"
    return f"{clause} ({subject})?"


def _capitalise(part: str) -> str:
    return part[:1].upper() + part[1:]
