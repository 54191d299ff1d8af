"""A choice between two things spoken of before, with both of them named: "which of the two is lighter?" PURE."""

from __future__ import annotations

import re

_WHICH = {
    "en": re.compile(
        r"(?:and |so |but )?(?P<which>which|who)(?: one)?(?: of (?:the two|these two|those two|them|these|those))?\s+"
        r"(?=(?:is|are|has|have|was|does|do|can|should|costs?|weighs?|lasts?|uses?|takes?|gives?|would)\b)",
        re.I,
    ),
    "nl": re.compile(
        r"(?:en |dus |maar )?(?P<which>welke?|wie)(?: van (?:de twee|deze twee|die twee|beide|de beide|hen|deze|die))?"
        r"\s+",
        re.I,
    ),
}
_DEGREE = {
    "en": re.compile(r"\w{2,}(?:er|est)|more|less|worse|best|most|least|i", re.I),
    "nl": re.compile(r"\w{2,}er|\w{2,}ste?|meer|minder|ik", re.I),
}
_DIFFERENCE = {
    "en": re.compile(
        r"\bdifferences?\b(?: between (?:them|the two|these|those|both|these two|those two))?(?=[\s?.!]*$)", re.I
    ),
    "nl": re.compile(
        r"\b(?:verschil(?:len)?)\b(?: tussen (?:beide|hen|ze|de twee|die twee|deze twee|deze|die))?"
        r"(?: (?:ertussen|daartussen))?(?=[\s?.!]*$)",
        re.I,
    ),
}
_BOTH = {
    "en": re.compile(
        r"\b(?:both of them|them both|the two of them|both|the two|these two|those two)\b(?=[\s?.!]*$|\s\w+)", re.I
    ),
    "nl": re.compile(r"\b(?:allebei|alle twee|beide|de twee|die twee|deze twee)\b(?=[\s?.!]*$)", re.I),
}
_AND, _OR, _BETWEEN = {"en": "and", "nl": "en"}, {"en": "or", "nl": "of"}, {"en": "between", "nl": "tussen"}


def of_the_two(question: str, others: tuple[str, str], language: str) -> str:
    """The question with the two things named; empty for one that is not asked of two.

    It stays as it is when it names one of them itself.
    """
    first, second = others
    if any(name.lower() in question.lower() for name in others):
        return ""
    either, together = f"{first} {_OR[language]} {second}", f"{first} {_AND[language]} {second}"
    if match := _WHICH[language].match(question):
        rest = question[match.end() :].rstrip(" ?.!")
        if any(_DEGREE[language].fullmatch(word) for word in rest.split()):
            return f"{match['which']} {rest}, {either}?"
    if match := _DIFFERENCE[language].search(question):
        noun = match[0].split()[0]
        return f"{question[: match.start()]}{noun} {_BETWEEN[language]} {together}{question[match.end() :]}"
    if match := _BOTH[language].search(question):
        return f"{question[: match.start()]}{together}{question[match.end() :]}"
    return ""
