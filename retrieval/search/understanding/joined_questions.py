"""Join a follow-up question with the questions before it, to search for them together."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.exceptions import InvalidQuery
from retrieval.search.understanding.dependent_questions import has_few_words, is_in_another_language
from retrieval.search.understanding.syntax import parse_question
from retrieval.types import Turn

# A follow-up question is searched twice: alone, and together with earlier questions. These are the weights of the two
# searches (docs/adr/0045-follow-ups-are-searched-twice.md).
SEARCH_WEIGHTS, SEARCH_WEIGHTS_OF_FEW_WORDS = (0.7, 0.3), (0.4, 0.6)

MOST_JOINED, LONGEST_JOINED_CHARACTERS = 2, 600


def join_with_earlier_questions(question: str, history: Sequence[Turn]) -> str:
    """Return the last two questions of ``history``, oldest first, followed by ``question``.

    The result is empty without history, for a question with operators, and after a question in another language.
    """
    parsed = parse_question(question)
    if parsed.is_constrained or (history and is_in_another_language(parsed.text, history[-1].question)):
        return ""
    earlier = [" ".join(turn.question.replace("\x00", " ").split()) for turn in history[-MOST_JOINED:]]
    before = " ".join(_remove_search_operators(text) for text in earlier)[-LONGEST_JOINED_CHARACTERS:].strip()
    return f"{before} {parsed.text}" if before else ""


def choose_search_weights(question: str) -> tuple[float, float]:
    """Return the weights of two searches: for the question, and for the question together with earlier ones.

    The weights sum to 1.
    """
    return SEARCH_WEIGHTS_OF_FEW_WORDS if has_few_words(question) else SEARCH_WEIGHTS


def _remove_search_operators(question: str) -> str:
    try:
        return parse_question(question).text
    except InvalidQuery:  # There is no text to search.
        return ""
