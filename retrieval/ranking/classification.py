"""What kind of question is asked, by patterns in English and Dutch.

The classes and their weights follow a published textbook-chatbot design; `docs/quality.md` has the accuracy of the
patterns on labelled questions. The first rule that matches decides, most specific first: an error message that holds
code is troubleshooting, and a comparison of two functions is a comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.types import Classification, QueryClass


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, searched in the question as it was typed, and the class it stands for."""

    name: str
    query_class: QueryClass
    pattern: re.Pattern[str]


def _rule(name: str, query_class: QueryClass, *alternatives: str, flags: int = re.IGNORECASE) -> Rule:
    return Rule(name, query_class, re.compile("|".join(alternatives), flags))


RULES: tuple[Rule, ...] = (
    _rule(
        "comparison words",
        QueryClass.COMPARISON,
        r"\b(?:difference|differences|differ|compare|compared|comparison|versus|vs)\b",
        r"\bdistinguish\w*\b.*\bfrom\b",
        r"\b(?:better|faster|slower|cheaper|heavier|lighter|safer|stronger) than\b",
        r"\bwhich (?:one )?(?:is|of|should)\b.*\bor\b",
        r"\b(?:verschil|verschillen|verschilt|vergelijk|vergelijking|vergeleken|ten opzichte van)\b",
        r"\b(?:beter|sneller|goedkoper|zwaarder|lichter|veiliger) dan\b",
        r"\bwelke\b.*\bof\b",
    ),
    _rule(
        "error words",
        QueryClass.TROUBLESHOOTING,
        r"\b(?:error|errors|exception|traceback|stack ?trace|crash\w*|fail\w*|broken|bug|debug\w*|fix|fixing|stuck)\b",
        r"\b(?:troubleshoot\w*|not working|won['’]t|cannot|can['’]t)\b",
        r"\b(?:does|do|is|can|will|would)(?: not|n['’]t) \w+\b",
        r"\b(?:went wrong|goes wrong|what is wrong|leak\w*|overheat\w*)\b",
        r"\b(?:fout|fouten|foutmelding\w*|storing\w*|mislukt\w*|kapot|vastgelopen|werkt niet|lukt niet|gaat mis)\b",
        r"\b(?:oplossen|opgelost|probleem|problemen|problem|problems)\b",
    ),
    _rule(
        "error code", QueryClass.TROUBLESHOOTING, r"\b(?:E|ERR|LNG|HTTP)[-_ ]?\d{2,5}\b", r"\b0x[0-9a-fA-F]+\b", flags=0
    ),
    _rule(
        "code words",
        QueryClass.CODE,
        r"\b(?:code|snippet|syntax|function|functions|method|parameter|parameters|argument|arguments|api|endpoint)\b",
        r"\b(?:class|import|script|command|regex|loop|compile|grammar|implement\w*|programm\w*|variable|variables)\b",
        r"\b(?:functie|functies|syntaxis|codevoorbeeld|opdrachtregel|variabele|variabelen|programmeren|implementeer\w*)\b",
    ),
    _rule(
        "identifier",
        QueryClass.CODE,
        r"`[^`]+`",
        r"\b[a-z]+[a-z0-9]*[A-Z]\w*\b",
        r"\b\w+_\w+\b",
        r"\b\w+::\w+",
        r"\b\w+\([^)]*\)",
        r"(?<!\w)--?[a-z][\w-]+",
        flags=0,
    ),
    _rule(
        "concept words",
        QueryClass.CONCEPTUAL,
        r"^\s*(?:what (?:is|are|does)|why|explain|describe|define|tell me about|how (?:does|do|is|are))\b",
        r"\b(?:meaning|concept|definition|overview|principle|purpose|understand|introduction|theory)\b",
        r"^\s*(?:wat (?:is|zijn|betekent|houdt)|waarom|leg\b|beschrijf|hoe werkt|hoe werken)",
        r"\b(?:betekenis|begrip|definitie|overzicht|principe|uitleg)\b",
    ),
)


def classify(question: str) -> Classification:
    """The question's class and the rule that decided; `default` with the rule "no pattern" when none matches."""
    for rule in RULES:
        if rule.pattern.search(question):
            return Classification(rule.query_class, rule.name)
    return Classification(QueryClass.DEFAULT, "no pattern")
