"""What kind of question is asked, by patterns in English and Dutch. PURE.

The classes are told apart by what would answer the question:

- comparison: two or more things are weighed against each other, also when they are functions or faults;
- troubleshooting: something does not work as it should: a symptom, an error message, an error code, a repair;
- code: code, its syntax, an interface or a command, or an identifier of a program. Nouns that programmers share with
  everybody else ("function of the liver", "class action", "import duties") are code only beside a sign of programming;
- conceptual: an explanation of what something is, why it is so, or how it works, programming's own ideas included;
- default: everything else: facts, look-ups, steps to follow, keywords, part numbers (they name a thing, not code).

The first rule that matches decides, most specific first: an error message that holds code is troubleshooting, and a
comparison of two functions is a comparison. The rules were written on the tuning half of `query_classes.jsonl`;
`docs/quality.md` has their accuracy on the other half. The classes and their weights follow a published
textbook-chatbot design.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.search.query_patterns import AS_TYPED, PATTERNS
from retrieval.types import Classification, QueryClass

NO_PATTERN = "no pattern"
# What is asked stands at the start; what follows that far down is quoted material, and would only cost time.
CHARACTERS_READ = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, searched in the question, and the class it stands for.

    ``as_typed`` rules see capitals; the others see the question in lower case with plain apostrophes.
    """

    name: str
    query_class: QueryClass
    pattern: re.Pattern[str]
    as_typed: bool = False


RULES: tuple[Rule, ...] = tuple(
    Rule(name, query_class, re.compile("|".join(alternatives)), as_typed=name in AS_TYPED)
    for name, query_class, alternatives in PATTERNS
)


def classify(question: str) -> Classification:
    """The question's class and the rule that decided; `default` with the rule "no pattern" when none matches.

    Any text will do; the first 1,000 characters decide. The time grows no faster than the text.
    """
    typed = " ".join(question[:CHARACTERS_READ].split()).replace("’", "'")
    lowered = typed.lower()
    for rule in RULES:
        if rule.pattern.search(typed if rule.as_typed else lowered):
            return Classification(rule.query_class, rule.name)
    return Classification(QueryClass.DEFAULT, NO_PATTERN)
