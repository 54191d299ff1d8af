"""Classify a question by regular expressions for each language, to choose weights for the retrievers.

- comparison: differences and advantages of several things;
- troubleshooting: a symptom, an error message, an error code, a repair;
- code: code, its syntax, an interface or command, an identifier;
- conceptual: what something is, why, or how it works;
- default: facts, look-ups, steps, keywords, part numbers.

The classes and weights follow a published design of a chatbot for textbooks; `docs/quality.md` has the accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrieval.text.word_lists import read_patterns
from retrieval.types import QueryClass, QueryClassification

# Only these rules depend on capitals, which identifiers and error messages have.
AS_TYPED = frozenset({"error message", "identifier"})

HOW_TO = "how-to words"
# The first matching rule decides. `retrieval/text/languages/` has the patterns.
RULE_CLASSES: tuple[tuple[str, QueryClass], ...] = (
    ("comparison words", QueryClass.COMPARISON),
    ("comparative", QueryClass.COMPARISON),
    ("alternatives", QueryClass.COMPARISON),
    ("error message", QueryClass.TROUBLESHOOTING),
    ("definition", QueryClass.CONCEPTUAL),
    ("question of count or person", QueryClass.DEFAULT),
    ("error words", QueryClass.TROUBLESHOOTING),
    ("negated expectation", QueryClass.TROUBLESHOOTING),
    ("symptom", QueryClass.TROUBLESHOOTING),
    ("identifier", QueryClass.CODE),
    ("programming words", QueryClass.CODE),
    ("words of code in company", QueryClass.CODE),
    ("fact words", QueryClass.DEFAULT),
    (HOW_TO, QueryClass.DEFAULT),
    ("concept words", QueryClass.CONCEPTUAL),
)
NO_PATTERN = "no pattern"
# Longer questions usually quote material, which should not decide the class.
CHARACTERS_READ = 1000


def _read_rules() -> Iterator[tuple[str, QueryClass, re.Pattern[str]]]:
    for rule, query_class in RULE_CLASSES:
        yield rule, query_class, re.compile("|".join(read_patterns("classification", rule)))


RULES = tuple(_read_rules())


def classify_question(question: str) -> QueryClassification:
    """Return the question's class and the rule that decided; `default` and NO_PATTERN if no rule matches."""
    typed = " ".join(question[:CHARACTERS_READ].split()).replace("’", "'")
    lowered = typed.lower()
    for rule, query_class, pattern in RULES:
        if pattern.search(typed if rule in AS_TYPED else lowered):
            return QueryClassification(query_class, rule)
    return QueryClassification(QueryClass.DEFAULT, NO_PATTERN)
